//! `asymq import`: converts settings of SQM, qosmate, cake-autorate or tc to a command line for a router or a gateway.

mod apply;
mod file;
mod rules;

use crate::output;
use anyhow::{Context as _, bail};
use asymq_scenario::quoted;
use clap::Args;
use file::{Dialect, Section};
use rules::{Fate, fates, is_interface, link_flags, link_rank};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Convert a router's SQM, qosmate, cake-autorate or tc settings to one asymq command, and list the options that have no equivalent.
#[derive(Debug, Args)]
#[command(after_help = "Example: tc qdisc show | asymq import -")]
pub(crate) struct ImportArgs {
    /// File to convert: /etc/config/sqm, /etc/sqm/IF.iface.conf, /etc/config/qosmate, cake-autorate's settings, the
    /// output of `uci show` or `tc qdisc show`, or a tc command line; or - for standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Port that leads to the modem; overrides the port in the file.
    #[arg(long, value_name = "IF")]
    wan: Option<String>,
    /// Print the command for a separate gateway between this router and the modem.
    #[arg(long)]
    gateway: bool,
    /// List the services to stop, ask for confirmation, then stop them and run the command.
    #[arg(long, conflicts_with = "gateway")]
    apply: bool,
    /// With --apply: do not ask for confirmation.
    #[arg(long, requires = "apply")]
    yes: bool,
}

pub(crate) fn run(args: &ImportArgs) -> anyhow::Result<()> {
    if let Some(wan) = args.wan.as_deref().filter(|wan| !is_interface(wan)) {
        bail!("--wan {}: not an interface name like eth0", quoted(wan));
    }
    let text = read(&args.file)?;
    let name = args.file.file_name().unwrap_or_default();
    let sections = file::sections(&text, &name.to_string_lossy());
    let links = links(&sections, args.wan.as_deref(), &sessions());
    if links.is_empty() {
        bail!(
            "{}: contains no settings of SQM, qosmate, cake-autorate or tc",
            args.file.display()
        );
    }
    let texts = links.iter().map(|link| link.in_words(args.gateway));
    output::print(&texts.collect::<Vec<_>>().join("\n"))?;
    match (args.apply, &links[..]) {
        (false, _) => Ok(()),
        (true, [link]) => apply::apply(link, args.yes),
        (true, links) => bail!(
            "{}: has {} links, and asymq router serves only one: run one of these commands yourself",
            args.file.display(),
            links.len()
        ),
    }
}

/// The kernel's PPPoE sessions, each with the port below it.
fn sessions() -> String {
    std::fs::read_to_string("/proc/net/pppoe").unwrap_or_default()
}

/// The port below the PPPoE session, if there is only one session.
fn port_below(sessions: &str) -> Option<&str> {
    let mut ports = sessions
        .lines()
        .skip(1)
        .filter_map(|line| line.split_whitespace().nth(2));
    let port = ports.next().filter(|port| is_interface(port))?;
    ports.all(|other| other == port).then_some(port)
}

/// Creates one link per section. Merges tc's sections for up and down if they are the only two, or if their names
/// match, like `eth0` and `ifb4eth0`.
fn links(sections: &[Section], wan: Option<&str>, sessions: &str) -> Vec<Link> {
    let halves = sections.iter().partition(|of| of.is_download());
    let (mut downs, ups): (Vec<&Section>, Vec<&Section>) = halves;
    let is_only = downs.len() == 1 && ups.len() == 1;
    let mut links = Vec::new();
    for up in ups {
        let ifb = format!("ifb4{}", up.interface());
        // SQM shortens the name to the kernel's maximum.
        let is_its = |down: &&Section| is_only || ifb.get(..15).unwrap_or(&ifb) == down.interface();
        let down = downs.iter().position(is_its);
        let down = down.filter(|_| up.dialect == Dialect::Tc);
        // The uplink comes last, so that its flags override the downlink's.
        let both: Vec<&Section> = down
            .map(|at| downs.remove(at))
            .into_iter()
            .chain([up])
            .collect();
        links.push(Link::new(&both, wan, sessions));
    }
    let downs = downs
        .into_iter()
        .map(|down| Link::new(&[down], wan, sessions));
    links.extend(downs);
    links
}

/// Reads at most a megabyte. Limits the number of words, because all pairs of options are compared.
fn read(path: &Path) -> anyhow::Result<String> {
    const MAX: u64 = 1 << 20;
    const MAX_WORDS: usize = 10_000;
    let mut bytes = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => io::stdin().lock().take(MAX + 1).read_to_end(&mut bytes),
        false => File::open(path).and_then(|file| file.take(MAX + 1).read_to_end(&mut bytes)),
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    if bytes.len() as u64 > MAX {
        bail!("{}: longer than 1 MB: not a settings file", path.display());
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    if text.split_whitespace().nth(MAX_WORDS).is_some() {
        bail!(
            "{}: more than {MAX_WORDS} words: not a settings file",
            path.display()
        );
    }
    Ok(text)
}

/// Placeholder for a port that neither the file nor a flag names.
const UNKNOWN_PORT: &str = "WAN";

/// A link's settings as flags, and the options without a flag.
#[derive(Debug, Default)]
struct Link {
    name: String,
    /// Program that currently shapes the link, and the link's interface.
    shaper: Option<(Dialect, String)>,
    flags: Vec<String>,
    /// Options that have a flag, each with its flag.
    kept: Vec<(String, String)>,
    /// Options without a flag, by reason.
    left: Vec<(String, Vec<String>)>,
}

impl Link {
    fn new(sections: &[&Section], wan: Option<&str>, sessions: &str) -> Self {
        let mut names: Vec<&str> = sections.iter().map(|of| of.name.as_str()).collect();
        names.dedup();
        let shaper = sections
            .last()
            .map(|of| (of.dialect, of.interface().to_owned()));
        let mut link = Self {
            name: names.join(" and "),
            shaper,
            ..Self::default()
        };
        let [mut up, mut down] = [Vec::new(), Vec::new()];
        for (option, fate) in sections.iter().flat_map(|section| ordered_fates(section)) {
            let option = option.trim_end().to_owned();
            match fate {
                Fate::Link(words) => up.push((option, words)),
                Fate::LinkDown(words) => down.push((option, words)),
                Fate::Flag(flag) => link.keep(option, flag),
                Fate::LeftOut(reason) => link.leave(option, &reason),
            }
        }
        link.add_link_layer(up, down);
        let below = port_below(sessions).filter(|_| {
            let (_, name) = link.shaper.clone().unwrap_or((Dialect::Tc, String::new()));
            name.starts_with("ppp")
        });
        match (wan, below) {
            (Some(wan), _) => link.keep("--wan".into(), format!("--wan {wan}")),
            (None, Some(port)) => link.keep("/proc/net/pppoe".into(), format!("--wan {port}")),
            (None, None) if !link.has("--wan") => {
                link.flags.push(format!("--wan {UNKNOWN_PORT}"));
            }
            _ => {}
        }
        let order = |flag: &String| ORDER.split(' ').position(|name| flag.starts_with(name));
        link.flags.sort_by_key(order);
        link
    }

    fn has(&self, name: &str) -> bool {
        self.flags.iter().any(|flag| flag.starts_with(name))
    }

    /// Sets a flag. The last value counts, as in tc.
    fn keep(&mut self, option: String, flag: String) {
        let name = flag.split(' ').next().unwrap_or_default().to_owned();
        self.flags
            .retain(|known| known.split(' ').next() != Some(&name));
        let pair = (option, flag.clone());
        if !self.kept.contains(&pair) {
            self.kept.push(pair);
        }
        self.flags.push(flag);
    }

    fn leave(&mut self, option: String, reason: &str) {
        match self.left.iter_mut().find(|(known, _)| known == reason) {
            Some((_, options)) if options.contains(&option) => {}
            Some((_, options)) => options.push(option),
            None => self.left.push((reason.into(), vec![option])),
        }
    }

    /// Adds flags for tc-cake's link-layer keywords. If the uplink has any, those of the downlink are ignored.
    fn add_link_layer(&mut self, up: Vec<(String, String)>, down: Vec<(String, String)>) {
        let (words, ignored) = match up.is_empty() {
            true => (down, Vec::new()),
            false => (up, down),
        };
        let reason = "the uplink's link-layer keywords apply to both directions";
        for (option, _) in ignored {
            self.leave(option, reason);
        }
        let all: Vec<&str> = words.iter().map(|(_, words)| words.as_str()).collect();
        let flags = link_flags(&all.join(" "));
        for (option, _) in words {
            match &flags {
                Ok(flags) if flags.is_empty() => self.leave(option, "the default"),
                Ok(flags) => self.kept.push((option, flags.join(" "))),
                Err(error) => self.leave(option, error),
            }
        }
        self.flags.extend(flags.unwrap_or_default());
    }

    /// Flags for a gateway or a router. A router needs no `--qdisc-down`, because it shapes the downlink by default. A
    /// VLAN becomes its port, with `--next-boot`, because the port must be taken over before its VLANs exist.
    fn flags(&self, gateway: bool) -> Vec<&str> {
        let flags = self.flags.iter().map(String::as_str);
        if gateway {
            return flags.collect();
        }
        let mut flags: Vec<&str> = flags
            .filter(|flag| !flag.starts_with("--qdisc-down"))
            .collect();
        if let Some(below) = flags.first().and_then(|wan| below_vlan(wan)) {
            flags[0] = below;
            flags.push("--next-boot");
        }
        flags
    }

    /// Formats the command line, the options with a flag, and the other options by reason.
    fn in_words(&self, gateway: bool) -> String {
        let command = match gateway {
            true => "asymq gateway --lan LAN",
            false => "asymq router install",
        };
        let mut text = format!("# {}\n{command}", self.name);
        for flag in self.flags(gateway) {
            let _ = write!(text, " {flag}");
        }
        if gateway && !self.has("--up") {
            text += " --up RATE   # asymq measure finds RATE";
        }
        if !gateway && self.has(&format!("--wan {UNKNOWN_PORT}")) {
            text += "   # WAN: the Ethernet port that leads to the modem";
        }
        text += "\n\n";
        let shown = |(_, flag): &&(String, String)| gateway || !flag.starts_with("--qdisc-down");
        let kept: Vec<_> = self.kept.iter().filter(shown).collect();
        let width = kept.iter().map(|(option, _)| option.chars().count()).max();
        let width = width.unwrap_or(0);
        for (option, flag) in kept {
            let _ = writeln!(text, "  {option:<width$}  {flag}");
        }
        for (reason, options) in &self.left {
            text += &output::wrapped(&format!("- omitted ({reason}): {}", options.join(", ")), 80);
        }
        text
    }
}

/// Returns `--wan eth0` for `--wan eth0.2`.
fn below_vlan(flag: &str) -> Option<&str> {
    let (port, id) = flag.rsplit_once('.')?;
    (port.starts_with("--wan ") && id.parse::<u16>().is_ok()).then_some(port)
}

/// Results for a section's options. Link-layer options are in the order in which tc receives them.
fn ordered_fates(section: &Section) -> Vec<(String, Fate)> {
    let options = section.options.iter();
    let fates = options.flat_map(|(key, value)| fates(section, key, value));
    let of_section = |(option, fate): (String, Fate)| match fate {
        Fate::Link(words) if section.is_download() => (option, Fate::LinkDown(words)),
        fate => (option, fate),
    };
    let mut fates: Vec<_> = fates.map(of_section).collect();
    fates.sort_by_key(|(option, fate)| match fate {
        Fate::Link(_) | Fate::LinkDown(_) => link_rank(section.dialect, option),
        _ => 0,
    });
    fates
}

/// Order of the flags in a command line.
const ORDER: &str = "--lan --wan --up --down --qdisc-down --overhead --mpu --atm --ptm";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::LinkArgs;
    use asymq_args::Flags;
    use asymq_core::catalog::Standard;

    fn described(sections: &[Section], gateway: bool) -> String {
        let links = links(sections, None, "");
        let texts = links.iter().map(|link| link.in_words(gateway));
        texts.collect::<Vec<_>>().join("\n")
    }

    /// Returns the command line of the only section, and the whole text.
    fn imported(text: &str) -> (String, String) {
        let sections = file::sections(text, "");
        assert_eq!(sections.len(), 1, "{sections:?}");
        let text = described(&sections, true);
        let command = text.lines().nth(1).unwrap().to_owned();
        let flags = command.split(' ').skip_while(|word| *word != "--up");
        Flags::<LinkArgs>::new(&Standard)
            .given(flags.map(str::to_owned))
            .unwrap_or_else(|error| panic!("{command}: {error}"));
        (command, text)
    }

    const SQM: &str = "config queue 'eth1'
        option enabled '1'
        option interface 'eth1'
        option download '85000'
        option upload '10000'
        option qdisc 'cake'
        option itarget 'auto'
        option eqdisc_opts 'nat dual-srchost mpu 84' # a comment
        option linklayer 'atm'
        option overhead '44'
        option brand_new '7'
";

    #[test]
    fn sqm_becomes_flags_and_reasons() {
        let (command, text) = imported(SQM);
        assert_eq!(
            command,
            "asymq gateway --lan LAN --wan eth1 --up 10mbit --down 85mbit --qdisc-down cake --overhead 44 --mpu 84 --atm"
        );
        for key in ["qdisc cake", "itarget auto", "brand_new 7", "enabled 1"] {
            assert!(text.contains(key), "{key}: {text}");
        }
        assert!(text.contains("omitted (unknown): brand_new 7"), "{text}");
    }

    #[test]
    fn sqm_ignores_overhead_without_a_link_layer_and_rates_of_zero() {
        let text = SQM.replace("'atm'", "'none'").replace("'85000'", "'0'");
        let (command, _) = imported(&text);
        assert_eq!(
            command,
            "asymq gateway --lan LAN --wan eth1 --up 10mbit --mpu 84"
        );
    }

    #[test]
    fn qosmate_is_one_link_in_many_sections() {
        let text = "config settings 'settings'
            option WAN 'eth1'
            option DOWNRATE '90000'
            option UPRATE '45000'
            config advanced 'advanced'
            option COMMON_LINK_PRESETS 'docsis'
            option ACKRATE ''";
        let (command, _) = imported(text);
        assert_eq!(
            command,
            "asymq gateway --lan LAN --wan eth1 --up 45mbit --down 90mbit --qdisc-down cake --overhead docsis"
        );
    }

    #[test]
    fn cake_autorate_gives_its_ranges_and_no_option_of_its_defaults_is_unknown() {
        let settings = "#!/usr/bin/env bash
dl_if=ifb-wan # download interface
ul_if=wan     # upload interface
reflectors=(
\"1.1.1.1\" \"1.0.0.1\"  # two
)
base_dl_shaper_rate_kbps=20000 # kbit/s
base_ul_shaper_rate_kbps=5000
max_ul_shaper_rate_kbps=30000
min_dl_shaper_rate_kbps=6000
alpha_delta_ewma=0.095
ping_extra_args=\"\"
";
        let (command, text) = imported(settings);
        assert_eq!(
            command,
            "asymq gateway --lan LAN --wan wan --up auto:5mbit..30mbit --down auto:6mbit..80mbit"
        );
        assert!(!text.contains("unknown"), "{text}");
        let fixed = settings.to_owned() + "adjust_ul_shaper_rate=0\nupload_only=1\n";
        let (command, _) = imported(&fixed);
        assert_eq!(command, "asymq gateway --lan LAN --wan wan --up 5mbit");
    }

    #[test]
    fn tc_shows_an_uplink_and_an_ifb_shows_a_downlink() {
        let cake = "qdisc cake 8001: dev eth0 root refcnt 2 bandwidth 10Mbit diffserv3 \
                    triple-isolate nonat nowash no-ack-filter split-gso rtt 100ms noatm overhead 18 mpu 64";
        let (command, text) = imported(cake);
        assert_eq!(
            command,
            "asymq gateway --lan LAN --wan eth0 --up 10mbit --overhead 18 --mpu 64"
        );
        assert!(!text.contains("unknown"), "{text}");
        let ifb = file::sections(&cake.replace("eth0", "ifb4eth0"), "");
        assert!(described(&ifb, true).contains("--down 10mbit --qdisc-down cake --overhead 18"));
        let tbf = "qdisc tbf 8001: dev eth0 root refcnt 2 rate 10Mbit burst 5Kb lat 50ms";
        let (command, text) = imported(tbf);
        assert_eq!(command, "asymq gateway --lan LAN --wan eth0 --up 10mbit");
        assert!(!text.contains("unknown"), "{text}");
        let codel = "qdisc fq_codel 0: dev eth1 root refcnt 2 limit 10240p flows 1024 quantum 1514 \
                     target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64";
        let text = described(&file::sections(codel, ""), true);
        assert!(
            text.contains("--up RATE") && !text.contains("unknown"),
            "{text}"
        );
        assert!(file::sections("qdisc noqueue 0: dev lo root refcnt 2", "").is_empty());
    }

    #[test]
    fn both_halves_of_a_link_that_tc_shows_are_one_command() {
        let shown = "qdisc noqueue 0: dev lo root refcnt 2
qdisc cake 8011: dev eth1 root refcnt 2 bandwidth 10Mbit nat ack-filter rtt 100ms overhead 18
qdisc ingress ffff: dev eth1 parent ffff:fff1 ----------------
qdisc cake 8012: dev ifb4eth1 root refcnt 2 bandwidth 85Mbit nat ingress rtt 100ms overhead 44
";
        let text = described(&file::sections(shown, ""), true);
        assert_eq!(
            text.lines().nth(1).unwrap(),
            "asymq gateway --lan LAN --wan eth1 --up 10mbit --down 85mbit --qdisc-down cake --overhead 18"
        );
        assert_eq!(text.matches("asymq gateway").count(), 1, "{text}");
        assert_eq!(text.matches("rtt 100ms").count(), 1, "{text}");
        // Two uplinks belong to two links.
        let two = described(
            &file::sections(
                &shown
                    .replace("ifb4eth1", "eth2")
                    .replace("ingress rtt", "rtt"),
                "",
            ),
            true,
        );
        assert_eq!(two.matches("asymq gateway").count(), 2, "{two}");
    }

    fn commands(text: &str, name: &str) -> Vec<String> {
        let text = described(&file::sections(text, name), true);
        let lines = text.lines().filter(|line| line.starts_with("asymq"));
        lines
            .map(|line| line.replace("asymq gateway --lan LAN ", ""))
            .collect()
    }

    #[test]
    fn link_layer_words_add_up_as_in_tc_cake() {
        let cake = |words: &str| {
            let line = format!("qdisc cake 1: dev eth0 root bandwidth 1Mbit {words}");
            commands(&line, "")
                .remove(0)
                .replace("--wan eth0 --up 1mbit", "")
        };
        for (words, flags) in [
            ("pppoe-ptm ether-vlan", " --overhead 34 --ptm"),
            ("ethernet ether-vlan", " --overhead 42 --mpu 84"),
            ("pppoe-llcsnap overhead 40", " --overhead 40 --atm"),
            ("docsis overhead 22", " --overhead 22 --mpu 64"),
            ("flows atm overhead 10", " --overhead 10 --atm"),
            ("raw overhead 0", ""),
            ("raw overhead 4", " --overhead raw 4"),
            ("noatm overhead 18 mpu 64", " --overhead 18 --mpu 64"),
            ("docsis", " --overhead docsis"),
            ("docsis mpu 0", " --overhead 18"),
            ("pppoe-vcmux mpu 64 mpu 0", " --overhead 32 --atm"),
        ] {
            assert_eq!(cake(words), flags, "{words}");
        }
    }

    #[test]
    fn words_of_the_downlink_do_not_override_and_later_ones_of_the_uplink_do() {
        let sqm = |options: &str| {
            let text = format!(
                "config queue\n option interface eth1\n option upload 1000\n option qdisc cake\n{options}"
            );
            commands(&text, "")
                .remove(0)
                .replace("--wan eth1 --up 1mbit", "")
        };
        let link = "option linklayer ethernet\noption overhead 44\n";
        let down = format!("{link}option iqdisc_opts 'overhead 22 mpu 64'\n");
        assert_eq!(sqm(&down), " --overhead 44");
        // SQM appends these options last, wherever they are in the file.
        let up = format!("option eqdisc_opts 'overhead 22 mpu 64'\n{link}");
        assert_eq!(sqm(&up), " --overhead 22 --mpu 64");
        let stab = format!("{link}option linklayer_adaptation_mechanism tc_stab\n");
        assert_eq!(sqm(&stab), " --overhead 58");
        let simple = link.to_owned() + "option iqdisc_opts ''\n";
        let fq_codel = format!(
            "config queue\n option interface eth1\n option upload 1000\n option qdisc fq_codel\n{simple}"
        );
        assert_eq!(
            commands(&fq_codel, "")[0],
            "--wan eth1 --up 1mbit --overhead 58"
        );
        // SQM's defaults: no link layer, and an overhead of 0 with one.
        assert_eq!(sqm("option overhead 44\noption tcMPU 64\n"), "");
        assert_eq!(sqm("option linklayer atm\n"), " --overhead 0 --atm");
        let private = format!("{link}option linklayer_adaptation_mechanism htb_private\n");
        assert_eq!(sqm(&private), " --overhead 58");
        let mpu = format!("{link}option tcMPU 96\noption eqdisc_opts 'mpu 0'\n");
        assert_eq!(sqm(&mpu), " --overhead 44");
        let vlan = "config settings 'settings'\n option WAN 'eth1'\n option UPRATE '1000'\n
            option ETHER_VLAN_KEYWORD '1'\n option COMMON_LINK_PRESETS 'cake-ethernet'";
        assert_eq!(
            commands(vlan, "")[0],
            "--wan eth1 --up 1mbit --overhead 42 --mpu 84"
        );
        assert_eq!(
            commands(&vlan.replace("'1'", "'3'"), "")[0],
            "--wan eth1 --up 1mbit --overhead 50 --mpu 84"
        );
    }

    #[test]
    fn a_file_of_another_program_has_no_settings() {
        let network = "config interface 'wan'\n option device 'eth1'\n option proto 'dhcp'\n";
        for text in [
            "up = \"1mbit\"\n",
            "GRUB_DEFAULT=0\nGRUB_TIMEOUT=5\n",
            network,
        ] {
            assert!(commands(text, "").is_empty(), "{text}");
        }
        // `uci show` of a whole router.
        let shown = "network.wan=interface\nnetwork.wan.device='eth1'\nsqm.eth1=queue\nsqm.eth1.interface='eth1'\nsqm.eth1.upload='795'\n";
        assert_eq!(commands(shown, ""), ["--wan eth1 --up 795kbit"]);
    }

    #[test]
    fn a_link_that_is_off_is_left_out_beside_one_that_is_on() {
        let other = SQM
            .replace("eth1", "eth2")
            .replace("enabled '1'", "enabled '0'");
        let both = commands(&(SQM.to_owned() + &other), "");
        assert_eq!(both.len(), 1, "{both:?}");
        assert!(both[0].starts_with("--wan eth1"), "{both:?}");
        assert_eq!(commands(&other, "").len(), 1);
    }

    #[test]
    fn settings_come_in_many_forms() {
        let up = "--wan eth1 --up 795kbit --down 7.88mbit --qdisc-down cake";
        let shell = "# kbps\nUPLINK=795\nDOWNLINK=7880\nSCRIPT=piece_of_cake.qos\n";
        assert_eq!(commands(shell, "eth1.iface.conf"), [up]);
        assert_eq!(commands(shell, "-"), [up.replace("eth1", "WAN")]);
        let shown = "sqm.eth1=queue\nsqm.eth1.interface='eth1'\nsqm.eth1.download='7880'\nsqm.eth1.upload='795'\n";
        assert_eq!(commands(shown, ""), [up]);
        let marked = format!(
            "\u{feff}{}",
            shown.replace("sqm.eth1=queue", "sqm.@queue[0]=queue")
        );
        assert_eq!(commands(&marked, ""), [up]);
        let line = "export UPLINK=795; DOWNLINK='7880'\r";
        assert_eq!(commands(line, "eth1.iface.conf"), [up]);
        for end in ["\r\n", "\r"] {
            assert_eq!(commands(&shown.replace('\n', end), ""), [up]);
        }
        for typed in [
            "tc qdisc add dev eth1 root cake bandwidth 795kbit docsis",
            "tc qdisc add dev \"eth1\" root cake bandwidth '795kbit' docsis # nat overhead 44",
            "tc qdisc add dev eth1 root cake \\\n bandwidth 795kbit \\\r\n docsis\n",
            "sudo /sbin/tc qdisc replace dev eth1 handle 1: root cake bandwidth 795kbit docsis nat",
        ] {
            assert_eq!(
                commands(typed, ""),
                ["--wan eth1 --up 795kbit --overhead docsis"]
            );
        }
        let set = "uci set sqm.@queue[0].qdisc='cake'\nuci set sqm.@queue[0].interface='eth1'\nuci set sqm.@queue[0].upload='795'\nuci commit sqm\n";
        assert_eq!(commands(set, ""), ["--wan eth1 --up 795kbit"]);
        let autorate = "config network 'primary'\n option ul_if 'wan'\n option min_ul_rate '5000'\n option max_ul_rate '30000'\n";
        assert_eq!(
            commands(autorate, ""),
            ["--wan wan --up auto:5mbit..30mbit"]
        );
        let ppp = shown.replace("interface='eth1'", "interface='pppoe-wan'");
        assert_eq!(commands(&ppp, ""), [up.replace("eth1", "WAN")]);
    }

    #[test]
    fn a_whole_router_that_tc_shows_is_one_command() {
        let shown = "qdisc noqueue 0: dev lo root refcnt 2
qdisc fq_codel 0: dev eth0 root refcnt 2 limit 10240p flows 1024 quantum 1514
qdisc cake 1: dev eth0.2 root refcnt 2 bandwidth 10Mbit nat
qdisc ingress ffff: dev eth0.2 parent ffff:fff1
qdisc cake 2: dev ifb4eth0.2 root refcnt 2 bandwidth 85Mbit ingress
";
        let one = ["--wan eth0.2 --up 10mbit --down 85mbit --qdisc-down cake"];
        assert_eq!(commands(shown, ""), one);
        let mq = "qdisc cake_mq 8001: dev eth0 root bandwidth 10Mbit
qdisc cake 0: dev eth0 parent 8001:1 bandwidth 10Mbit
qdisc cake 0: dev eth0 parent 8001:2 bandwidth 10Mbit
";
        assert_eq!(commands(mq, ""), ["--wan eth0 --up 10mbit"]);
        // The kernel shows the rate only at the child qdiscs.
        let children = mq.replacen(" bandwidth 10Mbit", " refcnt 6", 1);
        assert_eq!(commands(&children, ""), ["--wan eth0 --up 10mbit"]);
    }

    #[test]
    fn a_script_of_tc_commands_is_read_with_its_variables() {
        let script = "ul_if=wan # upload interface
cake_ul_rate_Mbps=10
cake_dl_rate_Mbps=20
cake_ul_options=\"diffserv4 dual-srchost nonat wash noatm overhead 18\"
dl_if=ifb-${ul_if}
start() {
\ttc qdisc add dev $ul_if handle ffff: ingress
\ttc qdisc add dev ${ul_if} root cake bandwidth ${cake_ul_rate_Mbps}Mbit ${cake_ul_options}
\ttc qdisc add dev ${dl_if} root cake bandwidth ${cake_dl_rate_Mbps}Mbit ingress
}
";
        let both = "--wan wan --up 10mbit --down 20mbit --qdisc-down cake";
        assert_eq!(commands(script, ""), [format!("{both} --overhead 18")]);
        let line = "tc qdisc del dev wan root; tc qdisc add dev wan root cake bandwidth 10mbit && \
                    tc qdisc add dev ifb4wan root cake bandwidth 20mbit ingress 2>/dev/null || true";
        assert_eq!(commands(line, ""), [both]);
        let text = described(&file::sections(line, ""), true);
        assert!(!text.contains("unknown"), "{text}");
        let growing = format!(
            "a={}\ntc qdisc add dev eth0 root cake $a{}",
            "$a".repeat(99),
            "$a".repeat(2000)
        );
        let _ = file::sections(&growing, "");
    }

    #[test]
    fn a_size_table_adds_to_the_frame() {
        for (line, flags) in [
            (
                "tc qdisc add dev eth0 root stab mtu 2047 tsize 512 mpu 68 overhead 22 linklayer ethernet cake bandwidth 1mbit",
                "--overhead 36 --mpu 68",
            ),
            (
                "tc qdisc add dev eth0 root stab linklayer atm overhead 18 tbf rate 1mbit burst 3k latency 50ms",
                "--overhead 32 --atm",
            ),
            (
                "qdisc cake 1: dev eth0 root bandwidth 1Mbit rtt 100ms raw overhead 0 linklayer ethernet overhead 22 mpu 64 mtu 2047 tsize 512",
                "--overhead raw 22 --mpu 64",
            ),
        ] {
            assert_eq!(
                commands(line, ""),
                [format!("--wan eth0 --up 1mbit {flags}")]
            );
            let text = described(&file::sections(line, ""), true);
            assert!(!text.contains("unknown"), "{text}");
        }
    }

    #[test]
    fn several_links_keep_their_downlinks_and_outputs_without_a_port_are_one_link() {
        let cake = |dev: &str, rate: &str| format!("qdisc cake 1: {dev}root bandwidth {rate}\n");
        let shown = [
            cake("dev wan ", "19Mbit"),
            cake("dev ifb4wan ", "95Mbit ingress"),
            cake("dev wwan-very-long ", "5Mbit"),
            cake("dev ifb4wwan-very-l ", "25Mbit ingress"),
        ];
        let links = [
            "--wan wan --up 19mbit --down 95mbit --qdisc-down cake",
            "--wan wwan-very-long --up 5mbit --down 25mbit --qdisc-down cake",
        ];
        assert_eq!(commands(&shown.concat(), ""), links);
        let nameless = cake("", "19Mbit") + &cake("", "95Mbit ingress");
        assert_eq!(
            commands(&nameless, ""),
            [links[0].replace("--wan wan", "--wan WAN")]
        );
    }

    #[test]
    fn rates_have_the_units_of_their_program() {
        let tc = |rate: &str| {
            commands(
                &format!("tc qdisc add dev eth0 root cake bandwidth {rate}"),
                "",
            )
            .remove(0)
        };
        for (rate, expected) in [
            ("950000", "950kbit"),
            ("1mbps", "8mbit"),
            ("1.5MBps", "12mbit"),
            ("10mibit", "10485.76kbit"),
        ] {
            assert_eq!(tc(rate), format!("--wan eth0 --up {expected}"));
        }
        let sqm =
            "config queue\n option interface wan\n option upload 10mbit\n option download 9000";
        assert_eq!(
            commands(sqm, ""),
            ["--wan wan --down 9mbit --qdisc-down cake --up RATE   # asymq measure finds RATE"]
        );
        let steady = "ul_if=wan\nmin_ul_shaper_rate_kbps=20000\nmax_ul_shaper_rate_kbps=20000\n";
        assert_eq!(commands(steady, ""), ["--wan wan --up 20mbit"]);
    }

    #[test]
    fn rates_in_classes_are_named_as_missing() {
        let shown = "qdisc htb 1: dev eth0 root refcnt 2 r2q 10 default 0x10 direct_packets_stat 0 direct_qlen 1000
qdisc fq_codel 110: dev eth0 parent 1:10 limit 1001p flows 1024 quantum 300
";
        let typed = "tc qdisc add dev eth0 root handle 1: htb default 10";
        for text in [shown, typed] {
            let text = described(&file::sections(text, ""), false);
            assert!(text.contains("asymq router install --wan eth0\n"), "{text}");
            let flat = text.replace('\n', " ");
            assert!(flat.contains("its rates are in its classes"), "{text}");
            assert!(!text.contains("unknown"), "{text}");
        }
    }

    /// The command lines for a router.
    fn routers(text: &str, name: &str, wan: Option<&str>, sessions: &str) -> Vec<String> {
        let links = links(&file::sections(text, name), wan, sessions);
        let texts = links.iter().map(|link| link.in_words(false));
        texts
            .map(|text| text.lines().nth(1).unwrap().to_owned())
            .collect()
    }

    #[test]
    fn a_router_gets_its_whole_install_command() {
        let of = |text: &str| routers(text, "eth1.iface.conf", None, "").remove(0);
        assert_eq!(
            of(SQM),
            "asymq router install --wan eth1 --up 10mbit --down 85mbit --overhead 44 --mpu 84 --atm"
        );
        assert_eq!(
            of("UPLINK=795\nDOWNLINK=7880\n"),
            "asymq router install --wan eth1 --up 795kbit --down 7.88mbit"
        );
        let shown = "qdisc cake 1: dev eth0.2 root bandwidth 10Mbit docsis
qdisc cake 2: dev ifb4eth0.2 root bandwidth 85Mbit docsis ingress
";
        assert_eq!(
            of(shown),
            "asymq router install --wan eth0 --up 10mbit --down 85mbit --overhead docsis --next-boot"
        );
        // Missing rates are learnt.
        let unshaped = SQM.replace("'10000'", "'0'").replace("'85000'", "'0'");
        assert_eq!(
            of(&unshaped),
            "asymq router install --wan eth1 --overhead 44 --mpu 84 --atm"
        );
    }

    #[test]
    fn the_port_below_a_ppp_session_is_found_or_given() {
        let sqm = SQM.replace("'eth1'\n        option down", "'ppp0'\n        option down");
        let line = "Id       Address              Device\n";
        let session = line.to_owned() + "0100     02:00:00:00:00:01    eth3\n";
        let wan = |wan, sessions: &str| {
            let line = routers(&sqm, "", wan, sessions).remove(0);
            line.split(' ').nth(4).unwrap().to_owned()
        };
        assert_eq!(wan(None, &session), "eth3");
        assert_eq!(wan(Some("eth4"), &session), "eth4");
        assert_eq!(wan(None, ""), "WAN");
        let two = session.clone() + "0200     02:00:00:00:00:02    eth5\n";
        assert_eq!(wan(None, &two), "WAN");
        // A PPPoE session of another link is ignored.
        assert_eq!(
            routers(SQM, "", None, &session)[0].split(' ').nth(4),
            Some("eth1")
        );
    }

    #[test]
    fn a_file_of_too_many_words_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (words, is_read) in [(10_000, true), (10_001, false)] {
            std::fs::write(file.path(), "a=b ".repeat(words)).unwrap();
            assert_eq!(read(file.path()).is_ok(), is_read, "{words}");
        }
    }

    #[test]
    fn a_file_of_more_than_a_megabyte_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        for (bytes, is_read) in [(1 << 20, true), ((1 << 20) + 1, false), (100 << 20, false)] {
            file.as_file().set_len(bytes).unwrap();
            assert_eq!(read(file.path()).is_ok(), is_read, "{bytes}");
        }
    }

    #[test]
    fn a_command_is_safe_to_paste_for_any_file() {
        let bad = "x'; $(reboot) `reboot` !!\u{1b}";
        let session = "Id Address Device\n1 2 ;reboot\n";
        for text in [
            format!("config queue \"{bad}\"\n option interface ppp0\n option upload 5"),
            format!("qdisc $(reboot) 1: dev {bad} root bandwidth 1Mbit"),
            format!("UPLINK=5\nLINKLAYER={bad}\nEQDISC_OPTS=\"docsis\u{a0}ether-vlan {bad}\""),
            format!("ul_if={bad}\ndl_if=$(reboot)"),
            format!("config settings 'a'\n option WAN '{bad}'\n option OVERHEAD '{bad}'"),
        ] {
            let links = links(&file::sections(&text, bad), None, session);
            assert_eq!(links.len(), 1, "{text}");
            let words = links[0].in_words(false);
            for line in words.lines().take(2) {
                // Outside of quotes, all characters are ordinary for every shell.
                let outside: String = line.replace(r"'\''", "").split('\'').step_by(2).collect();
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_./@:,# ".contains(c);
                let command = outside.split("   # ").next().unwrap();
                assert!(command.chars().all(plain), "{line}");
            }
        }
    }

    #[test]
    fn hostile_settings_are_shown_without_control_characters_and_become_no_flag() {
        let text = "config queue\n option interface '\u{1b}[2J; reboot'\n option upload '-1'";
        let text = described(&file::sections(text, ""), true);
        assert!(
            !text.contains('\u{1b}') && text.contains("not an interface name"),
            "{text}"
        );
        assert!(text.contains("--up RATE"), "{text}");
        for text in [
            "",
            "qdisc",
            "qdisc cake",
            "config",
            "option a b",
            "x=(",
            "='",
            "\u{0}",
        ] {
            let _ = file::sections(text, "");
        }
    }
}
