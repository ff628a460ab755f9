//! Golden traces: the output of a discipline for a fixed input, with times in microseconds. Golden traces show that
//! behaviour is unchanged, not that it is correct.

use crate::packet::Numbered;
use alloc::string::String;
use alloc::vec::Vec;
use asymq_core::catalog::{Catalog, Config, ConfigError, Params, Place, resolve};
use asymq_core::{
    Dequeue, Flow, Header, Instant, Limit, Protocol, Qdisc, Rate, Reason, Sink, flags,
};
use core::fmt::Write;

/// One line per packet: time in microseconds, kind, flow, bytes, acknowledgement number.
const INPUT: &str = include_str!("golden-input.txt");

/// Link of the traces: 1 Mbit/s up, 10 Mbit/s down, a buffer of 20 packets.
///
/// # Panics
/// Never: the rates are in range.
pub fn place() -> Place {
    let mbit = |mbit: u64| Rate::from_bits_per_sec(mbit * 1_000_000).expect("in range");
    Place {
        link: mbit(1),
        reverse: Some(mbit(10)),
        limit: Limit::Packets(20),
    }
}

/// Returns a discipline with its defaults, at [`place`].
///
/// # Errors
/// The name is not in the catalog.
pub fn config(catalog: &impl Catalog, name: &str) -> Result<Config, ConfigError> {
    let none = Params::new();
    resolve(catalog, name, &none, &none, place())
}

/// Passes the input to the discipline. Returns a line for every packet that leaves, with its fate.
///
/// # Panics
/// The discipline cannot be built, or packets are still queued after a minute.
pub fn trace(catalog: &impl Catalog, config: &Config) -> String {
    let mut qdisc = catalog
        .build::<Numbered>(config)
        .unwrap_or_else(|error| panic!("{}: {error}", config.qdisc));
    let mut trace = Trace::default();
    let mut link = Link {
        rate: config.link,
        free: Instant::ZERO,
    };
    for (number, header) in INPUT
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(header)
        .enumerate()
    {
        let now = header.arrival;
        link.serve(&mut *qdisc, &mut trace, now);
        if qdisc.backlog().packets == 0 {
            link.free = link.free.max(now);
        }
        qdisc.enqueue(now, Numbered::new(number as u64, header), &mut trace);
    }
    link.serve(&mut *qdisc, &mut trace, Instant::from_nanos(60_000_000_000));
    assert_eq!(qdisc.backlog().packets, 0, "{} never empties", config.qdisc);
    trace.0
}

fn header(line: &str) -> Header {
    let words: Vec<&str> = line.split_whitespace().collect();
    let value = |at: usize| words[at].parse::<u64>().expect("a number");
    let len = value(3) as u32;
    let (protocol, flags, payload) = match words[1] {
        "ack" => (Protocol::Tcp, flags::ACK, 0),
        "data" => (Protocol::Tcp, flags::ACK, len - 40),
        _ => (Protocol::NonTcp, 0, 0),
    };
    Header {
        arrival: Instant::from_nanos(value(0) * 1000),
        flow: Flow(value(2)),
        len,
        ip_len: len,
        payload,
        ack: value(4) as u32,
        flags,
        protocol,
        ..Header::default()
    }
}

/// Writes a line for every packet that is sent or dropped.
#[derive(Default)]
struct Trace(String);

impl Trace {
    fn line(&mut self, now: Instant, verdict: &str, packet: &Numbered) {
        let micros = now.as_nanos() / 1000;
        let Numbered { number, header, .. } = packet;
        // Writing to a string never fails.
        let _ = write!(self.0, "{micros} {verdict} #{number}");
        if header.is_pure_ack() {
            let _ = write!(self.0, " ack {}", header.ack);
        }
        self.0.push('\n');
    }
}

impl Sink<Numbered> for Trace {
    fn dropped(&mut self, now: Instant, packet: Numbered, reason: Reason) {
        self.line(now, reason.name(), &packet);
    }
}

/// The link after a discipline.
struct Link {
    rate: Rate,
    free: Instant,
}

impl Link {
    /// Sends all packets that may start up to `until` (inclusive).
    fn serve(&mut self, qdisc: &mut dyn Qdisc<Numbered>, trace: &mut Trace, until: Instant) {
        while self.free <= until {
            match qdisc.dequeue(self.free, trace) {
                Dequeue::Packet(packet) => {
                    trace.line(self.free, "sent", &packet);
                    self.free += self.rate.tx_time(packet.header.len);
                }
                Dequeue::NotBefore(at) => self.free = at,
                Dequeue::Empty => return,
            }
        }
    }
}
