//! `asymq model`: AQ's equations and the AMP model for a link.

use crate::output::{self, rate, time};
use crate::table::Table;
use asymq_args::BadArgument;
use asymq_core::catalog::link_rate;
use asymq_core::control::model::{
    AckDemand, Amp, Bound, Capacities, Framing, FullRates, OutOfReach, worst_delay,
};
use asymq_core::hold::split_buffer;
use asymq_core::units::{Bytes, Limit, Rate, Share, UnitError};
use clap::{Args, Command, FromArgMatches};
use serde::{Serialize, Serializer};
use serde_json::json;
use std::fmt::Write;

/// Compute rates, buffers and delays of a link by AQ's equations and the AMP model.
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
    /// Data packets per ACK, 1 to 64; 2 with delayed ACKs.
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
    /// AMP's M: data packets that an ACK releases, 1 to 1000 [default: --data-per-ack].
    #[arg(long, value_name = "M", value_parser = number::<1, 1000>)]
    packets_per_ack: Option<f64>,
    /// AMP's g: data's share of the uplink, 0 to 1.
    #[arg(long, value_name = "G", default_value = "0", value_parser = number::<0, 1>)]
    data_share: f64,
    /// AMP's f: data's share of the downlink, 0 to 1.
    #[arg(long, value_name = "F", default_value = "1", value_parser = number::<0, 1>)]
    data_share_down: f64,
    /// Print JSON (docs/reference/json.md).
    #[arg(long)]
    json: bool,
}

/// Result of the model, as `--json` prints it. Rates are in bit/s.
#[derive(Debug, Serialize)]
struct Answer {
    format: u32,
    link: Link,
    /// True if both directions can be full (eq. 11).
    fillable: bool,
    /// Reason why the directions cannot both be full.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// The normalized asymmetry k. Absent, like `least_up`, if other traffic uses all capacity.
    #[serde(skip_serializing_if = "Option::is_none")]
    normalized_asymmetry: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    least_up: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    full: Option<Full>,
    /// Worst-case queueing delay under DropTail (eq. 12).
    droptail_delay_ms: f64,
    /// The AMP model (SAD, sec. 2); absent if other traffic uses all capacity.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "amp_json")]
    amp: Option<Amp>,
}

/// The AMP model's quantities: rates in bit/s, packets and ACKs per second.
fn amp_json<S: Serializer>(amp: &Option<Amp>, to: S) -> Result<S::Ok, S::Error> {
    let bound = |Bound { packets, acks }| json!({"packets": packets, "acks": acks});
    let amp = amp.map(|amp| {
        json!({
            "a": amp.acks(),
            "m": amp.packets_per_ack,
            "p": amp.packet_size,
            "f": amp.forward_share,
            "forward_rate": amp.forward(),
            "g": amp.reverse_share,
            "throughput_rate": amp.throughput(),
            "k": amp.asymmetry(Framing::Plain),
            "k_atm": amp.asymmetry(Framing::Atm),
            "k_atm_llc": amp.asymmetry(Framing::AtmLlc),
            "up": bound(amp.reverse_bound()),
            "down": bound(amp.forward_bound()),
        })
    });
    amp.serialize(to)
}

#[derive(Debug, Serialize)]
struct Link {
    up: f64,
    down: f64,
    non_tcp_up: f64,
    non_tcp_down: f64,
    ack_size: u32,
    data_size: u32,
    data_per_ack: f64,
    buffer: Limit,
}

/// Rates, buffers and delays if both directions can be full.
#[derive(Debug, Serialize)]
struct Full {
    ratio: f64,
    data_share: f64,
    rates: Rates,
    buffer: Split<Limit>,
    /// Worst-case queueing delays under AQ (eq. 13).
    delay_ms: Split<f64>,
}

#[derive(Debug, Serialize)]
struct Rates {
    up: Split<f64>,
    down: Split<f64>,
}

#[derive(Debug, Serialize)]
struct Split<T> {
    data: T,
    ack: T,
}

pub(crate) fn run(args: &ModelArgs) -> anyhow::Result<()> {
    let (answer, out_of_reach) = answer(args);
    if args.json {
        return output::print_json(&answer);
    }
    output::print(&in_words(&answer, out_of_reach))
}

/// Computes the result for these flags, as `--json` prints it.
pub(crate) fn answer_words(
    words: impl IntoIterator<Item = String>,
) -> Result<serde_json::Value, BadArgument> {
    let mut parser = ModelArgs::augment_args(Command::new("model"))
        .no_binary_name(true)
        .disable_help_flag(true);
    let args = parser
        .try_get_matches_from_mut(words)
        .and_then(|matches| ModelArgs::from_arg_matches(&matches))
        .map_err(|error| BadArgument::of_clap(&error, &parser))?;
    let (answer, _) = answer(&args);
    Ok(serde_json::to_value(answer).expect("an answer is plain values"))
}

fn answer(args: &ModelArgs) -> (Answer, Option<OutOfReach>) {
    let bits = |rate: Rate| rate.bits_per_sec() as f64;
    let link = Link {
        up: bits(args.up),
        down: bits(args.down),
        non_tcp_up: args.non_tcp_up.map_or(0.0, bits),
        non_tcp_down: args.non_tcp_down.map_or(0.0, bits),
        ack_size: args.ack_size,
        data_size: args.data_size,
        data_per_ack: args.data_per_ack,
        buffer: args.buffer,
    };
    let demand = AckDemand::new(link.ack_size, link.data_size, link.data_per_ack);
    let capacities = Capacities {
        up: link.up - link.non_tcp_up,
        down: link.down - link.non_tcp_down,
    };
    let solved = capacities.full_rates(demand, demand);
    let shared = solved != Err(OutOfReach::NoCapacity);
    let answer = Answer {
        format: 1,
        fillable: solved.is_ok(),
        reason: solved.err().map(|reason| reason.to_string()),
        normalized_asymmetry: shared.then(|| capacities.normalized_asymmetry(demand)),
        least_up: shared.then(|| capacities.least_uplink(demand) + link.non_tcp_up),
        full: solved.ok().map(|rates| full(&link, &rates)),
        amp: shared.then(|| Amp {
            capacities,
            ack_size: link.ack_size,
            packet_size: link.data_size,
            packets_per_ack: args.packets_per_ack.unwrap_or(link.data_per_ack),
            reverse_share: args.data_share,
            forward_share: args.data_share_down,
        }),
        droptail_delay_ms: 1e3 * worst_delay(volume(link.buffer, link.data_size), link.up),
        link,
    };
    (answer, solved.err())
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

fn full(link: &Link, rates: &FullRates) -> Full {
    let (data, ack) = split_buffer(link.buffer, Share::from_f64(rates.data_share()));
    let delay = |limit, size, rate| 1e3 * worst_delay(volume(limit, size), rate);
    // Other traffic shares the data queue, so its rate also drains that queue.
    let data_rate = rates.data_up + link.non_tcp_up;
    Full {
        ratio: rates.ratio(),
        data_share: rates.data_share(),
        rates: Rates {
            up: Split {
                data: rates.data_up,
                ack: rates.ack_up,
            },
            down: Split {
                data: rates.data_down,
                ack: rates.ack_down,
            },
        },
        delay_ms: Split {
            data: delay(data, link.data_size, data_rate),
            ack: delay(ack, link.ack_size, rates.ack_up),
        },
        buffer: Split { data, ack },
    }
}

/// Number of bytes in a full buffer of packets of `size` bytes.
fn volume(limit: Limit, size: u32) -> f64 {
    match limit {
        Limit::Packets(packets) => f64::from(packets) * f64::from(size),
        Limit::Bytes(bytes) => bytes as f64,
    }
}

fn in_words(answer: &Answer, out_of_reach: Option<OutOfReach>) -> String {
    let link = &answer.link;
    let mut text = format!(
        "{} up, {} down; ACKs of {} bytes, data packets of {}, {} per ACK\n",
        rate(link.up),
        rate(link.down),
        link.ack_size,
        link.data_size,
        link.data_per_ack
    );
    if link.non_tcp_up + link.non_tcp_down > 0.0 {
        let (up, down) = (rate(link.non_tcp_up), rate(link.non_tcp_down));
        let _ = writeln!(
            text,
            "other traffic than TCP uses {up} up, {down} down of that"
        );
    }
    text.push('\n');
    match (&answer.full, out_of_reach) {
        (Some(full), _) => text += &full_in_words(answer, full),
        (None, Some(reason)) => text += &limit_in_words(answer, reason),
        (None, None) => {}
    }
    if let Some(amp) = &answer.amp {
        text += &amp_in_words(amp);
    }
    text
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
        amp.asymmetry(Framing::Plain),
        amp.asymmetry(Framing::Atm),
        amp.asymmetry(Framing::AtmLlc),
    )
}

/// Returns the normalized asymmetry and the minimum uplink rate. Both exist only if TCP has capacity to share.
fn limits(answer: &Answer) -> (f64, f64) {
    (
        answer.normalized_asymmetry.unwrap_or_default(),
        answer.least_up.unwrap_or_default(),
    )
}

fn full_in_words(answer: &Answer, full: &Full) -> String {
    let ms = |delay: f64| time(delay / 1e3);
    let (k, least_up) = limits(answer);
    let mut table = Table::new(["", "data", "ACKs", "DropTail, all"]);
    let Rates { up, down } = &full.rates;
    table.row([
        "uplink, when both are full (eqs. 5, 6)".into(),
        rate(up.data),
        rate(up.ack),
    ]);
    table.row([
        "downlink, when both are full (eqs. 3, 4)".into(),
        rate(down.data),
        rate(down.ack),
    ]);
    table.row([
        "uplink buffer".into(),
        full.buffer.data.to_string(),
        full.buffer.ack.to_string(),
        answer.link.buffer.to_string(),
    ]);
    table.row([
        "longest wait at the uplink (eqs. 12, 13)".into(),
        ms(full.delay_ms.data),
        ms(full.delay_ms.ack),
        ms(answer.droptail_delay_ms),
    ]);
    format!(
        "Both directions can be full. Serve data and ACKs {:.3} to 1 (eq. 7): \
         {:.1} % and {:.1} % of the uplink.\n\n{table}\n\
         Eq. 11 holds down to an uplink of {}. Normalized asymmetry k = {:.3}: \
         below 1, the ACKs of a full download fit.\n",
        full.ratio,
        100.0 * full.data_share,
        100.0 * (1.0 - full.data_share),
        rate(least_up),
        k,
    )
}

fn limit_in_words(answer: &Answer, reason: OutOfReach) -> String {
    let link = &answer.link;
    let (k, least_up) = limits(answer);
    match reason {
        OutOfReach::AcksOverloadUplink => format!(
            "No ratio fills both directions: eq. 11 fails. The ACKs of a full download need {} of the \
             uplink, {k:.2} times\nwhat it has (the normalized asymmetry k).\n\n\
             AQ then gives ACKs and data half the uplink each (--beyond-limit equal-shares): ACKs are \
             lost, but they are\ncumulative. With starve-acks, the paper's behaviour, the upload is \
             full and the download collapses.\n\n\
             Any one of these would make both full: an uplink above {}; a downlink below {}; \
             data packets above {:.0} bytes;\nmore than {:.2} data packets per ACK.\n",
            rate(least_up - link.non_tcp_up),
            rate(least_up),
            rate((link.down - link.non_tcp_down) / k + link.non_tcp_down),
            f64::from(link.data_size) * k,
            link.data_per_ack * k,
        ),
        OutOfReach::AcksOverloadDownlink => format!(
            "No ratio fills both directions: the ACKs of a full upload need more than the downlink.\n\
             AQ is for links whose downlink is the faster one (k = {k:.3}).\n"
        ),
        OutOfReach::NoCapacity => {
            "Other traffic than TCP uses a whole direction: TCP has no capacity to share. AQ then keeps \
             the last ratio that held.\n"
                .to_owned()
        }
    }
}
