//! ProbeBW: probes for more bandwidth in cycles. Losses bound the flight (section 5.3.3).

use super::*;

impl Bbr3 {
    pub(super) fn start_down(&mut self, now: u64, delivered: u64) {
        self.reset_congestion_signals();
        self.probe_up_acked_per_increment = f64::INFINITY;
        self.rounds_since_probe = self.random.next() >> 63;
        self.probe_wait = 2 * SECOND + self.random.next() % SECOND;
        self.cycle_start = now;
        self.ack_phase = AckPhase::ProbeStopping;
        self.start_round(delivered);
        self.state = State::Down;
    }

    pub(super) fn start_refill(&mut self, delivered: u64) {
        self.reset_short_term_model();
        self.probe_up_rounds = 0;
        self.probe_up_acked = 0.0;
        self.prev_probe_precautionary = false;
        self.ack_phase = AckPhase::Refilling;
        self.start_round(delivered);
        self.state = State::Refill;
    }

    pub(super) fn start_up(&mut self, sample: &AckSample) {
        self.ack_phase = AckPhase::ProbeStarting;
        self.start_round(sample.total);
        self.reset_full_bw();
        self.full_bw = sample.rate;
        self.state = State::Up;
        self.raise_slope();
    }

    pub(super) fn update_cycle_phase(&mut self, sample: &AckSample) {
        if !self.full_bw_reached || self.adapt_long_term_model(sample) {
            return;
        }
        let state = self.state;
        match state {
            State::Down | State::Cruise if self.is_time_to_probe(sample.now) => {
                self.start_refill(sample.total);
            }
            State::Down => {
                let in_flight = sample.in_flight as f64;
                let has_headroom = in_flight <= self.inflight_with_headroom();
                if has_headroom && in_flight <= self.inflight(1.0) {
                    self.state = State::Cruise;
                }
            }
            State::Refill if self.round_start => {
                self.is_probe_sample = true;
                self.start_up(sample);
            }
            State::Up if self.is_time_to_go_down(sample) => {
                self.prev_probe_too_high = false;
                self.start_down(sample.now, sample.total);
            }
            _ => {}
        }
    }

    pub(super) fn is_time_to_probe(&self, now: u64) -> bool {
        let reno_rounds = self.target_inflight().min(RENO_ROUNDS);
        now > self.cycle_start + self.probe_wait || self.rounds_since_probe as f64 >= reno_rounds
    }

    pub(super) fn is_time_to_go_down(&mut self, sample: &AckSample) -> bool {
        if self.prev_probe_too_high && sample.in_flight as f64 >= self.inflight_longterm {
            self.prev_probe_precautionary = true;
            return true;
        }
        if sample.window_limited && self.window >= self.inflight_longterm {
            // The long-term bound, not the path, limits the rate.
            self.reset_full_bw();
            self.full_bw = sample.rate;
            return false;
        }
        self.full_bw_now
    }

    pub(super) fn raise_slope(&mut self) {
        let growth = (1u64 << self.probe_up_rounds) as f64;
        self.probe_up_rounds = (self.probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_increment = (self.window / growth).max(1.0);
    }

    pub(super) fn probe_longterm_upward(&mut self, sample: &AckSample) {
        if !sample.window_limited || self.window < self.inflight_longterm {
            return;
        }
        self.probe_up_acked += sample.newly as f64;
        if self.probe_up_acked >= self.probe_up_acked_per_increment {
            let segments = (self.probe_up_acked / self.probe_up_acked_per_increment) as u64 as f64;
            self.probe_up_acked -= segments * self.probe_up_acked_per_increment;
            self.inflight_longterm += segments;
        }
        if self.round_start {
            self.raise_slope();
        }
    }

    /// Updates the long-term bounds. Returns true if the state changed.
    pub(super) fn adapt_long_term_model(&mut self, sample: &AckSample) -> bool {
        if self.ack_phase == AckPhase::ProbeStarting && self.round_start {
            self.ack_phase = AckPhase::ProbeFeedback;
        }
        if self.ack_phase == AckPhase::ProbeStopping && self.round_start {
            self.is_probe_sample = false;
            self.ack_phase = AckPhase::Init;
            let probes = self.state.is_probe_bw();
            if probes && !sample.app_limited {
                self.max_bw.advance();
            }
            if probes && self.prev_probe_precautionary && !self.prev_probe_too_high {
                self.start_refill(sample.total);
                return true;
            }
        }
        let in_flight = sample.sent_in_flight;
        if self.inflight_longterm.is_finite() && !is_too_high(sample.lost, in_flight) {
            self.inflight_longterm = self.inflight_longterm.max(in_flight as f64);
            if self.state == State::Up {
                self.probe_longterm_upward(sample);
            }
        }
        false
    }
}
