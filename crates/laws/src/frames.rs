//! Arriving frames, and the fate of each. The fates must be equal for every representation of packets: frames, kernel
//! buffers, or parsed properties only.

pub use crate::arrival::{Arrival, number};

use crate::arrival::{ETHERNET, IPV4};
use crate::capture::{Capture, EMPTY};
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;
use asymq_core::catalog::{Catalog, Config};
use asymq_core::decide::frame::checksum::{checksum, words};
use asymq_core::decide::frame::{FlowKey, Frame, Parsed, parse};
use asymq_core::hold::{BuildError, Egress};
use asymq_core::{Duration, Ecn, Flow, Header, Instant, Packet, Reason, Sink};
use core::fmt::Write as _;

const UPLOADS: u16 = 2;
const DOWNLOADS: u16 = 3;
const VOICE: u16 = 5;

/// Four seconds of traffic for 1 Mbit/s: two uploads in bursts, ACKs of three downloads (some are duplicates, some
/// have data), and a call. Each conversation has its own server. The downloads are on the reverse path.
pub fn arrivals() -> Vec<Arrival> {
    const MS: u64 = 1_000_000;
    const DOWNLOADED: u64 = 1460;
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let mut events = Vec::new();
    for upload in 0..UPLOADS {
        let mut segment = 0;
        for burst in 0..40 {
            let at = (burst * 100 + dice.below(90)) * MS + 7;
            for within in 0..=dice.below(8) {
                let length = if dice.below(12) == 0 { 300 } else { 1460 };
                events.push((at + within * MS / 10, true, upload, segment, length));
                segment += 1460;
            }
        }
    }
    for download in UPLOADS..UPLOADS + DOWNLOADS {
        let mut acked: u64 = 1;
        let mut at = dice.below(300) * MS;
        while at < 4000 * MS {
            for within in 0..2 {
                events.push((at - at.min(within * MS), false, download, acked, DOWNLOADED));
            }
            match dice.below(20) {
                0 => {}
                1 => acked += DOWNLOADED,
                _ => acked += 2 * DOWNLOADED,
            }
            // Some ACKs have data.
            let length = if dice.below(25) == 0 { 100 } else { 0 };
            events.push((at, true, download, acked, length));
            at += (2 + dice.below(6)) * MS + dice.below(MS);
        }
    }
    for number in 0..200 {
        events.push((number * 20 * MS + 3, true, VOICE, number, 160));
    }
    events.sort();
    let mut next = 0;
    let arrivals = events
        .into_iter()
        .map(|(at, leaves, conversation, count, length)| {
            let number = leaves.then_some(next);
            next += u16::from(leaves);
            Arrival {
                at: Instant::from_nanos(at),
                number,
                conversation,
                bytes: frame(
                    leaves,
                    conversation,
                    count as u32,
                    length as usize,
                    number.unwrap_or(0),
                ),
            }
        });
    arrivals.collect()
}

/// A fixed sequence of random numbers (xorshift64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Builds a frame. Home is 10.0.0.1; each conversation has its own server and port.
fn frame(leaves: bool, conversation: u16, count: u32, length: usize, number: u16) -> Vec<u8> {
    let udp = conversation == VOICE;
    let header = if udp { 8 } else { 20 };
    let mut bytes = alloc::vec![0; ETHERNET + IPV4 + header + length];
    let (link, packet) = bytes.split_at_mut(ETHERNET);
    link.copy_from_slice(&[2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
    let total = packet.len() as u16;
    let (ip, transport) = packet.split_at_mut(IPV4);
    ip[0] = 0x45;
    ip[2..4].copy_from_slice(&total.to_be_bytes());
    ip[4..6].copy_from_slice(&number.to_be_bytes());
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = if udp { 17 } else { 6 };
    let (home, server) = ([10, 0, 0, 1], [10, 1, 0, 1 + conversation as u8]);
    let (source, destination) = if leaves {
        (home, server)
    } else {
        (server, home)
    };
    ip[12..16].copy_from_slice(&source);
    ip[16..20].copy_from_slice(&destination);
    let sum = checksum(0, ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());
    let (near, far) = (40_000 + conversation, 443u16);
    let (from, to) = if leaves { (near, far) } else { (far, near) };
    transport[0..2].copy_from_slice(&from.to_be_bytes());
    transport[2..4].copy_from_slice(&to.to_be_bytes());
    let at = if udp {
        let length = transport.len() as u16;
        transport[4..6].copy_from_slice(&length.to_be_bytes());
        6
    } else {
        // Uploads and the reverse path count sent segments; ACKs count received segments.
        let counts_sent = !leaves || conversation < UPLOADS;
        let (sequence, ack) = if counts_sent { (count, 1) } else { (1, count) };
        transport[4..8].copy_from_slice(&sequence.to_be_bytes());
        transport[8..12].copy_from_slice(&ack.to_be_bytes());
        transport[12] = 5 << 4;
        transport[13] = 0x10;
        transport[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
        16
    };
    let pseudo = words(&ip[12..]) + u64::from(ip[9]) + transport.len() as u64;
    let sum = checksum(pseudo, transport);
    transport[at..at + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// A driver's representation of a packet.
pub trait Held: Packet + Sized {
    /// Creates the packet of an arriving frame.
    fn hold(arrival: &Arrival, parsed: &Parsed) -> Self;
    /// Number of the frame.
    fn number(&self) -> u16;
    /// The frame as sent; `None` if the representation has no frames.
    fn frame(&self) -> Option<Vec<u8>> {
        None
    }
    /// Frees the packet after it was sent or dropped.
    fn release(self) {}
}

/// Fates of the frames.
#[derive(Default)]
pub struct Verdicts {
    /// One line per sent or dropped packet: time in ns, verdict, number, and `ce` if marked.
    pub lines: String,
    /// Packets that were sent, as a capture; empty if the representation has no frames.
    capture: Capture,
}

impl Verdicts {
    fn line<P: Held>(&mut self, now: Instant, verdict: &str, packet: &P) {
        let mark = match packet.header().ecn {
            Ecn::Ce => " ce",
            _ => "",
        };
        let number = packet.number();
        // Writing to a string never fails.
        let _ = writeln!(self.lines, "{} {verdict} #{number}{mark}", now.as_nanos());
    }

    fn sent<P: Held>(&mut self, now: Instant, packet: P) {
        self.line(now, "sent", &packet);
        if let Some(frame) = packet.frame() {
            self.capture.push(now, &frame);
        }
        packet.release();
    }

    /// Returns the packets that were sent, as a capture file.
    pub fn into_pcap(self) -> Vec<u8> {
        self.capture.into_bytes()
    }
}

impl<P: Held> Sink<P> for Verdicts {
    fn dropped(&mut self, now: Instant, packet: P, reason: Reason) {
        self.line(now, reason.name(), &packet);
        packet.release();
    }
}

/// Passes the frames to the discipline's egress, and dequeues whenever the link is free.
///
/// # Errors
/// The discipline cannot be built.
pub fn verdicts<P: Held + Send + 'static>(
    catalog: &impl Catalog,
    config: &Config,
    arrivals: &[Arrival],
) -> Result<Verdicts, BuildError> {
    const PATIENCE: Duration = Duration::from_secs(60);
    let mut egress = Egress::new(catalog.build::<P>(config)?, config.link);
    let mut verdicts = Verdicts::default();
    let key = FlowKey::new([1, 2]);
    for arrival in arrivals {
        serve(&mut egress, &mut verdicts, arrival.at);
        let mut parsed = parse(&arrival.bytes, &key);
        parsed.header = Header {
            arrival: arrival.at,
            // Fixed flow numbers: with hashes, ties between equal queues would depend on a secret.
            flow: Flow(u64::from(arrival.conversation) << 1),
            len: parsed.header.ip_len,
            ..parsed.header
        };
        match arrival.number {
            None => egress.observe(arrival.at, &parsed.header),
            Some(_) => egress.enqueue(arrival.at, P::hold(arrival, &parsed), &mut verdicts),
        }
    }
    serve(&mut egress, &mut verdicts, Instant::ZERO + PATIENCE);
    Ok(verdicts)
}

/// Sends the packets that may leave before `until`.
fn serve<P: Held>(egress: &mut Egress<P>, verdicts: &mut Verdicts, until: Instant) {
    while let Some(at) = egress.next().filter(|at| *at < until) {
        if let Some(packet) = egress.dequeue(at, verdicts) {
            verdicts.sent(at, packet);
        }
    }
}

/// The reference: a packet with its whole frame.
type Whole = Frame<Vec<u8>>;

impl Held for Whole {
    fn hold(arrival: &Arrival, parsed: &Parsed) -> Self {
        Self::new(
            parsed.header.arrival,
            parsed,
            parsed.header.len,
            arrival.bytes.clone(),
        )
    }

    fn number(&self) -> u16 {
        number(&self.bytes)
    }

    fn frame(&self) -> Option<Vec<u8>> {
        Some(self.bytes.clone())
    }
}

/// Checks that packets represented as `P` leave as whole frames do, with equal order, times, verdicts and marks. If `P`
/// has frames, their bytes must be equal too.
///
/// # Errors
/// The first difference, or the reason why no comparison was possible.
pub fn same_verdicts<P: Held + Send + 'static>(
    catalog: &impl Catalog,
    config: &Config,
    arrivals: &[Arrival],
) -> Result<(), String> {
    let failed = |error: BuildError| error.to_string();
    let whole = verdicts::<Whole>(catalog, config, arrivals).map_err(failed)?;
    let held = verdicts::<P>(catalog, config, arrivals).map_err(failed)?;
    if whole.lines == held.lines {
        let (whole, held) = (whole.into_pcap(), held.into_pcap());
        return match held.len() == EMPTY || whole == held {
            true => Ok(()),
            false => Err("the same verdicts, but frames with other bytes".to_string()),
        };
    }
    let lines = || whole.lines.lines().zip(held.lines.lines());
    let differing = lines().find(|(whole, held)| whole != held);
    let (whole, held) = differing.unwrap_or(("has another number of lines", "has another"));
    Err(format!("whole {whole}, held {held}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;
    use asymq_core::catalog::Standard;
    use asymq_core::decide::frame::ack_info;
    use std::collections::BTreeSet;

    #[test]
    fn every_frame_has_its_facts_and_right_checksums() {
        let (mut acks, mut others) = (0, 0);
        for arrival in arrivals() {
            let parsed = parse(&arrival.bytes, &FlowKey::new([0, 0]));
            if parsed.header.is_pure_ack() {
                // Only an ACK with correct checksums is parsed.
                let info = ack_info(&arrival.bytes, parsed.transport).unwrap();
                assert_eq!(info.ack, parsed.header.ack);
                acks += 1;
            } else {
                others += 1;
            }
        }
        assert!(acks > 1000 && others > 1000, "{acks} {others}");
    }

    #[test]
    fn every_packet_leaves_once_and_queues_that_filter_do() {
        let arrivals = arrivals();
        let numbers = arrivals.iter().filter_map(|arrival| arrival.number);
        let numbers: BTreeSet<u16> = numbers.collect();
        for (name, verdict) in [
            ("sad", "ack-filtered"),
            ("droptail", "sent"),
            ("aq", "sent"),
        ] {
            let config = golden::config(&Standard, name).unwrap();
            let text = verdicts::<Whole>(&Standard, &config, &arrivals)
                .unwrap()
                .lines;
            assert!(text.matches(verdict).count() > 100, "{name}");
            let mut left: Vec<u16> = text
                .lines()
                .filter_map(|line| line.split('#').nth(1)?.parse().ok())
                .collect();
            left.sort_unstable();
            assert!(left.iter().eq(&numbers), "{name}");
        }
    }
}
