//! A gateway as typed.

use crate::forwarder::LinkConfig;
use crate::gateway::GatewayConfig;
use crate::lane::Stage;
use asymq_core::overhead::{Overhead, OverheadError};
use asymq_core::parts::RegeneratorParams;
use asymq_core::parts::aq::DataPerAck;
use asymq_core::units::{Bytes, Limit, Rate};
use asymq_scenario::{BadArgument, DataPerAckArg, QdiscArgs, QdiscName, Share};
use clap::builder::PossibleValue;
use clap::{Args, Subcommand, ValueEnum};
use serde::Serialize;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::LazyLock;

/// Flags of `asymq gateway`.
#[derive(Clone, Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct GatewayArgs {
    /// Instead of running one: what to tell a running gateway.
    #[command(subcommand)]
    pub command: Option<GatewayCommand>,
    /// Settings file (TOML, same names); flags override it. SIGHUP reads it again.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// What the file may say too.
    #[command(flatten)]
    pub settings: SettingsArgs,
}

/// What to tell a running gateway.
#[derive(Clone, Debug, Subcommand)]
pub enum GatewayCommand {
    /// Change a running gateway without losing a packet; what is not named stays as it is.
    #[command(
        after_help = "Example: asymq gateway set --control /run/asymq.sock --qdisc sad --weights 0.3"
    )]
    Set(Box<SetArgs>),
}

/// Flags of `asymq gateway set`.
#[derive(Clone, Debug, Args)]
pub struct SetArgs {
    /// The running gateway's control socket.
    #[arg(long, value_name = "PATH")]
    pub control: PathBuf,
    /// What to change.
    #[command(flatten)]
    pub link: LinkArgs,
}

/// All that a settings file may say.
#[derive(Clone, Debug, Default, Args)]
pub struct SettingsArgs {
    /// Interface towards home.
    #[arg(long, value_name = "IF")]
    pub lan: Option<String>,
    /// Interface towards the Internet.
    #[arg(long, value_name = "IF")]
    pub wan: Option<String>,
    /// What may change while it runs.
    #[command(flatten)]
    pub link: LinkArgs,
    /// Take changes at this unix socket, from `asymq gateway set`.
    #[arg(long, value_name = "PATH", help_heading = "Output")]
    pub control: Option<PathBuf>,
    /// Show a live table.
    #[arg(long, conflicts_with = "json", help_heading = "Output",
          num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false")]
    pub watch: Option<bool>,
    /// Print a line of JSON every second.
    #[arg(long, help_heading = "Output",
          num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false")]
    pub json: Option<bool>,
    /// Serve Prometheus metrics at http://ADDR:PORT/metrics.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Output")]
    pub metrics: Option<SocketAddr>,
}

/// The side of the slow link that a gateway stands on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Before the uplink: its discipline is here.
    #[default]
    Home,
    /// Beyond the uplink: ACKs that were given up before it are made again here.
    Headend,
}

/// A discipline, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DownQdisc {
    /// Frames pass at once.
    None,
    /// They wait in this.
    Named(QdiscName),
}

impl ValueEnum for DownQdisc {
    fn value_variants<'a>() -> &'a [Self] {
        static ALL: LazyLock<Vec<DownQdisc>> = LazyLock::new(|| {
            let named = QdiscName::value_variants().iter();
            std::iter::once(DownQdisc::None)
                .chain(named.map(|name| DownQdisc::Named(*name)))
                .collect()
        });
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::None => Some(PossibleValue::new("none").help("Frames pass at once")),
            Self::Named(name) => name.to_possible_value(),
        }
    }
}

impl Serialize for DownQdisc {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_str("none"),
            Self::Named(name) => name.serialize(serializer),
        }
    }
}

/// What may change while a gateway runs.
#[derive(Clone, Debug, Default, Args, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LinkArgs {
    /// Uplink capacity, which the gateway shapes to; take 95 % of what you measured.
    #[arg(long, value_name = "RATE")]
    pub up: Option<Rate>,
    /// Downlink capacity.
    #[arg(long, value_name = "RATE")]
    pub down: Option<Rate>,
    /// Which side of the slow link this is [default: home].
    #[arg(long, value_name = "SIDE")]
    pub role: Option<Role>,
    /// Discipline at the uplink [default: aq].
    #[arg(long, value_name = "NAME")]
    pub qdisc: Option<QdiscName>,
    /// Uplink buffer, in packets or bytes [default: 50p, or 100 ms of full packets if that is more].
    #[arg(long, value_name = "LIMIT")]
    pub buffer: Option<Limit>,
    /// Discipline at the downlink, which is then shaped too [default: none].
    #[arg(long, value_name = "NAME")]
    pub qdisc_down: Option<DownQdisc>,
    /// Downlink buffer [default: as for the uplink].
    #[arg(long, value_name = "LIMIT")]
    pub buffer_down: Option<Limit>,
    /// The disciplines' parameters.
    #[command(flatten)]
    #[serde(flatten)]
    pub qdisc_params: QdiscArgs,
    /// Data's share of the downlink under wrr and cbq there [default: weights].
    #[arg(long, value_name = "SHARE", help_heading = "Discipline")]
    pub weights_down: Option<Share>,
    /// ACKs that a headend makes for each that was given up; 0 makes none [default: 1].
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(0..=64), help_heading = "Headend")]
    pub regenerate: Option<u32>,
    /// Send what is made at once, instead of spread over the time since the ACK before.
    #[arg(long, help_heading = "Headend",
          num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false")]
    pub at_once: Option<bool>,
    /// Payload of a full segment, for which an ACK stood before it was given up [default: 1460b].
    #[arg(long, value_name = "SIZE", help_heading = "Headend")]
    pub mss: Option<Bytes>,
    /// What the link adds to a packet: bytes, or tc-cake's words (docsis, ethernet, pppoe-ptm,
    /// pppoe-vcmux ether-vlan, ...) [default: the frame as it is].
    #[arg(long, value_name = "N|WORD", num_args = 1.., allow_negative_numbers = true,
          value_parser = overhead_words, help_heading = "Link layer")]
    pub overhead: Vec<String>,
    /// The least bytes that the link spends on a packet.
    #[arg(long, value_name = "N", help_heading = "Link layer")]
    pub mpu: Option<u32>,
    /// The link carries ATM cells (ADSL).
    #[arg(long, conflicts_with = "ptm", help_heading = "Link layer",
          num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false")]
    pub atm: Option<bool>,
    /// The link uses PTM's 64b/65b code (VDSL2).
    #[arg(long, help_heading = "Link layer",
          num_args = 0..=1, require_equals = true, default_missing_value = "true", value_name = "true|false")]
    pub ptm: Option<bool>,
}

impl SettingsArgs {
    /// These values, and `other`'s where these are absent.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self {
            lan: self.lan.or(other.lan),
            wan: self.wan.or(other.wan),
            link: self.link.or(other.link),
            control: self.control.or(other.control),
            watch: self.watch.or(other.watch),
            json: self.json.or(other.json),
            metrics: self.metrics.or(other.metrics),
        }
    }

    /// What these flags ask for.
    ///
    /// # Errors
    /// A flag is missing, or the words after `--overhead` are not understood.
    pub fn config(&self) -> Result<GatewayConfig, BadArgument> {
        let missing = [
            (self.lan.is_none(), "--lan <IF>"),
            (self.wan.is_none(), "--wan <IF>"),
            (self.link.up.is_none(), "--up <RATE>"),
            (self.link.down.is_none(), "--down <RATE>"),
        ];
        let missing: Vec<&str> = missing
            .iter()
            .filter_map(|(is, flag)| is.then_some(*flag))
            .collect();
        match (&self.lan, &self.wan) {
            (Some(lan), Some(wan)) if missing.is_empty() => Ok(GatewayConfig {
                lan: lan.clone(),
                wan: wan.clone(),
                link: self.link.config()?,
            }),
            _ => Err(bad("", format!("missing: {}", missing.join(", ")))),
        }
    }
}

impl LinkArgs {
    /// These values, and `other`'s where these are absent.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        // One code takes the place of the other.
        let (atm, ptm) = match (self.atm, self.ptm) {
            (None, None) => (other.atm, other.ptm),
            given => given,
        };
        Self {
            up: self.up.or(other.up),
            down: self.down.or(other.down),
            role: self.role.or(other.role),
            qdisc: self.qdisc.or(other.qdisc),
            buffer: self.buffer.or(other.buffer),
            qdisc_down: self.qdisc_down.or(other.qdisc_down),
            buffer_down: self.buffer_down.or(other.buffer_down),
            qdisc_params: self.qdisc_params.or(other.qdisc_params),
            weights_down: self.weights_down.or(other.weights_down),
            regenerate: self.regenerate.or(other.regenerate),
            at_once: self.at_once.or(other.at_once),
            mss: self.mss.or(other.mss),
            overhead: match self.overhead.is_empty() {
                true => other.overhead,
                false => self.overhead,
            },
            mpu: self.mpu.or(other.mpu),
            atm,
            ptm,
        }
    }

    /// What these flags ask for.
    ///
    /// # Errors
    /// A rate is missing, or a number of the overhead is out of range.
    pub fn config(&self) -> Result<LinkConfig, BadArgument> {
        let need =
            |rate: Option<Rate>, flag| rate.ok_or_else(|| bad("", format!("missing: {flag}")));
        let (up, down) = (
            need(self.up, "--up <RATE>")?,
            need(self.down, "--down <RATE>")?,
        );
        let overhead = self
            .link_overhead()
            .map_err(|error| bad("--overhead", error.to_string()))?;
        let charged = |packet: u32| {
            let frame = if overhead.counts_frames() { 14 } else { 0 };
            Some(Bytes(overhead.charge_len(packet + frame).into()))
        };
        // Linux's ACKs carry timestamps, and it delays them.
        let real = QdiscArgs {
            ack_size: charged(52),
            data_size: charged(1500),
            data_per_ack: Some(DataPerAckArg(DataPerAck::Measured)),
            ..QdiscArgs::default()
        };
        let params = self.qdisc_params.clone().or(real);
        let params_down = QdiscArgs {
            weights: self.weights_down.or(params.weights),
            ..params.clone()
        };
        let uplink = match (self.role.unwrap_or_default(), self.regenerate.unwrap_or(1)) {
            (Role::Home, _) => {
                let buffer = self.buffer.unwrap_or_else(|| default_buffer(up));
                let name = self.qdisc.unwrap_or(QdiscName::Aq);
                let params = params.on_real_packets(name);
                Stage::Queue(name.config(&params, up, down, buffer))
            }
            (Role::Headend, 0) => Stage::AtOnce,
            (Role::Headend, factor) => Stage::Regenerator(RegeneratorParams {
                factor,
                segment: self.mss.map_or(1460, |mss| mss.0.clamp(1, 65_535) as u32),
                paced: !self.at_once.unwrap_or(false),
            }),
        };
        let downlink = match self.qdisc_down {
            None | Some(DownQdisc::None) => Stage::AtOnce,
            Some(DownQdisc::Named(name)) => {
                let buffer = self.buffer_down.unwrap_or_else(|| default_buffer(down));
                let params = params_down.on_real_packets(name);
                Stage::Queue(name.config(&params, down, up, buffer))
            }
        };
        Ok(LinkConfig {
            up,
            down,
            overhead,
            uplink,
            downlink,
        })
    }

    fn link_overhead(&self) -> Result<Overhead, OverheadError> {
        let mut words: Vec<String> = self.overhead.iter().map(|words| keywords(words)).collect();
        if let Some(mpu) = self.mpu {
            words.push(format!("mpu {mpu}"));
        }
        for (given, word) in [(self.atm, "atm"), (self.ptm, "ptm")] {
            if given == Some(true) {
                words.push(word.into());
            }
        }
        words.join(" ").parse()
    }

    /// What happens to frames, in a few words.
    pub(crate) fn title(&self) -> String {
        let up = match self.role.unwrap_or_default() {
            Role::Home => self.qdisc.unwrap_or(QdiscName::Aq).to_string(),
            Role::Headend => "headend".into(),
        };
        match self.qdisc_down {
            Some(DownQdisc::Named(down)) => format!("{up}, {down} down"),
            None | Some(DownQdisc::None) => up,
        }
    }
}

fn bad(argument: &str, message: String) -> BadArgument {
    BadArgument {
        argument: argument.into(),
        value: None,
        message,
    }
}

/// tc-cake's words, with the keyword that a bare number leaves out.
fn keywords(words: &str) -> String {
    let words = words.split_whitespace();
    let words: Vec<String> = words
        .map(|word| match word.parse::<i64>() {
            Ok(number) => format!("overhead {number}"),
            Err(_) => word.into(),
        })
        .collect();
    words.join(" ")
}

fn overhead_words(words: &str) -> Result<String, OverheadError> {
    keywords(words).parse::<Overhead>().map(|_| words.into())
}

/// The paper's 50 packets, or 100 ms of full frames where that is more: short of what a fast link
/// needs otherwise, and at most some 120 MB at 10 Gbit/s.
fn default_buffer(up: Rate) -> Limit {
    let packets = up.bits_per_sec() / (10 * 8 * 1514);
    Limit::Packets(u32::try_from(packets.clamp(50, 100_000)).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::config::Config;
    use asymq_core::disciplines::{Composition, ControllerKind};
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: GatewayArgs,
    }

    fn config(more: &str) -> LinkConfig {
        let line = format!("x --lan a --wan b --up 1mbit --down 10mbit {more}");
        let line = Line::try_parse_from(line.split_whitespace()).unwrap();
        line.args.settings.config().unwrap().link
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
    fn aq_reckons_with_packets_as_the_link_charges_them() {
        let sizes = |flags| match config(flags).uplink {
            Stage::Queue(Config::Machine(Composition {
                controller: ControllerKind::Aq(params),
                ..
            })) => (params.ack_size, params.data_size),
            other => panic!("{other:?}"),
        };
        assert_eq!(sizes(""), (66, 1514));
        assert_eq!(sizes("--overhead 0"), (52, 1500));
        // 52 + 40 bytes fill 2 cells, 1500 + 40 fill 33.
        assert_eq!(sizes("--overhead pppoe-llcsnap"), (106, 1749));
        assert_eq!(sizes("--ack-size 80b"), (80, 1514));
    }

    #[test]
    fn the_buffer_grows_with_the_rate() {
        let buffer = |rate: &str| default_buffer(rate.parse().unwrap());
        assert_eq!(buffer("1mbit"), Limit::Packets(50));
        // 100 ms at 100 Mbit/s are 1.25 MB, 825 frames of 1514 bytes.
        assert_eq!(buffer("100mbit"), Limit::Packets(825));
        assert_eq!(buffer("1000gbit"), Limit::Packets(100_000));
    }
}
