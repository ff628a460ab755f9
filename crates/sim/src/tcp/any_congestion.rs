//! Any congestion control, where a run's is not known when compiled.

use super::congestion::{ByteCounting, CongestionControl, Reno};
use super::cubic::Cubic;

/// Any congestion control.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnyCongestion {
    Reno(Reno),
    ByteCounting(ByteCounting),
    Cubic(Cubic),
}

macro_rules! each {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            AnyCongestion::Reno($inner) => $call,
            AnyCongestion::ByteCounting($inner) => $call,
            AnyCongestion::Cubic($inner) => $call,
        }
    };
}

impl CongestionControl for AnyCongestion {
    fn window(&self) -> f64 {
        each!(self, inner => inner.window())
    }

    fn on_established(&mut self, initial_window: f64) {
        each!(self, inner => inner.on_established(initial_window))
    }

    fn on_ack(&mut self, acked: u64, now: u64, srtt: u64) {
        each!(self, inner => inner.on_ack(acked, now, srtt))
    }

    fn on_idle(&mut self, restart_window: f64) {
        each!(self, inner => inner.on_idle(restart_window))
    }

    fn on_fast_retransmit(&mut self, flight: f64) {
        each!(self, inner => inner.on_fast_retransmit(flight))
    }

    fn on_duplicate_ack(&mut self) {
        each!(self, inner => inner.on_duplicate_ack())
    }

    fn on_partial_ack(&mut self, acked: u64) {
        each!(self, inner => inner.on_partial_ack(acked))
    }

    fn on_recovered(&mut self) {
        each!(self, inner => inner.on_recovered())
    }

    fn on_timeout(&mut self, flight: f64) {
        each!(self, inner => inner.on_timeout(flight))
    }
}
