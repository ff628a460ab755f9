//! BBRv3 (draft-ietf-ccwg-bbr, August 2026): models and probes the path's bandwidth, minimum round-trip time and safe
//! flight.
//!
//! Section numbers refer to the draft. Volumes are in segments instead of bytes, since all segments are full. Not
//! implemented: undo after spurious losses, because no sender of this simulator detects these; ECN, because the draft
//! specifies no response.

mod filter;
mod probe_bw;
mod probe_rtt;

use crate::congestion::CongestionControl;
use crate::congestion::{AckSample, Lost};
use asymq_core::decide::random::SplitMix64;
use filter::{CycleMax, RoundMax};

const SECOND: u64 = 1_000_000_000;
/// Constants of the draft's sections 2.5 to 2.15.
const PACING_MARGIN: f64 = 0.99;
const LOSS_THRESHOLD: f64 = 0.02;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.15;
const MIN_PIPE_WINDOW: f64 = 4.0;
const STARTUP_GAIN: f64 = 2.77;
const DEFAULT_WINDOW_GAIN: f64 = 2.0;
const PROBE_RTT_GAIN: f64 = 0.5;
const MIN_RTT_WINDOW: u64 = 10 * SECOND;
const PROBE_RTT_INTERVAL: u64 = 5 * SECOND;
const PROBE_RTT_DURATION: u64 = SECOND / 5;
/// Number of loss events in a round trip that end Startup (section 5.3.1.3).
const STARTUP_LOSSES: u32 = 6;
/// Maximum number of round trips between two probes, or the flight in segments if less, for coexistence with Reno.
const RENO_ROUNDS: f64 = 63.0;

/// States of the state machine (section 5.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

impl State {
    /// Pacing gain and window gain (section 5.6.1).
    const fn gains(self) -> (f64, f64) {
        match self {
            Self::Startup => (STARTUP_GAIN, DEFAULT_WINDOW_GAIN),
            Self::Drain => (0.5, DEFAULT_WINDOW_GAIN),
            Self::Down => (0.9, DEFAULT_WINDOW_GAIN),
            Self::Cruise | Self::Refill => (1.0, DEFAULT_WINDOW_GAIN),
            Self::Up => (1.25, 2.25),
            Self::ProbeRtt => (1.0, PROBE_RTT_GAIN),
        }
    }

    const fn probes_bandwidth(self) -> bool {
        matches!(self, Self::Startup | Self::Refill | Self::Up)
    }

    /// True for the four states of ProbeBW.
    const fn is_probe_bw(self) -> bool {
        matches!(self, Self::Down | Self::Cruise | Self::Refill | Self::Up)
    }
}

/// Phase of a probe that the arriving ACKs reflect (section 2.13).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum AckPhase {
    #[default]
    Init,
    Refilling,
    ProbeStarting,
    ProbeFeedback,
    ProbeStopping,
}

/// State of BBRv3. Times are in ns, volumes in segments, rates in segments per second. Values may be infinite.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Bbr3 {
    state: State,
    window: f64,
    /// Window before a recovery or ProbeRTT, restored afterwards.
    prior_window: f64,
    initial_window: f64,
    pacing_rate: f64,
    has_rtt: bool,
    in_recovery: bool,
    random: SplitMix64,

    max_bw: CycleMax,
    /// Minimum of the long-term and the short-term bandwidth (`BBR.bw`).
    bw: f64,
    bw_shortterm: f64,
    inflight_shortterm: f64,
    inflight_longterm: f64,

    min_rtt: u64,
    min_rtt_at: u64,
    probe_rtt_min: u64,
    probe_rtt_min_at: u64,
    probe_rtt_expired: bool,
    /// Earliest end of ProbeRTT; `None` until the flight is small enough.
    probe_rtt_done_at: Option<u64>,
    probe_rtt_round_done: bool,

    /// Number of segments delivered at the start of the round. The first ACK of a later segment ends the round.
    next_round: u64,
    round: u64,
    round_start: bool,
    drain_start_round: u64,

    loss_round: u64,
    loss_round_start: bool,
    loss_in_round: bool,
    loss_events: u32,
    /// Number of the segment after the last one that was declared lost.
    lost_end: u64,
    /// True if the application paused, so that the path was idle.
    idle_restart: bool,
    bw_latest: f64,
    inflight_latest: f64,

    full_bw: f64,
    full_bw_count: u32,
    full_bw_now: bool,
    full_bw_reached: bool,

    ack_phase: AckPhase,
    is_probe_sample: bool,
    prev_probe_too_high: bool,
    prev_probe_precautionary: bool,
    cycle_start: u64,
    probe_wait: u64,
    rounds_since_probe: u64,
    probe_up_rounds: u32,
    probe_up_acked: f64,
    probe_up_acked_per_increment: f64,

    extra_acked: RoundMax,
    extra_start: u64,
    extra_delivered: f64,
}

impl Bbr3 {
    /// Creates the state of a new connection (section 5.2.1) with its own random numbers.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            window: 1.0,
            initial_window: 1.0,
            // One window (a segment) per ms: before the first sample, the draft assumes a round trip of 1 ms.
            pacing_rate: STARTUP_GAIN * 1000.0,
            random: SplitMix64::new(seed),
            bw_shortterm: f64::INFINITY,
            inflight_shortterm: f64::INFINITY,
            inflight_longterm: f64::INFINITY,
            min_rtt: u64::MAX,
            probe_rtt_min: u64::MAX,
            probe_up_acked_per_increment: f64::INFINITY,
            ..Self::default()
        }
    }

    // Volumes (section 5.6.4).

    /// Returns `gain` times the bandwidth-delay product, or the initial window before the first round-trip sample.
    fn bdp(&self, gain: f64) -> f64 {
        if self.min_rtt == u64::MAX {
            return self.initial_window;
        }
        gain * self.bw * self.min_rtt as f64 / SECOND as f64
    }

    /// Raises a volume to the minimum that offloads and delayed ACKs need.
    fn quantized(&self, volume: f64) -> f64 {
        // The quantum is 1 ms at the pacing rate, at least two segments (section 5.6.3). TCP needs three quanta.
        let send_quantum = (self.pacing_rate / 1000.0).clamp(2.0, 44.0);
        let volume = volume.max(3.0 * send_quantum).max(MIN_PIPE_WINDOW);
        match self.state {
            State::Up => volume + 2.0,
            _ => volume,
        }
    }

    fn inflight(&self, gain: f64) -> f64 {
        self.quantized(self.bdp(gain))
    }

    fn target_inflight(&self) -> f64 {
        self.bdp(1.0).min(self.window)
    }

    /// Long-term bound of the flight minus headroom for other flows.
    fn inflight_with_headroom(&self) -> f64 {
        let headroom = (HEADROOM * self.inflight_longterm).max(1.0);
        match self.inflight_longterm.is_finite() {
            true => (self.inflight_longterm - headroom).max(MIN_PIPE_WINDOW),
            false => f64::INFINITY,
        }
    }

    // Rounds and filters (section 5.5).

    fn start_round(&mut self, delivered: u64) {
        self.next_round = delivered;
    }

    fn update_round(&mut self, sample: &AckSample) {
        self.round_start = sample.newly > 0 && sample.prior >= self.next_round;
        if self.round_start {
            self.start_round(sample.total);
            self.round += 1;
            self.rounds_since_probe += 1;
        }
    }

    fn update_latest_signals(&mut self, sample: &AckSample) {
        self.bw_latest = self.bw_latest.max(sample.rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered as f64);
        self.loss_round_start = sample.newly > 0 && sample.prior >= self.loss_round;
        if self.loss_round_start {
            self.loss_round = sample.total;
        }
    }

    fn advance_latest_signals(&mut self, sample: &AckSample) {
        if self.loss_round_start {
            self.bw_latest = sample.rate;
            self.inflight_latest = sample.delivered as f64;
        }
    }

    fn reset_congestion_signals(&mut self) {
        self.loss_in_round = false;
        self.bw_latest = 0.0;
        self.inflight_latest = 0.0;
    }

    fn update_congestion_signals(&mut self, sample: &AckSample) {
        self.update_round(sample);
        if sample.rate > 0.0 && (sample.rate >= self.max_bw.get() || !sample.app_limited) {
            self.max_bw.update(sample.rate);
        }
        if !self.loss_round_start {
            return;
        }
        if self.loss_in_round && !self.state.probes_bandwidth() {
            if self.bw_shortterm.is_infinite() {
                self.bw_shortterm = self.max_bw.get();
            }
            if self.inflight_shortterm.is_infinite() {
                self.inflight_shortterm = self.window;
            }
            self.bw_shortterm = self.bw_latest.max(BETA * self.bw_shortterm);
            self.inflight_shortterm = self.inflight_latest.max(BETA * self.inflight_shortterm);
        }
        self.loss_in_round = false;
    }

    fn reset_short_term_model(&mut self) {
        self.bw_shortterm = f64::INFINITY;
        self.inflight_shortterm = f64::INFINITY;
    }

    /// Updates the estimate of ACK aggregation (section 5.5.9).
    fn update_ack_aggregation(&mut self, sample: &AckSample) {
        let elapsed = (sample.now - self.extra_start) as f64 / SECOND as f64;
        let mut expected = self.bw * elapsed;
        if self.extra_delivered <= expected {
            self.extra_delivered = 0.0;
            self.extra_start = sample.now;
            expected = 0.0;
        }
        self.extra_delivered += sample.newly as f64;
        let extra = (self.extra_delivered - expected).min(self.window);
        self.extra_acked.update(self.round, extra);
    }

    // Startup and Drain (sections 5.3.1 and 5.3.2).

    fn reset_full_bw(&mut self) {
        self.full_bw = 0.0;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    fn check_full_bw(&mut self, sample: &AckSample) {
        if self.full_bw_now || !self.round_start || sample.app_limited {
            return;
        }
        if sample.rate >= self.full_bw * 1.25 {
            self.reset_full_bw();
            self.full_bw = sample.rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= 3;
        self.full_bw_reached |= self.full_bw_now;
    }

    fn check_startup_done(&mut self, sample: &AckSample) {
        if self.state != State::Startup {
            return;
        }
        let lossy = self.loss_round_start
            && self.in_recovery
            && self.loss_events >= STARTUP_LOSSES
            && is_too_high(sample.lost, sample.sent_in_flight);
        if lossy {
            self.full_bw_reached = true;
            self.inflight_longterm = self.bdp(1.0).max(self.inflight_latest);
        }
        if self.loss_round_start {
            self.loss_events = 0;
        }
        if self.full_bw_reached {
            self.state = State::Drain;
            self.drain_start_round = self.round;
        }
    }

    fn check_drain_done(&mut self, sample: &AckSample) {
        let drained = sample.in_flight as f64 <= self.inflight(1.0);
        if self.state == State::Drain && (drained || self.round > self.drain_start_round + 3) {
            self.start_down(sample.now, sample.total);
        }
    }

    // Control parameters (section 5.6).

    fn save_window(&mut self) {
        self.prior_window = match self.in_recovery || self.state == State::ProbeRtt {
            false => self.window,
            true => self.prior_window.max(self.window),
        };
    }

    fn restore_window(&mut self) {
        self.window = self.window.max(self.prior_window);
    }

    fn set_pacing_rate(&mut self, sample: &AckSample) {
        if let (Some(rtt), false) = (sample.rtt, self.has_rtt) {
            self.has_rtt = true;
            self.pacing_rate = STARTUP_GAIN * self.window / (rtt.max(1) as f64 / SECOND as f64);
        }
        let (gain, _) = self.state.gains();
        let rate = gain * self.bw * PACING_MARGIN;
        if self.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    fn set_window(&mut self, sample: &AckSample) {
        let (_, gain) = self.state.gains();
        // In Startup, only the aggregation in the latest round counts.
        let extra = match self.full_bw_reached {
            true => self.extra_acked.of_all(),
            false => self.extra_acked.of_latest(),
        };
        let max_inflight = self.quantized(self.bdp(gain) + extra);
        let grown = self.window + sample.newly as f64;
        if self.full_bw_reached {
            self.window = grown.min(max_inflight);
        } else if self.window < max_inflight || (sample.total as f64) < self.initial_window {
            self.window = grown;
        }
        self.window = self.window.max(MIN_PIPE_WINDOW);
        if self.state == State::ProbeRtt {
            self.window = self.window.min(self.probe_rtt_window());
        }
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.inflight_longterm,
            State::Cruise | State::ProbeRtt => self.inflight_with_headroom(),
            State::Startup | State::Drain => f64::INFINITY,
        };
        let cap = cap.min(self.inflight_shortterm).max(MIN_PIPE_WINDOW);
        self.window = self.window.min(cap);
    }

    // Losses (section 5.5.10).

    fn note_loss(&mut self, delivered: u64) {
        if !self.loss_in_round {
            self.loss_round = delivered;
        }
        self.loss_in_round = true;
    }
}

/// True if the lost share of the flight is above the threshold.
fn is_too_high(lost: u64, in_flight: u64) -> bool {
    lost as f64 > in_flight as f64 * LOSS_THRESHOLD
}

impl CongestionControl for Bbr3 {
    fn window(&self) -> f64 {
        self.window
    }

    fn pacing_rate(&self) -> Option<f64> {
        Some(self.pacing_rate)
    }

    fn limits_samples(&self) -> bool {
        self.state == State::ProbeRtt
    }

    fn on_established(&mut self, initial_window: f64) {
        self.window = initial_window;
        self.initial_window = initial_window;
    }

    fn on_lost(&mut self, now: u64, lost: &Lost) {
        self.note_loss(lost.delivered);
        // Consecutive losses are one event.
        if lost.number != self.lost_end {
            self.loss_events = self.loss_events.saturating_add(1);
        }
        self.lost_end = lost.number + 1;
        if !self.is_probe_sample || !is_too_high(lost.lost, lost.in_flight) {
            return;
        }
        // Flight at which the lost share crossed the threshold: with this segment, or with a part of it.
        let flight_before = lost.in_flight as f64 - 1.0;
        let lost_before = lost.lost as f64 - 1.0;
        let prefix = (LOSS_THRESHOLD * flight_before - lost_before) / (1.0 - LOSS_THRESHOLD);
        self.prev_probe_too_high = true;
        self.is_probe_sample = false;
        if !lost.app_limited {
            let safe = flight_before + prefix.max(0.0);
            self.inflight_longterm = safe.max(self.target_inflight() * BETA);
        }
        if self.state == State::Up {
            self.start_down(now, lost.delivered);
        }
    }

    fn on_sample(&mut self, sample: &AckSample) {
        self.update_latest_signals(sample);
        self.update_congestion_signals(sample);
        self.update_ack_aggregation(sample);
        self.check_full_bw(sample);
        self.check_startup_done(sample);
        self.check_drain_done(sample);
        self.update_cycle_phase(sample);
        self.update_min_rtt(sample);
        self.check_probe_rtt(sample);
        self.advance_latest_signals(sample);
        self.bw = self.max_bw.get().min(self.bw_shortterm);
        self.set_pacing_rate(sample);
        self.set_window(sample);
    }

    fn on_ack(&mut self, _acked: u64, _now: u64, _srtt: u64) {}

    /// Section 5.4.1: after an idle period the flight is refilled at the estimated rate.
    fn on_idle(&mut self, _restart_window: f64) {
        self.idle_restart = true;
        if self.state.is_probe_bw() {
            self.pacing_rate = self.bw * PACING_MARGIN;
        }
    }

    fn on_fast_retransmit(&mut self, _flight: f64) {
        self.save_window();
        self.in_recovery = true;
    }

    fn on_selective_loss(&mut self, flight: f64) {
        self.on_fast_retransmit(flight);
    }

    fn on_recovered(&mut self) {
        if std::mem::take(&mut self.in_recovery) {
            self.restore_window();
        }
    }

    fn on_timeout(&mut self, _flight: f64) {
        self.save_window();
        self.in_recovery = true;
        self.window = 1.0;
    }
}

#[cfg(test)]
mod tests;
