//! Example test cases of BBRv3's draft (appendix A), over a simulated link.

use super::*;
use crate::congestion::Recovery;
use crate::packets::{Segment, TcpOptions};
use crate::receivers::{FullReceiving, Receiver};
use crate::senders::{FullSending, Pacer, Repair, RttEstimator, Sender};
use asymq_scenario::AckPolicy;
use std::collections::{BTreeMap, VecDeque};

const MS: u64 = 1_000_000;

enum Event {
    Leaves,
    Arrives(Segment<TcpOptions>),
    Acked(Segment<TcpOptions>),
}

/// A sender and a receiver, connected by a link with a rate, a delay and a buffer.
struct Path {
    sender: Sender<Bbr3, FullSending>,
    receiver: Receiver<FullReceiving>,
    /// Rate of the link in segments per second.
    rate: f64,
    rtt: u64,
    buffer: usize,
    queue: VecDeque<Segment<TcpOptions>>,
    events: BTreeMap<(u64, u64), Event>,
    ticket: u64,
    now: u64,
    /// States and the times at which the sender entered them.
    states: Vec<(u64, State)>,
    delivered: u64,
    drops: u64,
    /// Interval in ns. ACKs leave the receiver's side at its multiples.
    aggregation: u64,
}

impl Path {
    fn new(rate: f64, rtt_ms: u64, buffer: usize) -> Self {
        let extension = FullSending {
            repair: Some(Repair::default()),
            pacer: Some(Pacer::default()),
            ..FullSending::with_sack()
        };
        let congestion = Bbr3::new(7);
        let rtt = RttEstimator::linux();
        let mut path = Self {
            sender: Sender::new(congestion, rtt, Recovery::NewReno, u64::MAX, extension),
            receiver: Receiver::new(
                AckPolicy::EveryPacket,
                FullReceiving::new(true, false, 1460, None),
            ),
            rate,
            rtt: rtt_ms * MS,
            buffer,
            queue: VecDeque::new(),
            events: BTreeMap::new(),
            ticket: 0,
            now: 0,
            states: vec![(0, State::Startup)],
            delivered: 0,
            drops: 0,
            aggregation: 1,
        };
        path.act(|sender, out| sender.connect(0, out));
        path
    }

    fn at(&mut self, time: u64, event: Event) {
        self.ticket += 1;
        self.events.insert((time, self.ticket), event);
    }

    fn act(
        &mut self,
        act: impl FnOnce(&mut Sender<Bbr3, FullSending>, &mut Vec<Segment<TcpOptions>>),
    ) {
        let mut out = Vec::new();
        act(&mut self.sender, &mut out);
        for segment in out {
            if self.queue.len() > self.buffer {
                self.drops += 1;
                continue;
            }
            self.queue.push_back(segment);
            if self.queue.len() == 1 {
                self.at(self.now + (1e9 / self.rate) as u64, Event::Leaves);
            }
        }
        let state = self.sender.congestion.state;
        if self.states.last().is_none_or(|(_, last)| *last != state) {
            self.states.push((self.now, state));
        }
    }

    fn run(&mut self, until_ms: u64, state: Option<State>) {
        let entered = self.states.len();
        loop {
            let next = self
                .events
                .first_key_value()
                .map_or(u64::MAX, |(key, _)| key.0);
            let timer = self.sender.deadline();
            self.now = next.min(timer);
            if self.now > until_ms * MS {
                self.now = until_ms * MS;
                assert_eq!(state, None, "{:?}", self.states);
                return;
            }
            let now = self.now;
            if timer <= next {
                self.act(|sender, out| sender.on_timeout(now, out));
            } else {
                match self.events.pop_first().unwrap().1 {
                    Event::Leaves => {
                        let segment = self.queue.pop_front().unwrap();
                        self.at(now + self.rtt, Event::Arrives(segment));
                        if !self.queue.is_empty() {
                            self.at(now + (1e9 / self.rate) as u64, Event::Leaves);
                        }
                    }
                    Event::Arrives(segment) => {
                        let mut acks = Vec::new();
                        self.receiver.on_segment(now, segment, &mut acks);
                        self.delivered = self.receiver.data_in_order();
                        let at = now.next_multiple_of(self.aggregation);
                        acks.into_iter()
                            .for_each(|ack| self.at(at, Event::Acked(ack)));
                    }
                    Event::Acked(ack) => self.act(|sender, out| sender.on_ack(now, ack, out)),
                }
            }
            if self.states[entered..]
                .iter()
                .any(|(_, s)| Some(*s) == state)
            {
                return;
            }
        }
    }

    fn bbr(&self) -> &Bbr3 {
        &self.sender.congestion
    }

    /// Returns the share of the link that was used between two times.
    fn utilization(&mut self, from: u64, until: u64) -> f64 {
        self.run(from, None);
        let before = self.delivered;
        self.run(until, None);
        (self.delivered - before) as f64 / (self.rate * (until - from) as f64 / 1e3)
    }
}

/// A path of 10 Mbit/s with an RTT of 100 ms. The bandwidth-delay product is 83 segments, the buffer twice that.
fn path() -> Path {
    Path::new(833.0, 100, 166)
}

#[test]
fn startup_ends_on_a_bandwidth_plateau_after_three_rounds() {
    let mut path = path();
    path.run(5_000, Some(State::Drain));
    let bbr = path.bbr();
    assert!(
        (bbr.max_bw.get() / 833.0 - 1.0).abs() < 0.02,
        "{}",
        bbr.max_bw.get()
    );
    assert!(bbr.full_bw_reached && bbr.full_bw_count == 3);
    // The rate starts at 2.77 * 2 segments per 100 ms and doubles each round, up to 833 segments per second. Three
    // further rounds are each longer by a queue of one bandwidth-delay product.
    assert!(
        (600..1_500).contains(&(path.now / MS)),
        "{} ms",
        path.now / MS
    );
}

#[test]
fn drain_ends_with_the_flight_at_the_estimated_product() {
    let mut path = path();
    path.run(5_000, Some(State::Drain));
    assert_eq!(State::Drain.gains(), (0.5, 2.0));
    // The sender passes through Down, where no queue remains to drain.
    path.run(5_000, Some(State::Cruise));
    let in_flight = path
        .sender
        .extension
        .deliveries
        .as_ref()
        .unwrap()
        .in_flight();
    assert!(
        in_flight as f64 <= path.bbr().inflight(1.0) + 1.0,
        "{in_flight}"
    );
}

#[test]
fn bandwidth_is_probed_in_the_order_down_cruise_refill_up() {
    let mut path = path();
    path.run(60_000, None);
    let cycle = [State::Down, State::Cruise, State::Refill, State::Up];
    let mut cycles = 0;
    for pair in path.states.windows(2).skip(2) {
        let [(from, one), (to, other)] = [pair[0], pair[1]];
        if one == State::Up {
            cycles += 1;
        }
        if one == State::Cruise && other == State::Refill {
            // Section 5.3.3.5.3: 2 to 3 s after Down starts, or after 62 to 63 round trips.
            assert!(to - from < 3_100 * MS, "{} ms", (to - from) / MS);
        }
        let Some(place) = cycle.iter().position(|state| *state == one) else {
            continue;
        };
        let next = cycle[(place + 1) % 4];
        let allowed = other == next || other == State::ProbeRtt;
        assert!(
            allowed || (one == State::Down && other == State::Refill),
            "{one:?} {other:?}"
        );
    }
    // Two ProbeRTTs are 5 s apart. One or two waits, each with a probe, fit between them.
    assert!((10..24).contains(&cycles), "{cycles} in a minute");
}

#[test]
fn the_link_is_filled_and_the_queue_is_short() {
    let mut path = path();
    let utilization = path.utilization(5_000, 60_000);
    assert!(utilization > 0.95, "{utilization}");
    assert_eq!(path.drops, 0);
}

#[test]
fn probe_rtt_comes_after_five_seconds_and_takes_two_hundred_ms_at_half_the_flight() {
    let mut path = path();
    path.run(30_000, Some(State::ProbeRtt));
    let start = path.now;
    path.run(30_000, Some(State::Cruise));
    let took = (path.now - start) / MS;
    // The flight drains for a round trip. Then 200 ms pass, and the next ACK ends ProbeRTT.
    assert!((200..600).contains(&took), "{took} ms");
    let visits: Vec<u64> = path
        .states
        .iter()
        .filter(|(_, s)| *s == State::ProbeRtt)
        .map(|v| v.0)
        .collect();
    assert_eq!(visits.len(), 1);
    path.run(40_000, None);
    let visits: Vec<u64> = path
        .states
        .iter()
        .filter(|(_, s)| *s == State::ProbeRtt)
        .map(|v| v.0)
        .collect();
    for pair in visits.windows(2) {
        let apart = (pair[1] - pair[0]) / MS;
        assert!((5_000..6_500).contains(&apart), "{apart} ms");
    }
    assert!(visits.len() > 4);
    assert!((path.bbr().min_rtt as f64 / 101.2e6 - 1.0).abs() < 0.02);
}

#[test]
fn startup_over_a_shallow_buffer_ends_on_loss_and_bounds_the_flight() {
    let mut path = Path::new(833.0, 100, 20);
    path.run(20_000, Some(State::Drain));
    let bbr = path.bbr();
    assert!(bbr.full_bw_reached);
    assert!(path.drops >= u64::from(STARTUP_LOSSES));
    path.run(60_000, None);
    assert!(path.bbr().inflight_longterm.is_finite());
    let before = path.drops;
    let utilization = path.utilization(60_000, 120_000);
    // Section 3.1: high utilization and little loss with shallow buffers.
    let lost = (path.drops - before) as f64 / (833.0 * 60.0);
    assert!(
        utilization > 0.9 && lost < LOSS_THRESHOLD,
        "{utilization} {lost}"
    );
}

#[test]
fn losses_above_two_per_cent_end_a_probe_and_set_the_long_term_bound() {
    let mut bbr = Bbr3::new(0);
    bbr.on_established(100.0);
    (bbr.state, bbr.is_probe_sample) = (State::Up, true);
    let lost = |number, lost| Lost {
        number,
        in_flight: 100,
        lost,
        delivered: 500,
        app_limited: false,
    };
    bbr.on_lost(0, &lost(1, 1));
    bbr.on_lost(0, &lost(2, 2));
    assert_eq!(
        (bbr.state, bbr.inflight_longterm),
        (State::Up, f64::INFINITY)
    );
    bbr.on_lost(0, &lost(3, 3));
    assert_eq!(bbr.state, State::Down);
    // Before this segment, 99 were in flight and 2 lost, which is above 2 % of 99.
    assert_eq!(bbr.inflight_longterm, 99.0);
    assert!(
        bbr.prev_probe_too_high && !bbr.is_probe_sample,
        "once a probe"
    );
}

#[test]
fn losses_outside_a_probe_cut_the_short_term_model_by_three_tenths_a_round() {
    let mut bbr = Bbr3::new(0);
    bbr.on_established(100.0);
    bbr.state = State::Cruise;
    bbr.max_bw.update(1000.0);
    bbr.note_loss(0);
    let sample = AckSample {
        newly: 1,
        total: 10,
        delivered: 10,
        rate: 500.0,
        ..AckSample::default()
    };
    bbr.update_latest_signals(&sample);
    bbr.update_congestion_signals(&sample);
    assert_eq!((bbr.bw_shortterm, bbr.inflight_shortterm), (700.0, 70.0));
    assert!(!bbr.loss_in_round);
}

#[test]
fn startup_lasts_while_the_application_is_the_limit_and_nothing_is_lost() {
    let mut path = path();
    path.sender.limit_to(0);
    let mut written = 0;
    for ms in (0..20_000).step_by(10) {
        path.run(ms, None);
        let now = path.now;
        path.act(|sender, out| sender.write(now, 2, out));
        written += 2;
    }
    path.run(20_500, None);
    assert_eq!(path.delivered, written);
    let probed = |(_, state): &(u64, State)| matches!(state, State::Startup | State::ProbeRtt);
    assert!(path.states.iter().all(probed), "{:?}", path.states);
}

#[test]
fn a_product_below_one_segment_keeps_four_in_flight() {
    let mut path = Path::new(80.0, 5, 50);
    let utilization = path.utilization(5_000, 30_000);
    assert!(utilization > 0.93, "{utilization}");
    assert!(path.bbr().window() >= MIN_PIPE_WINDOW);
}

#[test]
fn ten_times_the_bandwidth_is_found() {
    let mut path = Path::new(833.0, 50, 100);
    path.run(20_000, None);
    path.rate *= 10.0;
    path.run(40_000, None);
    let utilization = path.utilization(40_000, 50_000);
    assert!(utilization > 0.9, "{utilization}");
}

#[test]
fn after_two_cycles_the_estimate_falls_to_a_tenth() {
    let mut path = Path::new(8330.0, 50, 100);
    path.run(20_000, None);
    path.rate /= 10.0;
    path.run(40_000, None);
    let max_bw = path.bbr().max_bw.get();
    assert!((max_bw / 833.0 - 1.0).abs() < 0.1, "{max_bw}");
}

#[test]
fn ack_bursts_widen_the_window_by_their_size() {
    let mut smooth = path();
    smooth.run(30_000, None);
    let mut bursts = path();
    bursts.aggregation = 40 * MS;
    let utilization = bursts.utilization(10_000, 30_000);
    assert!(utilization > 0.93, "{utilization}");
    // In 40 ms, 833 segments per second deliver 33 segments.
    let extra = bursts.bbr().extra_acked.of_all();
    assert!((15.0..80.0).contains(&extra), "{extra}");
    assert!(smooth.bbr().extra_acked.of_all() < 10.0);
}

#[test]
fn a_timeout_leaves_one_segment_and_the_window_comes_back() {
    let mut path = path();
    path.run(10_000, None);
    let bbr = &mut path.sender.congestion;
    let before = bbr.window();
    bbr.on_timeout(before);
    assert_eq!(bbr.window(), 1.0);
    bbr.on_recovered();
    assert_eq!(bbr.window(), before);
}
