//! `asymq model`: AQ's equations and the AMP model for a link.

use crate::output::{self, Table, rate, time};
use asymq_args::BadArgument;
use asymq_core::catalog::link_rate;
use asymq_core::control::model::{
    AckDemand, Amp, Bound, Capacities, FullRates, OutOfReach, worst_delay,
};
use asymq_core::decide::overhead::Overhead;
use asymq_core::hold::split_buffer;
use asymq_core::units::{Bytes, Limit, Rate, Share, UnitError};
use clap::{Args, Command, FromArgMatches};
use serde_json::{Value, json};

/// Compute the rates, buffers and delays of a link from the equations of Asymmetric Queueing (AQ) and the AMP model (docs/notes/papers.md).
#[derive(Debug, Args)]
#[command(after_help = "Example: asymq model --up 1mbit --down 10mbit")]
pub(crate) struct ModelArgs {
    /// Uplink capacity.
    #[arg(long, value_name = "RATE", default_value = "1mbit", value_parser = link_rate)]
    up: Rate,
    /// Downlink capacity.
    #[arg(long, value_name = "RATE", default_value = "10mbit", value_parser = link_rate)]
    down: Rate,
    /// Bytes of an ACK on the link.
    #[arg(long, value_name = "SIZE", default_value = "40b", value_parser = size(20))]
    ack_size: u32,
    /// Bytes of a full data packet on the link.
    #[arg(long, value_name = "SIZE", default_value = "1500b", value_parser = size(41))]
    data_size: u32,
    /// Data packets that an ACK acknowledges, 1 to 64 (use 2 for delayed ACKs).
    #[arg(long, value_name = "N", default_value = "1", value_parser = number::<1, 64>)]
    data_per_ack: f64,
    /// Uplink buffer, in packets or bytes.
    #[arg(long, value_name = "LIMIT", default_value = "50p")]
    buffer: Limit,
    /// Rate of non-TCP traffic on the uplink.
    #[arg(long, value_name = "RATE")]
    non_tcp_up: Option<Rate>,
    /// Rate of non-TCP traffic on the downlink.
    #[arg(long, value_name = "RATE")]
    non_tcp_down: Option<Rate>,
    /// AMP's M: data packets sent per ACK that passes the uplink, 1 to 1000; more than --data-per-ack if the uplink filters ACKs [default: --data-per-ack].
    #[arg(long, value_name = "M", value_parser = number::<1, 1000>)]
    packets_per_ack: Option<f64>,
    /// AMP's g: share of the uplink for data, 0 to 1.
    #[arg(long, value_name = "G", default_value = "0", value_parser = number::<0, 1>)]
    data_share: f64,
    /// AMP's f: share of the downlink for data, 0 to 1.
    #[arg(long, value_name = "F", default_value = "1", value_parser = number::<0, 1>)]
    data_share_down: f64,
    /// Print JSON (docs/reference/json.md).
    #[arg(long)]
    json: bool,
}

/// A link, and the rates that fill both of its directions. Rates are in bit/s.
struct Model<'a> {
    args: &'a ModelArgs,
    non_tcp_up: f64,
    non_tcp_down: f64,
    capacities: Capacities,
    demand: AckDemand,
    solved: Result<FullRates, OutOfReach>,
    /// The AMP model (SAD, sec. 2).
    amp: Amp,
}

pub(crate) fn run(args: &ModelArgs) -> anyhow::Result<()> {
    let model = Model::new(args);
    match args.json {
        true => output::print_json(&model.json()),
        false => output::print(&model.in_words()),
    }
}

/// Computes the result for these flags, as `--json` prints it.
pub(crate) fn answer_words(words: impl IntoIterator<Item = String>) -> Result<Value, BadArgument> {
    let mut parser = ModelArgs::augment_args(Command::new("model"))
        .no_binary_name(true)
        .disable_help_flag(true);
    let args = parser
        .try_get_matches_from_mut(words)
        .and_then(|matches| ModelArgs::from_arg_matches(&matches))
        .map_err(|error| BadArgument::of_clap(&error, &parser))?;
    Ok(Model::new(&args).json())
}

fn bits(rate: Rate) -> f64 {
    rate.bits_per_sec() as f64
}

impl<'a> Model<'a> {
    fn new(args: &'a ModelArgs) -> Self {
        let [non_tcp_up, non_tcp_down] =
            [args.non_tcp_up, args.non_tcp_down].map(|rate| rate.map_or(0.0, bits));
        let capacities = Capacities {
            up: bits(args.up) - non_tcp_up,
            down: bits(args.down) - non_tcp_down,
        };
        let demand = AckDemand::new(args.ack_size, args.data_size, args.data_per_ack);
        Self {
            args,
            non_tcp_up,
            non_tcp_down,
            capacities,
            demand,
            solved: capacities.full_rates(demand, demand),
            amp: Amp {
                capacities,
                ack_size: args.ack_size,
                packet_size: args.data_size,
                packets_per_ack: args.packets_per_ack.unwrap_or(args.data_per_ack),
                reverse_share: args.data_share,
                forward_share: args.data_share_down,
            },
        }
    }

    /// True if other traffic leaves capacity to TCP in both directions. Otherwise asymmetry and AMP are undefined.
    fn is_shared(&self) -> bool {
        self.solved != Err(OutOfReach::NoCapacity)
    }

    fn asymmetry(&self) -> f64 {
        self.capacities.normalized_asymmetry(self.demand)
    }

    /// Minimum uplink rate at which eq. 11 holds.
    fn least_up(&self) -> f64 {
        self.capacities.least_uplink(self.demand) + self.non_tcp_up
    }

    /// Worst-case queueing delay under DropTail in ms (eq. 12).
    fn droptail_ms(&self) -> f64 {
        delay_ms(self.args.buffer, self.args.data_size, bits(self.args.up))
    }

    /// Buffers of data and ACKs, with their worst-case queueing delays under AQ in ms (eq. 13).
    fn buffers(&self, rates: &FullRates) -> [(Limit, f64); 2] {
        let (data, ack) = split_buffer(self.args.buffer, Share::from_f64(rates.data_share()));
        // Other traffic shares the data queue, so its rate also drains that queue.
        let data_rate = rates.data_up + self.non_tcp_up;
        [
            (data, delay_ms(data, self.args.data_size, data_rate)),
            (ack, delay_ms(ack, self.args.ack_size, rates.ack_up)),
        ]
    }

    fn json(&self) -> Value {
        let (args, amp) = (self.args, &self.amp);
        let bound = |Bound { packets, acks }| json!({"packets": packets, "acks": acks});
        let full = self.solved.as_ref().ok().map(|rates| {
            let [data, ack] = self.buffers(rates);
            json!({
                "ratio": rates.ratio(),
                "data_share": rates.data_share(),
                "rates": {
                    "up": {"data": rates.data_up, "ack": rates.ack_up},
                    "down": {"data": rates.data_down, "ack": rates.ack_down},
                },
                "buffer": {"data": data.0, "ack": ack.0},
                "delay_ms": {"data": data.1, "ack": ack.1},
            })
        });
        let amp = json!({
            "a": amp.acks(),
            "m": amp.packets_per_ack,
            "p": amp.packet_size,
            "f": amp.forward_share,
            "forward_rate": amp.forward(),
            "g": amp.reverse_share,
            "throughput_rate": amp.throughput(),
            "k": amp.asymmetry(&Overhead::default()),
            "k_atm": amp.asymmetry(&Overhead::AAL5),
            "k_atm_llc": amp.asymmetry(&Overhead::AAL5_LLC),
            "up": bound(amp.reverse_bound()),
            "down": bound(amp.forward_bound()),
        });
        let mut answer = json!({
            "format": 1,
            "link": {
                "up": bits(args.up),
                "down": bits(args.down),
                "non_tcp_up": self.non_tcp_up,
                "non_tcp_down": self.non_tcp_down,
                "ack_size": args.ack_size,
                "data_size": args.data_size,
                "data_per_ack": args.data_per_ack,
                "buffer": args.buffer,
            },
            "fillable": self.solved.is_ok(),
            "reason": self.solved.err().map(|reason| reason.to_string()),
            "normalized_asymmetry": self.is_shared().then(|| self.asymmetry()),
            "least_up": self.is_shared().then(|| self.least_up()),
            "full": full,
            "droptail_delay_ms": self.droptail_ms(),
            "amp": self.is_shared().then_some(amp),
        });
        if let Value::Object(fields) = &mut answer {
            fields.retain(|_, value| !value.is_null());
        }
        answer
    }

    fn in_words(&self) -> String {
        let args = self.args;
        let mut text = format!(
            "{} up, {} down; ACKs of {} bytes, data packets of {}, {} per ACK\n",
            rate(bits(args.up)),
            rate(bits(args.down)),
            args.ack_size,
            args.data_size,
            args.data_per_ack
        );
        if self.non_tcp_up + self.non_tcp_down > 0.0 {
            let (up, down) = (rate(self.non_tcp_up), rate(self.non_tcp_down));
            text += &format!("non-TCP traffic uses {up} up, {down} down\n");
        }
        text.push('\n');
        text += &match &self.solved {
            Ok(rates) => self.full_in_words(rates),
            Err(reason) => self.limit_in_words(*reason),
        };
        if self.is_shared() {
            text += &amp_in_words(&self.amp);
        }
        text
    }

    fn full_in_words(&self, rates: &FullRates) -> String {
        let ms = |delay: f64| time(delay / 1e3);
        let [data, ack] = self.buffers(rates);
        let mut table = Table::new(["", "data", "ACKs", "DropTail, all"]);
        for (name, data, ack, all) in [
            (
                "uplink, when both are full (eqs. 5, 6)",
                rate(rates.data_up),
                rate(rates.ack_up),
                None,
            ),
            (
                "downlink, when both are full (eqs. 3, 4)",
                rate(rates.data_down),
                rate(rates.ack_down),
                None,
            ),
            (
                "uplink buffer",
                data.0.to_string(),
                ack.0.to_string(),
                Some(self.args.buffer.to_string()),
            ),
            (
                "longest wait at the uplink (eqs. 12, 13)",
                ms(data.1),
                ms(ack.1),
                Some(ms(self.droptail_ms())),
            ),
        ] {
            table.row([name.into(), data, ack].into_iter().chain(all));
        }
        format!(
            "Both directions can be full. Serve data and ACKs in the ratio {:.3} (eq. 7): \
             {:.1} % and {:.1} % of the uplink.\n\n{table}\n\
             Eq. 11 holds for an uplink of at least {}. Normalized asymmetry k = {:.3}: \
             below 1, the ACKs of a full download fit.\n",
            rates.ratio(),
            100.0 * rates.data_share(),
            100.0 * (1.0 - rates.data_share()),
            rate(self.least_up()),
            self.asymmetry(),
        )
    }

    fn limit_in_words(&self, reason: OutOfReach) -> String {
        let (k, least_up) = (self.asymmetry(), self.least_up());
        match reason {
            OutOfReach::AcksOverloadUplink => format!(
                "No ratio fills both directions: eq. 11 fails. The ACKs of a full download need {} of the \
                 uplink, {k:.2} times\nits rate (the normalized asymmetry k).\n\n\
                 AQ then gives ACKs and data half the uplink each (--beyond-limit equal-shares): ACKs are \
                 lost, but they are\ncumulative. With starve-acks, the paper's behaviour, the upload is \
                 full and the download collapses.\n\n\
                 Each of these would make both directions full: an uplink above {}; a downlink below {}; \
                 data packets above {:.0} bytes;\nmore than {:.2} data packets per ACK.\n",
                rate(least_up - self.non_tcp_up),
                rate(least_up),
                rate((bits(self.args.down) - self.non_tcp_down) / k + self.non_tcp_down),
                f64::from(self.args.data_size) * k,
                self.args.data_per_ack * k,
            ),
            OutOfReach::AcksOverloadDownlink => format!(
                "No ratio fills both directions: the ACKs of a full upload need more than the downlink.\n\
                 AQ is for links whose downlink is the faster one (k = {k:.3}).\n"
            ),
            OutOfReach::NoCapacity => {
                "Non-TCP traffic uses a whole direction: no capacity is left for TCP. AQ then keeps its last ratio.\n"
                    .to_owned()
            }
        }
    }
}

fn amp_in_words(amp: &Amp) -> String {
    let mut table = Table::new(["AMP's bounds", "packets/s", "ACKs/s"]);
    for (name, bound) in [
        ("uplink", amp.reverse_bound()),
        ("downlink", amp.forward_bound()),
    ] {
        let number = |value: f64| format!("{value:.1}");
        table.row([name.into(), number(bound.packets), number(bound.acks)]);
    }
    format!(
        "\nAMP (SAD, sec. 2), g = {}, f = {}: A = {:.1} ACKs/s of M = {} packets of P = {} bytes; F = {}.\n\
         Maximum download min(F, A M P) = {}. K = {:.2}; {:.2} over ATM, {:.2} with LLC.\n\n{table}",
        amp.reverse_share,
        amp.forward_share,
        amp.acks(),
        amp.packets_per_ack,
        amp.packet_size,
        rate(amp.forward()),
        rate(amp.throughput()),
        amp.asymmetry(&Overhead::default()),
        amp.asymmetry(&Overhead::AAL5),
        amp.asymmetry(&Overhead::AAL5_LLC),
    )
}

/// Reads the size of a packet, at least `min` bytes.
fn size(min: u32) -> impl Fn(&str) -> Result<u32, String> + Clone {
    move |text| {
        let bytes: Bytes = text.parse().map_err(|error: UnitError| error.to_string())?;
        let size = u32::try_from(bytes.0).ok();
        let size = size.filter(|size| (min..=65_535).contains(size));
        size.ok_or_else(|| format!("out of range; use {min}b to 65535b"))
    }
}

/// Parses a number from `MIN` to `MAX`.
fn number<const MIN: u32, const MAX: u32>(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(number) if (f64::from(MIN)..=f64::from(MAX)).contains(&number) => Ok(number),
        Ok(_) => Err(format!("out of range; use a number from {MIN} to {MAX}")),
        Err(_) => Err("not a number; write it like 2".to_owned()),
    }
}

/// Worst-case queueing delay in ms of a full buffer of packets of `size` bytes, drained at `rate` bit/s.
fn delay_ms(limit: Limit, size: u32, rate: f64) -> f64 {
    let bytes = match limit {
        Limit::Packets(packets) => f64::from(packets) * f64::from(size),
        Limit::Bytes(bytes) => bytes as f64,
    };
    1e3 * worst_delay(bytes, rate)
}
