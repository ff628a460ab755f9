//! ProbeRTT: measures the minimum round-trip time again with a small window (section 5.3.4).

use super::*;

impl Bbr3 {
    pub(super) fn update_min_rtt(&mut self, sample: &AckSample) {
        let now = sample.now;
        self.probe_rtt_expired = now > self.probe_rtt_min_at + PROBE_RTT_INTERVAL;
        if let Some(rtt) = sample.rtt
            && (rtt < self.probe_rtt_min || self.probe_rtt_expired)
        {
            self.probe_rtt_min = rtt;
            self.probe_rtt_min_at = now;
        }
        let expired = now > self.min_rtt_at + MIN_RTT_WINDOW;
        if self.probe_rtt_min < self.min_rtt || expired {
            self.min_rtt = self.probe_rtt_min;
            self.min_rtt_at = self.probe_rtt_min_at;
        }
    }

    pub(super) fn check_probe_rtt(&mut self, sample: &AckSample) {
        if self.state != State::ProbeRtt && self.probe_rtt_expired && !self.idle_restart {
            self.save_window();
            self.state = State::ProbeRtt;
            self.probe_rtt_done_at = None;
            self.ack_phase = AckPhase::ProbeStopping;
            self.start_round(sample.total);
        }
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(sample);
        }
        self.idle_restart &= sample.delivered == 0;
    }

    pub(super) fn handle_probe_rtt(&mut self, sample: &AckSample) {
        let Some(done_at) = self.probe_rtt_done_at else {
            if sample.in_flight as f64 <= self.probe_rtt_window() {
                self.probe_rtt_done_at = Some(sample.now + PROBE_RTT_DURATION);
                self.probe_rtt_round_done = false;
                self.start_round(sample.total);
            }
            return;
        };
        self.probe_rtt_round_done |= self.round_start;
        if self.probe_rtt_round_done && sample.now > done_at {
            self.probe_rtt_min_at = sample.now;
            self.restore_window();
            self.reset_short_term_model();
            if self.full_bw_reached {
                self.start_down(sample.now, sample.total);
                self.state = State::Cruise;
            } else {
                self.state = State::Startup;
            }
        }
    }

    pub(super) fn probe_rtt_window(&self) -> f64 {
        self.bdp(PROBE_RTT_GAIN).max(MIN_PIPE_WINDOW)
    }
}
