//! Golden traces: what each discipline does with the packets of `golden/input.txt`, to the
//! microsecond. They say that nothing changed, not that it is right; a change is reviewed as a diff
//! after `ASYMQ_GOLDEN=write cargo test -p asymq-core --test golden`.

#[path = "common/named.rs"]
mod named;

use asymq_core::ack::AckInfo;
use asymq_core::classify::Classifier;
use asymq_core::config::Config;
use asymq_core::disciplines::Entry;
use asymq_core::packet::{Flow, Protocol, flags};
use asymq_core::parts::aq::AqParams;
use asymq_core::qdisc::{Dequeue, DropReason, Qdisc, Sink};
use asymq_core::units::{Instant, Limit, Rate};
use asymq_core::{Header, Packet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// A packet of the input, by its line.
struct Numbered {
    number: usize,
    header: Header,
}

impl Packet for Numbered {
    fn header(&self) -> &Header {
        &self.header
    }
    fn ack_info(&self) -> Option<AckInfo> {
        let header = &self.header;
        let (ack, flags) = (header.ack, header.flags);
        Some(AckInfo {
            ack,
            flags,
            ..AckInfo::default()
        })
    }
    fn rewrite_ack(&mut self, newer: &AckInfo) {
        self.header.ack = newer.ack;
    }
}

/// Writes a line for every packet that leaves or is dropped.
#[derive(Default)]
struct Trace(String);

impl Trace {
    fn line(&mut self, now: Instant, verdict: &str, packet: &Numbered) {
        let micros = now.as_nanos() / 1000;
        let Numbered { number, header } = packet;
        write!(self.0, "{micros} {verdict} #{number}").unwrap();
        if header.is_pure_ack() {
            write!(self.0, " ack {}", header.ack).unwrap();
        }
        self.0.push('\n');
    }
}

impl Sink<Numbered> for Trace {
    fn dropped(&mut self, now: Instant, packet: Numbered, reason: DropReason) {
        let verdict = match reason {
            DropReason::OverLimit => "over-limit",
            DropReason::Early => "early",
            DropReason::AckFiltered => "ack-filtered",
            _ => "dropped",
        };
        self.line(now, verdict, &packet);
    }
}

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn input() -> Vec<Numbered> {
    let text = std::fs::read_to_string(golden().join("input.txt")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .enumerate()
        .map(|(number, line)| {
            let words: Vec<&str> = line.split_whitespace().collect();
            let value = |at: usize| words[at].parse::<u64>().unwrap();
            let (protocol, flags, payload) = match words[1] {
                "ack" => (Protocol::Tcp, flags::ACK, 0),
                "data" => (Protocol::Tcp, flags::ACK, value(3) as u32 - 40),
                _ => (Protocol::NonTcp, 0, 0),
            };
            let header = Header {
                arrival: Instant::from_nanos(value(0) * 1000),
                flow: Flow(value(2)),
                len: value(3) as u32,
                ip_len: value(3) as u32,
                payload,
                ack: value(4) as u32,
                flags,
                protocol,
            };
            Numbered { number, header }
        })
        .collect()
}

/// The link behind a discipline.
struct Link {
    rate: Rate,
    free: Instant,
}

impl Link {
    /// Sends what may start up to and including `until`.
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

/// Offers the input to the discipline before a link of `rate`.
fn trace(config: &Config, rate: Rate) -> String {
    let mut qdisc = config.build::<Numbered>();
    let mut trace = Trace::default();
    let mut link = Link {
        rate,
        free: Instant::ZERO,
    };
    for packet in input() {
        let now = packet.header.arrival;
        link.serve(&mut *qdisc, &mut trace, now);
        if qdisc.backlog().packets == 0 {
            link.free = link.free.max(now);
        }
        qdisc.enqueue(now, packet, &mut trace);
    }
    link.serve(&mut *qdisc, &mut trace, Instant::from_nanos(60_000_000_000));
    assert_eq!(qdisc.backlog().packets, 0);
    trace.0
}

#[test]
fn every_discipline_treats_the_shared_trace_as_recorded() {
    let rate: Rate = "1mbit".parse().unwrap();
    let opposite = "10mbit".parse().unwrap();
    let entry = Entry {
        link: rate,
        opposite,
        limit: Limit::Packets(20),
        classifier: Classifier::PureAck,
    };
    let write = std::env::var("ASYMQ_GOLDEN").is_ok_and(|value| value == "write");
    for (name, config) in named::named(entry, AqParams::new(rate, opposite), 0.5) {
        let path = golden().join(format!("{}.txt", name.replace(' ', "-")));
        let now = trace(&config, rate);
        if write {
            std::fs::write(&path, &now).unwrap();
        }
        let recorded = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let differs = now
            .lines()
            .zip(recorded.lines())
            .find(|(now, then)| now != then);
        assert_eq!(differs, None, "{name}: (now, recorded)");
        assert_eq!(now.lines().count(), recorded.lines().count(), "{name}");
    }
}
