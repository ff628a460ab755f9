//! Flags of the gateway.

use asymq_args::{
    BadArgument, Flags, Given, LineRate, ScenarioError, Settings as AnySettings, Words,
    downlink_params, settings, within,
};
use asymq_core::Direction;
use asymq_core::catalog::{
    Catalog, DEFAULT_QDISC, Params, Place, default_buffer, resolve, surroundings,
};
use asymq_core::decide::overhead::Overhead;
use asymq_core::hold::{RegeneratorParams, Spacing};
use asymq_core::units::{Bytes, Duration, Limit, RateRange, UnitError};
use asymq_gateway::{GatewayConfig, LinkConfig, SendBy, Stage};
use clap::builder::{PossibleValue, PossibleValuesParser, RangedU64ValueParser};
use clap::{Args, Subcommand};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Flags of `asymq gateway`.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct GatewayArgs {
    /// Subcommand; without one, a gateway runs.
    #[command(subcommand)]
    pub(crate) command: Option<GatewayCommand>,
    /// TOML file with the flags as keys; flags override it, and SIGHUP reloads it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) settings: Given<SettingsArgs>,
}

/// Subcommands of the gateway.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum GatewayCommand {
    /// Change the given settings of a running gateway, without losing a packet.
    #[command(
        after_help = "Example: asymq gateway set --control /run/asymq/control --qdisc wrr --data-share 0.7"
    )]
    Set(Box<SetArgs>),
    /// Compare new settings with the current ones, in a randomised trial on live traffic.
    #[command(
        after_help = "Example: asymq gateway try --control /run/asymq/control --qdisc droptail\n\nSettings \
                      that are not given stay unchanged. Without any, the trial compares the current settings with no shaping. \
                      docs/router/gateway.md explains the results."
    )]
    Try(Box<TryArgs>),
    /// List problems of this host that affect a gateway, each with a remedy; change nothing.
    #[command(after_help = "Example: asymq gateway check --config /etc/asymq.toml")]
    Check(Box<CheckArgs<HostArgs>>),
    /// Install the gateway as a systemd service with these settings.
    #[command(
        after_help = "Example: asymq gateway install --lan eth1 --wan eth0 --up 950kbit --overhead docsis"
    )]
    Install(Box<InstallArgs<HostArgs>>),
    /// Stop and remove the service, and restore the interfaces.
    Uninstall(UninstallArgs),
    /// Restore interfaces after a gateway was killed.
    Restore(RestoreArgs),
}

/// Flags of `asymq gateway set`. `asymq gateway try` has them too.
#[derive(Clone, Debug, Args)]
pub(crate) struct SetArgs {
    /// Control socket of the running gateway or router.
    #[arg(long, value_name = "PATH")]
    pub(crate) control: PathBuf,
    #[command(flatten)]
    pub(crate) link: Given<LinkArgs>,
}

/// Flags of `asymq gateway try`.
#[derive(Clone, Debug, Args)]
pub(crate) struct TryArgs {
    #[command(flatten)]
    pub(crate) set: SetArgs,
    /// Number of pairs of intervals: in each pair, one interval uses the current settings, the other the new ones. Pairs with too little load are repeated.
    #[arg(long, value_name = "N", default_value_t = 30, help_heading = "Trial",
          value_parser = RangedU64ValueParser::<usize>::new().range(8..=10_000))]
    pub(crate) pairs: usize,
    /// Duration of one interval.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "5s",
        help_heading = "Trial"
    )]
    pub(crate) hold: Duration,
    /// Time at the start of each interval during which nothing is measured.
    #[arg(
        long,
        value_name = "TIME",
        default_value = "2s",
        help_heading = "Trial"
    )]
    pub(crate) settle: Duration,
    /// Print JSON (docs/reference/json.md).
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Settings of a gateway or router that is not running yet.
#[derive(Clone, Debug, Args)]
pub(crate) struct PlannedArgs<S: AnySettings> {
    /// Settings file (TOML); its keys are the flags without leading dashes. Flags override it.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) given: Given<S>,
}

/// Merges flags over the file, adds defaults, and parses the result. Also returns the merged keys and values.
pub(super) type Read =
    fn(&Words, Option<&Path>, &dyn Catalog) -> Result<(SettingsArgs, Words), ScenarioError>;

impl<S: AnySettings> PlannedArgs<S> {
    /// Merges these flags over the file.
    pub(super) fn settings(
        &self,
        read: Read,
        catalog: &dyn Catalog,
    ) -> Result<(SettingsArgs, Words), ScenarioError> {
        read(&self.given.words, self.config.as_deref(), catalog)
    }
}

/// Reads the settings of a gateway.
pub(super) fn read(
    typed: &Words,
    file: Option<&Path>,
    catalog: &dyn Catalog,
) -> Result<(SettingsArgs, Words), ScenarioError> {
    let flags = Flags::<SettingsArgs>::new(catalog);
    let words = merged(&flags, typed, file)?;
    let settings = flags.read(&words).map_err(ScenarioError::Value)?;
    Ok((settings, words))
}

/// Merges the flags over the settings in the file.
pub(super) fn merged<S: AnySettings>(
    flags: &Flags<S>,
    typed: &Words,
    file: Option<&Path>,
) -> Result<Words, ScenarioError> {
    let file = file.map(|file| flags.file(file)).transpose()?;
    Ok(flags.merge(typed, &file.unwrap_or_default()))
}

/// Adds the defaults for keys that `words` does not contain.
pub(super) fn add_missing(words: &mut Words, defaults: &[(&str, &str)]) {
    for (key, value) in defaults {
        if words.get(key).is_none() {
            words.set(key, value);
        }
    }
}

/// Folder of journals in a settings file, if the file is valid and has this setting.
pub(super) fn state_of<S: AnySettings>(file: &Path, catalog: &dyn Catalog) -> Option<PathBuf> {
    let words = Flags::<S>::new(catalog).file(file).ok()?;
    Some(words.get("state")?.into())
}

/// Flags of `check`.
#[derive(Clone, Debug, Args)]
pub(crate) struct CheckArgs<S: AnySettings> {
    #[command(flatten)]
    pub(crate) planned: PlannedArgs<S>,
    /// Print the list of problems as JSON.
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
}

/// Flags of `install`.
#[derive(Clone, Debug, Args)]
pub(crate) struct InstallArgs<S: AnySettings> {
    #[command(flatten)]
    pub(crate) planned: PlannedArgs<S>,
    /// Write files below this folder instead of /, and run no commands (for packages and tests).
    #[arg(long, value_name = "DIR", help_heading = "Host")]
    pub(crate) root: Option<PathBuf>,
    /// Print the files and commands without writing or running them.
    #[arg(long, help_heading = "Host")]
    pub(crate) dry_run: bool,
}

/// Flags of `uninstall`.
#[derive(Clone, Debug, Args)]
pub(crate) struct UninstallArgs {
    /// Keep the settings file (/etc/asymq.toml or /etc/asymq-router.toml).
    #[arg(long)]
    pub(crate) keep_settings: bool,
    /// Remove files below this folder instead of /, and run no commands (for packages and tests).
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    /// Print the files and commands without removing or running them.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// Flags of `asymq gateway restore`.
#[derive(Clone, Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The killed gateway's --state folder [default: both /run/asymq/state and /run/asymq-root/state].
    #[arg(long, value_name = "DIR")]
    pub(crate) state: Option<PathBuf>,
}

settings! {
    /// Flags that a service may set.
    pub(crate) struct HostArgs: "" {
        /// Interface on the home's side.
        pub(crate) lan: Option<String> = "IF";
        /// Interface on the Internet's side.
        pub(crate) wan: Option<String> = "IF";
        pub(crate) link: LinkArgs;
        /// Let the kernel bridge both interfaces while the gateway is stopped, killed or updated [default: false; with install: true].
        pub(crate) fail_open: Option<bool> = "true|false", arg |arg| arg.help_heading("Host");
        pub(crate) service: ServiceArgs;
    }
}

settings! {
    /// Host and outputs of a gateway or a router.
    pub(crate) struct ServiceArgs: "" {
        /// Folder that stores the interfaces' previous settings until they are restored; only its owner may have write access [default: /run/asymq/state, or /run/asymq-root/state if asymq runs as root and the service's user owns /run/asymq].
        pub(crate) state: Option<PathBuf> = "DIR", arg |arg| arg.help_heading("Host");
        /// Socket type for sending frames: af-xdp, af-packet or auto, which uses AF_XDP if possible [default: auto].
        pub(crate) send: Option<SendBy> = "WAY", arg |arg| arg.help_heading("Host");
        /// Unix socket to create, for `set` and `try` [default: none].
        pub(crate) control: Option<PathBuf> = "PATH", arg |arg| arg.help_heading("Output");
        /// Serve Prometheus metrics at http://ADDR:PORT/metrics.
        pub(crate) metrics: Option<SocketAddr> = "ADDR:PORT", arg |arg| arg.help_heading("Output");
        /// Serve a read-only status page at http://ADDR:PORT/.
        pub(crate) page: Option<SocketAddr> = "ADDR:PORT", arg |arg| arg.help_heading("Output");
    }
}

settings! {
    /// All settings of a settings file.
    pub(crate) struct SettingsArgs: "" {
        pub(crate) host: HostArgs;
        pub(crate) show: ShowArgs;
    }
}

settings! {
    /// Output on the terminal.
    pub(crate) struct ShowArgs: "" {
        /// Show a live table of rates and delays.
        pub(crate) watch: Option<bool> = "true|false", arg |arg| arg.conflicts_with("json").help_heading("Output");
        /// Print a line of JSON every second.
        pub(crate) json: Option<bool> = "true|false", arg |arg| arg.help_heading("Output");
    }
}

asymq_core::named! {
    /// Position of a gateway relative to the slow link.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub(crate) enum Role {
        /// Home side: runs the discipline before the uplink.
        #[default]
        Home = "home",
        /// Far side: regenerates ACKs that were filtered before the uplink.
        Headend = "headend",
    }
}

asymq_core::read_by_name!(Role, "unknown; use home or headend");

settings! {
    /// Settings that may change while a gateway runs.
    pub(crate) struct LinkArgs: "" {
        /// Rate of the uplink's shaper, usually 95 % of the line's. auto learns it from packets; auto:1mbit..20mbit learns it within this range [default: auto].
        pub(crate) up: Option<LineRate> = "RATE";
        /// Rate of the downlink's shaper, or auto, as in --up [default: auto for a router; no shaper for a gateway].
        pub(crate) down: Option<LineRate> = "RATE";
        /// IPv4 host to ping up to 20 times per second while a rate is learnt and no passing packet shows the line's delay [default: none].
        pub(crate) rate_probe: Option<Ipv4Addr> = "HOST";
        /// Side of the slow link where this gateway runs: home, or headend (the provider's side, where filtered ACKs are regenerated) [default: home].
        pub(crate) role: Option<Role> = "SIDE";
        /// Discipline at the uplink [default: asymq].
        pub(crate) qdisc: Option<String> = "NAME", arg |arg| arg.value_parser(nothing());
        /// Uplink buffer, in packets or bytes [default: 100 ms of full packets at --up; at least 50p, at most the larger of 5000p and 20 ms].
        pub(crate) buffer: Option<Limit> = "LIMIT";
        /// Discipline at the downlink, if the downlink is shaped (--down); with the value none, frames are sent at once [default: asymq].
        pub(crate) qdisc_down: Option<String> = "NAME", arg |arg| arg.value_parser(nothing());
        /// Downlink buffer, in packets or bytes [default: computed from --down as --buffer is from --up].
        pub(crate) buffer_down: Option<Limit> = "LIMIT";
        pub(crate) qdisc_params: Params;
        /// Parameter of the downlink's discipline, for example data-share=0.3; repeatable [default: the uplink's value; for ack-queue and other parts, the --qdisc-down discipline's own].
        pub(crate) param_down: Vec<String> = "NAME=VALUE", arg |arg| arg.help_heading("Discipline");
        /// Number of ACKs that a headend creates for each filtered ACK, 0 to 64 [default: 1].
        pub(crate) regenerate: Option<u32> = "R", read within(0..=64), arg |arg| arg.help_heading("Headend");
        /// Times at which regenerated ACKs are sent: at-once, paced (spread over the time since the previous ACK) or smoothed (spread over the mean time between ACKs) [default: paced].
        pub(crate) regenerate_spacing: Option<Spacing> = "SPACING", arg |arg| arg.help_heading("Headend");
        /// Payload of a full TCP segment, from which a headend computes the number of filtered ACKs [default: 1460b].
        pub(crate) mss: Option<Bytes> = "SIZE", arg |arg| arg.help_heading("Headend");
        /// Bytes that the link adds to a packet: a number, or one or more of tc-cake's keywords, for example docsis, ethernet, pppoe-ptm, or pppoe-vcmux ether-vlan [default: the Ethernet header].
        pub(crate) overhead: Vec<String> = "N|WORD", read overhead_words, arg |arg| arg.num_args(1..).allow_negative_numbers(true).help_heading("Link layer");
        /// Minimum number of bytes that a packet takes on the link [default: none; some keywords of --overhead set it].
        pub(crate) mpu: Option<u32> = "N", arg |arg| arg.help_heading("Link layer");
        /// Count each packet as whole ATM cells of 53 bytes (ADSL) [default: false].
        pub(crate) atm: Option<bool> = "true|false", arg |arg| arg.conflicts_with("ptm").help_heading("Link layer");
        /// Count the bytes that PTM's 64b/65b encoding adds (VDSL2) [default: false].
        pub(crate) ptm: Option<bool> = "true|false", arg |arg| arg.help_heading("Link layer");
    }
}

impl HostArgs {
    /// Builds the configuration from these flags.
    pub(crate) fn config(&self, catalog: &dyn Catalog) -> Result<GatewayConfig, BadArgument> {
        let missing = [
            (self.lan.is_none(), "--lan <IF>"),
            (self.wan.is_none(), "--wan <IF>"),
            (
                self.link.up.is_none() && !self.link.learns_unasked(),
                "--up <RATE>",
            ),
        ];
        let missing: Vec<&str> = missing
            .iter()
            .filter_map(|(is, flag)| is.then_some(*flag))
            .collect();
        match (&self.lan, &self.wan) {
            (Some(lan), Some(wan)) if missing.is_empty() => Ok(GatewayConfig {
                lan: lan.clone(),
                wan: wan.clone(),
                link: self.link.config(catalog)?,
            }),
            _ => Err(BadArgument::new(
                "",
                format!("missing: {}", missing.join(", ")),
            )),
        }
    }
}

impl LinkArgs {
    /// True if the uplink's rate is learnt because no flag sets it.
    pub(crate) fn learns_unasked(&self) -> bool {
        self.up.is_none() && self.role.unwrap_or_default() == Role::Home
    }

    /// Builds the configuration from these flags.
    pub(crate) fn config(&self, catalog: &dyn Catalog) -> Result<LinkConfig, BadArgument> {
        // Lists all fields, so that the compiler reports an unused one.
        let Self {
            up,
            down,
            rate_probe,
            role,
            qdisc,
            buffer,
            qdisc_down,
            buffer_down,
            qdisc_params,
            param_down,
            regenerate,
            regenerate_spacing,
            mss,
            overhead,
            mpu,
            atm,
            ptm,
        } = self;
        let regenerate_spacing = *regenerate_spacing;
        let up = match up {
            None if self.learns_unasked() => LineRate::Auto(RateRange::ANY),
            up => up.ok_or_else(|| BadArgument::new("", "missing: --up <RATE>"))?,
        };
        let auto = [Some(up), *down].map(|rate| rate.and_then(LineRate::range));
        // The home gateway shapes the downlink if its rate is given or learnt.
        let default =
            (role.unwrap_or_default() == Role::Home && down.is_some()).then_some(DEFAULT_QDISC);
        let qdisc_down = qdisc_down.as_deref().or(default);
        let (up, down) = (
            up.start(Direction::Up),
            down.map(|down| down.start(Direction::Down)),
        );
        let down_for = |flag: &str, value: &str, what: &str| {
            let message = format!("{what}; add its rate, for example --down 10mbit");
            down.ok_or_else(|| BadArgument::new(flag, message).of_value(value))
        };
        let overhead = link_overhead(overhead, *mpu, *atm, *ptm)
            .map_err(|error| BadArgument::new("--overhead", error.to_string()))?;
        let surroundings = surroundings(&overhead);
        let discipline = |name: &str, given: &Params, link, reverse, limit| {
            let place = Place {
                link,
                reverse,
                limit,
            };
            let config = resolve(catalog, name, given, &surroundings, place);
            config.map(Stage::Queue).map_err(BadArgument::from)
        };
        let uplink = match (role.unwrap_or_default(), regenerate.unwrap_or(1)) {
            (Role::Home, _) if qdisc.as_deref() == Some(NONE) => Stage::Direct,
            (Role::Home, _) => {
                let buffer = buffer.unwrap_or_else(|| default_buffer(up));
                let name = qdisc.as_deref().unwrap_or(DEFAULT_QDISC);
                discipline(name, qdisc_params, up, down, buffer)?
            }
            (Role::Headend, 0) => Stage::Direct,
            (Role::Headend, factor) => {
                let segment = mss.map_or(1460, |mss| mss.0.clamp(1, 65_535) as u32);
                let down = down_for("--role", "headend", "spaces ACKs by the downlink")?;
                Stage::Regenerator(RegeneratorParams {
                    factor,
                    segment,
                    spacing: regenerate_spacing.unwrap_or_default(),
                    max_gap: down.tx_time(segment + 40) / u64::from(factor),
                })
            }
        };
        let downlink = match qdisc_down {
            None | Some(NONE) => Stage::Direct,
            Some(name) => {
                let down = down_for("--qdisc-down", name, "shapes the downlink")?;
                let buffer = buffer_down.unwrap_or_else(|| default_buffer(down));
                let given = downlink_params(qdisc_params, param_down, catalog, name);
                discipline(name, &given, down, Some(up), buffer)?
            }
        };
        Ok(LinkConfig {
            up,
            down,
            auto,
            rate_probe: *rate_probe,
            overhead,
            uplink,
            downlink,
        })
    }
}

fn link_overhead(
    words: &[String],
    mpu: Option<u32>,
    atm: Option<bool>,
    ptm: Option<bool>,
) -> Result<Overhead, UnitError> {
    let mut words: Vec<String> = words.iter().map(|words| keywords(words)).collect();
    if let Some(mpu) = mpu {
        words.push(format!("mpu {mpu}"));
    }
    for (given, word) in [(atm, "atm"), (ptm, "ptm")] {
        if given == Some(true) {
            words.push(word.into());
        }
    }
    words.join(" ").parse()
}

/// Parser for `none`: no discipline.
fn nothing() -> PossibleValuesParser {
    PossibleValuesParser::new([PossibleValue::new(NONE).help("Frames pass without a queue")])
}

/// Value of `--qdisc` and `--qdisc-down` that sends frames at once.
pub(super) const NONE: &str = "none";

/// Formats tc-cake's keywords, with `overhead` before a bare number.
pub(super) fn keywords(words: &str) -> String {
    let words = words.split_whitespace();
    let words: Vec<String> = words
        .map(|word| match word.parse::<i64>() {
            Ok(number) => format!("overhead {number}"),
            Err(_) => word.into(),
        })
        .collect();
    words.join(" ")
}

fn overhead_words(words: &str) -> Result<String, String> {
    let read = keywords(words).parse::<Overhead>();
    read.map(|_| words.into())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::catalog::Standard;

    fn config(more: &str) -> LinkConfig {
        untold(&format!("--down 10mbit {more}"))
    }

    /// A configuration that does not contain the downlink's rate.
    fn untold(more: &str) -> LinkConfig {
        read(&format!("--lan a --wan b --up 1mbit {more}")).unwrap()
    }

    fn read(line: &str) -> Result<LinkConfig, BadArgument> {
        let flags = Flags::<SettingsArgs>::new(&Standard);
        let words = flags.given(line.split_whitespace().map(str::to_owned))?;
        let config = flags.read(&words)?.host.config(&Standard);
        config.map(|config| config.link)
    }

    #[test]
    fn disciplines_without_a_downlink_rate_need_only_up() {
        for flags in ["", "--qdisc sad", "--qdisc cake", "--qdisc-down none"] {
            let link = untold(flags);
            assert_eq!(link.down, None);
            match link.uplink {
                Stage::Queue(config) => assert_eq!(config.reverse, None, "{flags}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn a_rate_may_be_learnt_within_a_range_and_a_downlink_with_a_rate_is_shaped() {
        let link = |rates: &str| read(&format!("--lan a --wan b {rates}"));
        let range = |text: &str| RateRange::of_auto(text).unwrap().unwrap();
        let both = link("--up auto:1mbit..20mbit --down auto").unwrap();
        assert_eq!(
            both.auto,
            [Some(range("auto:1mbit..20mbit")), Some(RateRange::ANY)]
        );
        assert_eq!(both.up, "20mbit".parse().unwrap());
        let one = link("--up auto --down 40mbit").unwrap();
        assert_eq!(one.auto, [Some(RateRange::ANY), None]);
        for down in [both.downlink, one.downlink] {
            let Stage::Queue(down) = down else {
                panic!("{down:?}")
            };
            assert_eq!(down.qdisc, "asymq");
            let isolation = down.params.text("isolation");
            assert_eq!(isolation.as_deref(), Some("dual-dsthost"));
        }
        for unshaped in ["--up auto --down 40mbit --qdisc-down none", "--up auto"] {
            assert_eq!(link(unshaped).unwrap().downlink, Stage::Direct);
        }
        let headend = link("--role headend --up 1mbit --down 40mbit").unwrap();
        assert_eq!(headend.downlink, Stage::Direct);
        assert_eq!(link("").unwrap(), link("--up auto").unwrap());
        let error = link("--role headend --down 40mbit").unwrap_err();
        assert_eq!(error.to_string(), "missing: --up <RATE>");
        let error = link("--up auto:20mbit..1mbit").unwrap_err().to_string();
        assert!(
            error.contains("write auto, or auto:1mbit..20mbit"),
            "{error}"
        );
    }

    #[test]
    fn overhead_is_given_in_bytes_or_in_words() {
        for (flags, numbers) in [
            ("", "noatm"),
            ("--overhead 44 --atm", "overhead 44 atm"),
            ("--overhead -4", "overhead -4 noatm"),
            ("--overhead 10 --mpu 64 --ptm", "overhead 10 mpu 64 ptm"),
            ("--overhead docsis", "overhead 18 mpu 64 noatm"),
            ("--overhead pppoe-vcmux ether-vlan", "overhead 36 atm"),
        ] {
            assert_eq!(config(flags).overhead.to_string(), numbers, "{flags}");
        }
    }

    #[test]
    fn aq_counts_packets_as_the_link_charges_them() {
        let sized = |ack: &str, data: &str| (ack.to_owned(), data.to_owned());
        let sizes = |flags: &str| match config(&format!("--qdisc aq {flags}")).uplink {
            Stage::Queue(config) => {
                let size = |name| config.params.text(name).unwrap();
                (size("ack-size"), size("data-size"))
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(sizes(""), sized("66b", "1514b"));
        assert_eq!(sizes("--overhead 0"), sized("52b", "1500b"));
        // 52 + 40 bytes fill 2 cells; 1500 + 40 bytes fill 33.
        assert_eq!(sizes("--overhead pppoe-llcsnap"), sized("106b", "1749b"));
        assert_eq!(sizes("--ack-size 80b"), sized("80b", "1514b"));
    }

    #[test]
    fn the_buffer_grows_with_the_rate() {
        let buffer = |rate: &str| default_buffer(rate.parse().unwrap());
        assert_eq!(buffer("1mbit"), Limit::Packets(50));
        // 100 ms at 100 Mbit/s are 1.25 MB, 825 frames of 1514 bytes.
        assert_eq!(buffer("100mbit"), Limit::Packets(825));
        assert_eq!(buffer("1gbit"), Limit::Packets(5000));
        // 20 ms at 10 Gbit/s are 25 MB.
        assert_eq!(buffer("10gbit"), Limit::Packets(16_512));
        assert_eq!(buffer("1000gbit"), Limit::Packets(100_000));
    }

    #[test]
    fn one_name_is_one_discipline_wherever_it_runs() {
        let uplink = |flags| match config(flags).uplink {
            Stage::Queue(config) => config,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            uplink("--qdisc vaq").params.text("ack-queue").as_deref(),
            Some("sad")
        );
        let fifo = uplink("--qdisc vaq --ack-queue fifo --ack-limit 30p");
        assert_eq!(fifo.params.text("ack-queue").as_deref(), Some("fifo"));
        assert_eq!(fifo.params.text("ack-limit").as_deref(), Some("30p"));
    }

    #[test]
    fn the_downlink_has_parameters_of_its_own() {
        let downlink = |flags| match config(flags).downlink {
            Stage::Queue(config) => config,
            other => panic!("{other:?}"),
        };
        let down = downlink("--qdisc-down wrr --data-share 0.7 --param-down data-share=0.2");
        assert_eq!(down.params.text("data-share").as_deref(), Some("0.2"));
        assert_eq!(config("--qdisc-down none").downlink, Stage::Direct);
    }

    #[test]
    fn a_flag_replaces_keys_of_the_file_that_contradict_it() {
        let flags = Flags::<SettingsArgs>::new(&Standard);
        let words = |line: &str| {
            flags
                .given(line.split_whitespace().map(str::to_owned))
                .unwrap()
        };
        let file = words("--atm --watch --overhead=44 --data-share=0.3");
        let merged = flags.merge(&words("--ptm --json --overhead 10 ether-vlan"), &file);
        let settings = flags.read(&merged).unwrap();
        let link = &settings.host.link;
        assert_eq!((link.atm, link.ptm), (None, Some(true)));
        assert_eq!(
            (settings.show.watch, settings.show.json),
            (None, Some(true))
        );
        assert_eq!(link.overhead, ["10", "ether-vlan"]);
        assert_eq!(link.qdisc_params.get("data-share"), Some("0.3"));
    }
}
