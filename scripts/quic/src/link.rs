//! One QUIC sender with unlimited data over a link with a drop-tail queue, equal to `asymq sim --flows-up 0
//! --flows-down 1 --qdisc droptail`. Only losses are random.

use crate::Duration;
use crate::connection::RttEstimator;
use noq::{Controller, ControllerFactory};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::congestion as noq;

const PACKET: u64 = 1500;
const ACK: u64 = 40;
/// RFC 9002, section 6.1.1.
const REORDERING: u64 = 3;
const SECOND: u64 = 1_000_000_000;

/// Link and duration of a run. Times in ns.
pub struct Setting {
    pub bits_per_second: u64,
    pub rtt: u64,
    /// Maximum number of packets, including the one in transmission.
    pub buffer: usize,
    /// Losses after the link, per million packets.
    pub loss: u64,
    pub duration: u64,
    pub warmup: u64,
    pub seed: u64,
}

/// Measurements after the warm-up.
#[derive(Default)]
pub struct Outcome {
    pub sent_over_link: u64,
    pub sojourns: Vec<u64>,
    pub dropped: u64,
}

/// A packet in flight.
struct Flying {
    number: u64,
    sent: u64,
}

pub fn run(setting: &Setting) -> Outcome {
    let origin = Instant::now();
    let at = |ns: u64| origin + Duration::from_nanos(ns);
    let mut config = noq::Bbr3Config::default();
    config.initial_window(2 * PACKET);
    let mut control: Box<dyn Controller> = Arc::new(config).build(origin, PACKET as u16);
    let time = |bytes: u64| bytes * 8 * SECOND / setting.bits_per_second;
    let mut random = setting.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut outcome = Outcome::default();
    let (mut now, mut next_send, mut next_number) = (0, 0, 0);
    // End times of packets in the queue or in transmission; ACKs in flight.
    let mut leaving: VecDeque<u64> = VecDeque::new();
    let mut acks: VecDeque<(u64, u64)> = VecDeque::new();
    let mut flying: VecDeque<Flying> = VecDeque::new();
    let (mut in_flight, mut last_ack) = (0, 0);
    while now < setting.duration {
        let window_full = in_flight + PACKET > control.window();
        if window_full {
            control.on_cwnd_limited();
        }
        let timer = last_ack.max(flying.front().map_or(0, |first| first.sent)) + SECOND;
        let ack = acks.front().map_or(u64::MAX, |(arrival, _)| *arrival);
        let send = if window_full { u64::MAX } else { next_send.max(now) };
        if !flying.is_empty() && timer < ack.min(send) {
            // If no packet arrives for a second, all packets are lost.
            now = timer;
            last_ack = now;
            lose(&mut *control, flying.drain(..), &mut in_flight, at(now), &at);
        } else if send <= ack {
            now = send;
            control.on_packet_sent(at(now), PACKET as u16, next_number);
            in_flight += PACKET;
            flying.push_back(Flying { number: next_number, sent: now });
            let rate = control.metrics().pacing_rate.unwrap_or(u64::MAX).max(1);
            next_send = now + PACKET * SECOND / rate;
            // All propagation delay is after the link.
            while leaving.front().is_some_and(|end| *end <= now) {
                leaving.pop_front();
            }
            let counts = now >= setting.warmup;
            if leaving.len() >= setting.buffer {
                outcome.dropped += u64::from(counts);
            } else {
                let start = leaving.back().copied().unwrap_or(0).max(now);
                let end = start + time(PACKET);
                leaving.push_back(end);
                if counts && end <= setting.duration {
                    outcome.sojourns.push(start - now);
                    outcome.sent_over_link += PACKET;
                }
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                if random % 1_000_000 >= setting.loss {
                    acks.push_back((end + setting.rtt + time(ACK), next_number));
                }
            }
            next_number += 1;
        } else {
            let (arrival, number) = acks.pop_front().expect("an ACK is next");
            (now, last_ack) = (arrival, arrival);
            let Ok(place) = flying.binary_search_by_key(&number, |packet| packet.number) else {
                continue; // thought lost
            };
            let packet = flying.remove(place).expect("was found there");
            in_flight -= PACKET;
            let rtt = RttEstimator(Duration::from_nanos(now - packet.sent));
            control.on_ack(at(now), at(packet.sent), PACKET, number, false, &rtt);
            control.on_end_acks(at(now), in_flight, false, Some(number));
            let lost = flying.partition_point(|packet| packet.number + REORDERING <= number);
            lose(&mut *control, flying.drain(..lost), &mut in_flight, at(now), &at);
        }
    }
    outcome
}

/// Detects losses like `noq-proto`'s connections.
fn lose(
    control: &mut dyn Controller,
    lost: impl Iterator<Item = Flying>,
    in_flight: &mut u64,
    now: Instant,
    at: &dyn Fn(u64) -> Instant,
) {
    let (mut bytes, mut last) = (0, None);
    for packet in lost {
        control.on_packet_lost(PACKET as u16, packet.number, now);
        bytes += PACKET;
        last = Some(packet);
    }
    *in_flight -= bytes;
    if let Some(last) = last {
        control.on_congestion_event(now, at(last.sent), false, false, bytes, last.number);
    }
}
