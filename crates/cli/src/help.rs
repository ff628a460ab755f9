//! `--help` on one screen, `--help-all` with every flag.

use clap::{Arg, ArgAction, Command};
use std::ffi::OsString;

/// Number of flags up to which the brief help of a command lists all flags.
const MANY: usize = 40;

/// Flags in the brief help, by id.
const SHOWN: &[&str] = &[
    // Flags for one scenario, simulated or real.
    "file",
    "up",
    "down",
    "flows_up",
    "flows_down",
    "rtt",
    "buffer",
    "qdisc",
    "tcp",
    "probe",
    "duration",
    "runs",
    "json",
    "flows",
    // Flags for several disciplines.
    "real",
    "only",
    "all",
    "wide",
    "chart",
    // Flags for a gateway.
    "config",
    "lan",
    "wan",
    "watch",
    "metrics",
    "control",
    "page",
    "pairs",
    "hold",
    "settle",
    "next_boot",
];

/// Converts `help sim` to `sim --help`, because clap's own `help` prints only the long help.
pub(crate) fn asked(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_some_and(|word| word == "help") {
        words.remove(1);
        if !words.iter().any(|word| word == "--help-all") {
            words.retain(|word| word != "--help" && word != "-h");
            words.push("--help".into());
        }
    }
    words
}

/// True if these arguments may print help. Building the help takes longer than most commands need to start.
pub(crate) fn is_printed(words: &[OsString]) -> bool {
    words.iter().any(|word| {
        let word = word.to_string_lossy();
        word.starts_with("--help")
            || (word.starts_with('-') && !word.starts_with("--") && word.contains('h'))
    })
}

/// Returns the help of a flag, without the flag's default.
pub(crate) fn without_default(arg: &Arg) -> String {
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let end = help.find(" [default").unwrap_or(help.len());
    help[..end].to_owned()
}

/// Removes defaults from the help of `set` and `try`, because a setting that is not given stays unchanged.
pub(crate) fn changes(command: Command) -> Command {
    command.mut_subcommands(|command| match command.get_name() {
        "set" | "try" => command.mut_args(|arg| arg.clone().help(without_default(&arg))),
        _ => changes(command),
    })
}

/// Hides rarely used flags from `--help`. `--help-all` shows all flags.
pub(crate) fn brief(command: Command) -> Command {
    let command = command.mut_subcommands(brief);
    let flags = command.get_arguments().count();
    let flag = |name: &'static str, action| {
        let arg = Arg::new(name).long(name).action(action);
        arg.help_heading(None::<&str>)
    };
    let help = flag("help", ArgAction::HelpShort).short('h');
    let command = match flags > MANY {
        false => command,
        true => command
            .mut_args(|arg| {
                let few_need_it = !SHOWN.contains(&arg.get_id().as_str());
                arg.hide_short_help(few_need_it)
            })
            .arg(
                flag("help-all", ArgAction::HelpLong)
                    .help(format!("Print all {flags} flags in groups")),
            ),
    };
    command
        .disable_help_flag(true)
        .arg(help.help("Print this help"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::catalog::Standard;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_command_help_is_the_flag() {
        for (line, expected) in [
            ("asymq help", "asymq --help"),
            ("asymq help --help", "asymq --help"),
            ("asymq help sim -h", "asymq sim --help"),
            ("asymq help sim --help-all", "asymq sim --help-all"),
            ("asymq sim --up 1mbit", "asymq sim --up 1mbit"),
        ] {
            assert_eq!(asked(words(line)), words(expected), "{line}");
        }
    }

    #[test]
    fn words_that_ask_for_help_print_it_with_the_defaults_of_disciplines() {
        for (line, expected) in [
            ("asymq sim --help", true),
            ("asymq sim -h", true),
            ("asymq sim --help-all", true),
            ("asymq sim --up 1mbit --chart -1", false),
        ] {
            assert_eq!(is_printed(&words(line)), expected, "{line}");
            let parser = crate::command_for(&Standard, |_| true, expected);
            let error = parser.try_get_matches_from(words("asymq sim --help-all"));
            let help = error.unwrap_err().to_string();
            assert_eq!(help.contains("10s for acq"), expected, "{line}");
        }
    }

    #[test]
    fn the_help_of_every_command_fits_a_screen_and_shows_known_flags() {
        let mut command = crate::command(&Standard);
        command.build();
        let mut seen = Vec::new();
        fits(&mut command, &mut seen);
        for flag in SHOWN {
            assert!(seen.iter().any(|id| id == flag), "{flag}");
        }
    }

    /// Checks the length of a command's help and of its subcommands' help, and adds all flags to `seen`.
    fn fits(command: &mut Command, seen: &mut Vec<String>) {
        for command in command.get_subcommands_mut() {
            let help = command.render_help().to_string();
            assert!(help.lines().count() <= 40, "{help}");
            seen.extend(command.get_arguments().map(|arg| arg.get_id().to_string()));
            fits(command, seen);
        }
    }

    #[test]
    fn set_and_try_print_no_defaults_because_a_missing_setting_stays_unchanged() {
        let mut command = crate::command(&Standard);
        command.build();
        for (parent, name, has_defaults) in [
            ("gateway", "set", false),
            ("router", "try", false),
            ("gateway", "install", true),
            ("router", "check", true),
        ] {
            let command = command.find_subcommand_mut(parent).unwrap();
            let command = command.find_subcommand_mut(name).unwrap();
            let qdisc = command.get_arguments().find(|arg| arg.get_id() == "qdisc");
            let help = qdisc.unwrap().get_help().unwrap().to_string();
            assert_eq!(
                help.contains("[default"),
                has_defaults,
                "{parent} {name}: {help}"
            );
        }
    }
}
