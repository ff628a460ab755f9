//! Commands in README and docs are valid: their arguments and flags exist.

use crate::answer;
use asymq_core::catalog::Standard;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Splits a shell line into words, up to a comment. Quotes join words; a pipe or `;` ends the command.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote, mut is_open) = (Vec::new(), None, false);
    for letter in line.chars() {
        match (quote, letter) {
            (Some(mark), letter) if letter == mark => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                words.extend((!is_open).then(String::new));
                is_open = true;
            }
            (None, ' ' | '\n') => is_open = false,
            (None, '|' | ';' | '>') => break,
            (None, '#') if !is_open => break,
            (_, letter) => {
                words.extend((!is_open).then(String::new));
                is_open = true;
                words.last_mut().unwrap().push(letter);
            }
        }
    }
    words
}

/// Returns the arguments of a line that runs asymq, from the program's name on; `None` for other lines.
fn arguments(line: &str) -> Option<Vec<String>> {
    const RUNS: [&str; 2] = ["asymq ", "cargo run --release -- "];
    let line = line.trim_start_matches("$ ").trim_start_matches("sudo ");
    let rest = RUNS.iter().find_map(|run| line.strip_prefix(run))?;
    let placeholder = |word: String| match word.as_str() {
        "NAME" => "asymq".to_owned(),
        _ => word,
    };
    let words = words(rest).into_iter().map(placeholder);
    Some([String::from("asymq")].into_iter().chain(words).collect())
}

/// Commands of a page: lines of shell blocks, and code within sentences if its second word is a subcommand.
fn commands(command: &clap::Command, page: &str) -> Vec<Vec<String>> {
    let (mut found, mut prose) = (Vec::new(), String::new());
    for (number, part) in page.split("```").enumerate() {
        match part.split_once('\n') {
            Some(("sh" | "console", block)) if number % 2 == 1 => {
                found.extend(block.lines().filter_map(arguments));
            }
            _ if number % 2 == 0 => prose += part,
            _ => {}
        }
    }
    let is_command = |words: &Vec<String>| {
        let name = words.get(1).map_or("", String::as_str);
        command.find_subcommand(name).is_some()
    };
    let code = prose.split('`').skip(1).step_by(2);
    found.extend(code.filter_map(arguments).filter(is_command));
    found.retain(|words| !words.iter().any(|word| word == "..."));
    found
}

/// Adds the pages of a folder and its subfolders.
fn add_pages(folder: &Path, pages: &mut Vec<PathBuf>) {
    for file in fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        if path.is_dir() {
            add_pages(&path, pages);
        } else if path.extension().is_some_and(|end| end == "md") {
            pages.push(path);
        }
    }
}

#[test]
fn every_command_of_readme_and_docs_has_words_and_flags_that_exist() {
    let mut pages = ["README.md", "python/README.md"]
        .map(|name| root().join(name))
        .to_vec();
    add_pages(&root().join("docs"), &mut pages);
    let (mut count, mut wrong) = (0, Vec::new());
    let command = asymq_cli::command(&Standard);
    for path in pages {
        for words in commands(&command, &fs::read_to_string(&path).unwrap()) {
            count += 1;
            let parsed = command.clone().try_get_matches_from(&words);
            // A sentence may omit values that a command or a flag requires.
            let is_brief = |error: &clap::Error| {
                let value = error.get(ContextKind::InvalidValue);
                error.kind() == ErrorKind::MissingRequiredArgument
                    || matches!(value, Some(ContextValue::String(value)) if value.is_empty())
            };
            let error = parsed.err();
            let error = error.filter(|error| error.use_stderr() && !is_brief(error));
            wrong.extend(error.map(|error| format!("{}: {words:?}: {error}", path.display())));
        }
    }
    assert!(count > 60, "{count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns a flag, its value and its help as a table row.
fn row(arg: &clap::Arg) -> String {
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let names: Vec<String> = [short, long].into_iter().flatten().collect();
    let takes_value = arg.get_action().takes_values();
    let values = arg.get_value_names().unwrap_or_default().join(" ");
    let name = match names.join(", ") {
        name if name.is_empty() => values,
        name if arg.is_require_equals_set() => format!("{name}[={values}]"),
        name if takes_value => format!("{name} {values}"),
        name => name,
    };
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let defaults = arg.get_default_values().iter();
    let defaults: Vec<_> = defaults.map(|value| value.to_string_lossy()).collect();
    let default = match defaults.is_empty() || !takes_value {
        true => String::new(),
        false => format!(" [default: {}]", defaults.join(" ")),
    };
    let [name, help] =
        [name, help + &default].map(|cell| cell.replace('\n', " ").replace('|', "\\|"));
    format!("| `{name}` | {help} |\n")
}

/// Adds the flags of a command and of its subcommands; `listed` contains the rows so far.
fn add_flags(
    command: &clap::Command,
    path: &str,
    listed: &mut BTreeMap<String, String>,
    page: &mut String,
) {
    let (mut groups, mut shared) = (Vec::<(&str, String)>::new(), BTreeSet::new());
    for arg in command.get_arguments() {
        if arg.is_hide_set() || arg.get_id().as_str().starts_with("help") {
            continue;
        }
        let row = row(arg);
        if let Some(owner) = listed.get(&row) {
            shared.insert(format!("`{owner}`"));
        } else {
            let heading = arg.get_help_heading().unwrap_or("Options");
            match groups.iter_mut().find(|(name, _)| *name == heading) {
                Some((_, rows)) => *rows += &row,
                None => groups.push((heading, row.clone())),
            }
            // `set` and `try` print no defaults.
            if let Some((text, _)) = row.rsplit_once(" [default") {
                listed
                    .entry(format!("{text} |\n"))
                    .or_insert(path.to_owned());
            }
            listed.insert(row, path.to_owned());
        }
    }
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    *page += &format!("\n## `{path}`\n\n{about}.\n");
    if !shared.is_empty() {
        let mut shared: Vec<String> = shared.into_iter().collect();
        let last = shared.pop().unwrap_or_default();
        let others = match shared.is_empty() {
            true => last,
            false => format!("{} and {last}", shared.join(", ")),
        };
        let help = match command
            .get_arguments()
            .any(|arg| arg.get_id() == "help-all")
        {
            true => "--help-all",
            false => "--help",
        };
        *page += &format!(
            "\nIt also takes some of the flags listed under {others}; `{path} {help}` prints all its flags.\n"
        );
    }
    for (heading, rows) in groups {
        *page += &format!("\n| {heading} | meaning |\n| --- | --- |\n{rows}");
    }
    for command in command.get_subcommands() {
        add_flags(
            command,
            &format!("{path} {}", command.get_name()),
            listed,
            page,
        );
    }
}

#[test]
fn every_test_that_security_md_names_exists() {
    let page = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let cells = page
        .lines()
        .filter_map(|line| line.strip_suffix(" |")?.rsplit(" | ").next());
    let tests = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let is_test = |word: &&str| word.matches('_').count() > 2;
    let mut missing: BTreeSet<&str> = tests.filter(is_test).collect();
    assert!(missing.len() > 30, "{missing:?}");
    let mut folders = vec![root().join("crates"), root().join("python/tests")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            match path.extension().and_then(|name| name.to_str()) {
                _ if path.is_dir() => folders.push(path),
                Some("rs" | "py") => {
                    let text = fs::read_to_string(path).unwrap();
                    missing.retain(|name| {
                        let has = |word: &str| text.contains(&format!("{word}{name}()"));
                        !has("fn ") && !has("def ")
                    });
                }
                _ => {}
            }
        }
    }
    assert!(missing.is_empty(), "not in the tree: {missing:?}");
}

#[test]
fn every_file_of_tests_is_compiled() {
    for folder in fs::read_dir(root().join("crates")).unwrap() {
        let folder = folder.unwrap().path();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        if !manifest.contains("autotests = false") {
            continue;
        }
        let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
        let files = fs::read_dir(folder.join("tests")).unwrap();
        let paths = files.map(|file| file.unwrap().path());
        let is_source = |path: &PathBuf| path.extension().is_some_and(|end| end == "rs");
        let files: Vec<_> = paths.filter(is_source).map(read).collect();
        let stem = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
        let is_program =
            |path: &Path| manifest.contains(&format!("[[test]]\nname = \"{}\"\n", stem(path)));
        let programs: Vec<_> = files.iter().filter(|(path, _)| is_program(path)).collect();
        assert!(!programs.is_empty(), "{} has no program", folder.display());
        for (path, _) in files.iter().filter(|(path, _)| !is_program(path)) {
            let line = format!("mod {};", stem(path));
            let is_module = |text: &String| text.lines().any(|other| other == line);
            assert!(
                programs.iter().any(|(_, text)| is_module(text)),
                "{} is in no program",
                path.display()
            );
        }
    }
}

#[test]
fn the_reference_page_lists_every_flag() {
    // The page describes a default build.
    if cfg!(feature = "https") {
        return;
    }
    let mut page = String::from(
        "# Flags\n\nGenerated from the code: `ASYMQ_DOCS=write cargo test -p asymq --test cli documentation` writes \
         this page. A flag is listed under the first command that takes it. In files, write the names without the \
         leading dashes. With the Cargo feature `https`, `measure serve` takes further flags.\n",
    );
    add_flags(
        &asymq_cli::command(&Standard),
        "asymq",
        &mut BTreeMap::new(),
        &mut page,
    );
    is_written("docs/reference/flags.md", &page);
}

/// Checks that a generated file is up to date. With `ASYMQ_DOCS=write`, writes it first.
fn is_written(name: &str, text: &str) {
    let path = root().join(name);
    if std::env::var("ASYMQ_DOCS").is_ok_and(|value| value == "write") {
        fs::write(&path, text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "ASYMQ_DOCS=write writes {name}");
}

#[test]
fn python_type_checkers_know_every_key_of_a_scenario() {
    let mut text = String::from(
        r#""""Keys of a scenario, written by ASYMQ_DOCS=write cargo test -p asymq --test cli documentation."""

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, TypedDict

class Keys(TypedDict, total=False):
    """The flags of `asymq sim` with underscores; None is a key that is not given."""

"#,
    );
    let command = asymq_cli::command(&Standard);
    for arg in command.find_subcommand("sim").unwrap().get_arguments() {
        let heading = arg.get_help_heading().unwrap_or_default();
        let is_key = ["Scenario", "Discipline", "Simulat"].map(|front| heading.starts_with(front));
        let Some(key) = arg.get_long().filter(|_| is_key.contains(&true)) else {
            continue;
        };
        let value = arg.get_value_names().map_or("", |names| names[0].as_str());
        let one = match value {
            _ if value.starts_with("true") => "bool",
            "N" | "R" | "PPM" => "int",
            "NUMBER" | "SHARE" => "float",
            "N|auto" | "RATE|NUMBER" => "float | str",
            "SIZE" => "str | int",
            "FILE" => "str | PathLike[str]",
            _ => "str",
        };
        let whole = match (key, arg.get_action()) {
            ("flow", _) => "str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]]".into(),
            ("qdisc" | "qdisc-down" | "tcp", _) => format!("{one} | type"),
            (_, clap::ArgAction::Append) => format!("{one} | Sequence[{one}]"),
            _ => one.to_owned(),
        };
        text += &format!("    {}: {whole} | None\n", key.replace('-', "_"));
    }
    text += "    parameters: Mapping[str, bool | float | str] | None\n";
    is_written("python/asymq/_keys.pyi", &text);
}

#[test]
fn the_experiment_of_the_page_runs() {
    let page = fs::read_to_string(root().join("docs/research/experiments.md")).unwrap();
    let (_, rest) = page.split_once("```toml\n").unwrap();
    let (experiment, _) = rest.split_once("```").unwrap();
    let short = experiment.replace("runs = 5 ", "runs = 2\nduration = \"8s\"\nwarmup = \"2s\" ");
    assert_ne!(short, experiment);
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("page.toml"), short).unwrap();
    let verdicts = answer(folder.path(), "sweep page.toml");
    assert!(verdicts.starts_with("1 claim: 1 "), "{verdicts}");
    assert!(
        verdicts.lines().all(|line| line.chars().count() <= 80),
        "{verdicts}"
    );
    assert!(folder.path().join("asymq-sweep/report.html").is_file());
}

#[test]
fn the_module_build_names_missing_tools() {
    let said = |arguments: &[&str]| {
        let mut command = Command::new(root().join("scripts/kernel-module"));
        let output = command.args(arguments).output().unwrap();
        assert!(!output.status.success(), "{arguments:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let page = fs::read_to_string(root().join("docs/kernel/module.md")).unwrap();
    let headers = said(&["Cargo.toml", "/nonexistent/build", "target/none.ko"]);
    let documented = "kernel-module: no kernel headers in ";
    assert!(headers.starts_with(documented), "{headers}");
    assert!(page.contains(documented));
    let core = said(&["target/no-core.o", "/nonexistent/build", "target/none.ko"]);
    assert!(
        core.contains("scripts/kernel-object target/no-core.o builds it"),
        "{core}"
    );
    assert!(said(&[]).starts_with("usage: scripts/kernel-module"));
}

#[test]
fn install_lines_name_the_files_of_a_release_and_building_from_source_comes_later() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let script = fs::read_to_string(root().join("scripts/release")).unwrap();
    let (files, source) = readme.split_once("From source").unwrap();
    assert!(source.contains("cargo install --path crates/cli"));
    assert!(!files.contains("cargo install"));
    // The file names contain the script's variables. The last word of a machine's line is the package's architecture.
    for (in_script, words) in [
        ("asymq_${version}_amd64.deb", ["amd64", "amd64 -\n"]),
        (
            "asymq_${version}_arm64.deb",
            ["arm64", "arm64 qemu-aarch64-static\n"],
        ),
        (
            "asymq_${version}_armhf.deb",
            ["armhf", "armhf qemu-arm-static\n"],
        ),
        (
            "asymq-$version-linux-$2",
            ["linux-x86_64", "linux-musl x86_64 "],
        ),
        (
            "asymq-$version-linux-$2",
            ["aarch64", "linux-musl aarch64 "],
        ),
        (
            "asymq-$version-linux-$2",
            ["armv7", "linux-musleabihf armv7 "],
        ),
        (
            "asymq-playground-$version.html",
            ["playground", "asymq-playground-*"],
        ),
        ("asymq-*linux*x86_64.whl", ["*.whl", "part wheel "]),
    ] {
        assert!(script.contains(in_script), "{in_script}");
        assert!(
            files.contains(words[0]) && script.contains(words[1]),
            "{words:?}"
        );
    }
    let version = env!("CARGO_PKG_VERSION");
    for name in [
        format!("./asymq_{version}_amd64.deb"),
        format!("asymq-{version}-linux-x86_64 "),
        format!("asymq-{version}-*.whl"),
        format!("asymq-playground-{version}.html"),
    ] {
        assert!(files.contains(&name), "README.md lacks {name}");
    }
}
