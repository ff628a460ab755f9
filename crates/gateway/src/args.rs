//! A gateway as typed.

use crate::gateway::GatewayConfig;
use asymq_core::overhead::{Overhead, OverheadError};
use asymq_core::parts::aq::DataPerAck;
use asymq_core::units::{Bytes, Limit, Rate};
use asymq_scenario::{DataPerAckArg, QdiscArgs, QdiscName};
use clap::Args;
use std::net::SocketAddr;

/// Flags of `asymq gateway`.
#[derive(Clone, Debug, Args)]
pub struct GatewayArgs {
    /// Interface towards home.
    #[arg(long, value_name = "IF")]
    pub lan: String,
    /// Interface towards the Internet.
    #[arg(long, value_name = "IF")]
    pub wan: String,
    /// Uplink capacity, which the gateway shapes to; take 95 % of what you measured.
    #[arg(long, value_name = "RATE")]
    pub up: Rate,
    /// Downlink capacity.
    #[arg(long, value_name = "RATE")]
    pub down: Rate,
    /// Discipline at the uplink.
    #[arg(long, value_name = "NAME", default_value = "aq")]
    pub qdisc: QdiscName,
    /// Uplink buffer, in packets or bytes [default: 50p, or 100 ms of full packets if that is more].
    #[arg(long, value_name = "LIMIT")]
    pub buffer: Option<Limit>,
    /// The discipline's parameters.
    #[command(flatten)]
    pub qdisc_params: QdiscArgs,
    /// What the link adds to a packet: bytes, or tc-cake's words (docsis, ethernet, pppoe-ptm,
    /// pppoe-vcmux ether-vlan, ...) [default: the frame as it is].
    #[arg(long, value_name = "N|WORD", num_args = 1.., allow_negative_numbers = true, help_heading = "Link layer")]
    pub overhead: Vec<String>,
    /// The least bytes that the link spends on a packet.
    #[arg(long, value_name = "N", help_heading = "Link layer")]
    pub mpu: Option<u32>,
    /// The link carries ATM cells (ADSL).
    #[arg(long, conflicts_with = "ptm", help_heading = "Link layer")]
    pub atm: bool,
    /// The link uses PTM's 64b/65b code (VDSL2).
    #[arg(long, help_heading = "Link layer")]
    pub ptm: bool,
    /// Show a live table.
    #[arg(long, conflicts_with = "json", help_heading = "Output")]
    pub watch: bool,
    /// Print a line of JSON every second.
    #[arg(long, help_heading = "Output")]
    pub json: bool,
    /// Serve Prometheus metrics at http://ADDR:PORT/metrics.
    #[arg(long, value_name = "ADDR:PORT", help_heading = "Output")]
    pub metrics: Option<SocketAddr>,
}

impl GatewayArgs {
    /// What these flags ask for.
    ///
    /// # Errors
    /// The words after `--overhead` are not understood, or a number there is out of range.
    pub fn config(&self) -> Result<GatewayConfig, OverheadError> {
        let overhead = self.link_overhead()?;
        let buffer = self.buffer.unwrap_or_else(|| default_buffer(self.up));
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
        Ok(GatewayConfig {
            lan: self.lan.clone(),
            wan: self.wan.clone(),
            up: self.up,
            down: self.down,
            overhead,
            discipline: self.qdisc.config(&params, self.up, self.down, buffer),
        })
    }

    fn link_overhead(&self) -> Result<Overhead, OverheadError> {
        let mut words: Vec<String> = Vec::new();
        for word in self
            .overhead
            .iter()
            .flat_map(|words| words.split_whitespace())
        {
            if word.parse::<i64>().is_ok() {
                words.push("overhead".into());
            }
            words.push(word.into());
        }
        if let Some(mpu) = self.mpu {
            words.push(format!("mpu {mpu}"));
        }
        for (given, word) in [(self.atm, "atm"), (self.ptm, "ptm")] {
            if given {
                words.push(word.into());
            }
        }
        words.join(" ").parse()
    }
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

    fn config(more: &str) -> GatewayConfig {
        let line = format!("x --lan a --wan b --up 1mbit --down 10mbit {more}");
        let line = Line::try_parse_from(line.split_whitespace()).unwrap();
        line.args.config().unwrap()
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
        let sizes = |flags| match config(flags).discipline {
            Config::Machine(Composition {
                controller: ControllerKind::Aq(params),
                ..
            }) => (params.ack_size, params.data_size),
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
