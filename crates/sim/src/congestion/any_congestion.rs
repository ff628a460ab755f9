//! Any congestion control, where a run's is not known when compiled.

use crate::congestion::Bbr3;
use crate::congestion::Connection;
use crate::congestion::Cubic;
use crate::congestion::Dctcp;
use crate::congestion::HyStart;
use crate::congestion::Outside;
use crate::congestion::{ByteCounting, CongestionControl, Prototype, Reno};
use crate::senders::{AckSample, Lost};

/// Any congestion control.
#[expect(
    clippy::large_enum_variant,
    reason = "made once a flow, and a box would cost each packet a miss"
)]
#[derive(Debug)]
pub(crate) enum AnyCongestion {
    Reno(Reno),
    ByteCounting(ByteCounting),
    Cubic(Cubic),
    HyStartReno(HyStart<Reno>),
    HyStartByteCounting(HyStart<ByteCounting>),
    HyStartCubic(HyStart<Cubic>),
    Dctcp(Dctcp<Reno>),
    DctcpByteCounting(Dctcp<ByteCounting>),
    Bbr3(Bbr3),
    Outside(Outside),
}

macro_rules! each {
    ($self:ident, $inner:ident => $call:expr) => {
        match $self {
            AnyCongestion::Reno($inner) => $call,
            AnyCongestion::ByteCounting($inner) => $call,
            AnyCongestion::Cubic($inner) => $call,
            AnyCongestion::HyStartReno($inner) => $call,
            AnyCongestion::HyStartByteCounting($inner) => $call,
            AnyCongestion::HyStartCubic($inner) => $call,
            AnyCongestion::Dctcp($inner) => $call,
            AnyCongestion::DctcpByteCounting($inner) => $call,
            AnyCongestion::Bbr3($inner) => $call,
            AnyCongestion::Outside($inner) => $call,
        }
    };
}

/// Methods that each congestion control answers for itself.
macro_rules! delegate {
    (answers { $(fn $name:ident() -> $answer:ty;)* } events { $(fn $event:ident($($arg:ident: $type:ty),*);)* }) => {
        $(fn $name(&self) -> $answer {
            each!(self, inner => inner.$name())
        })*
        $(fn $event(&mut self, $($arg: $type),*) {
            each!(self, inner => inner.$event($($arg),*))
        })*
    };
}

impl Prototype for AnyCongestion {
    fn of_connection(&self, connection: &Connection) -> Self {
        match self {
            Self::Reno(window) => Self::Reno(*window),
            Self::ByteCounting(window) => Self::ByteCounting(*window),
            Self::Cubic(window) => Self::Cubic(*window),
            Self::HyStartReno(window) => Self::HyStartReno(*window),
            Self::HyStartByteCounting(window) => Self::HyStartByteCounting(*window),
            Self::HyStartCubic(window) => Self::HyStartCubic(*window),
            Self::Dctcp(window) => Self::Dctcp(*window),
            Self::DctcpByteCounting(window) => Self::DctcpByteCounting(*window),
            Self::Bbr3(window) => Self::Bbr3(window.seeded(connection.seed)),
            Self::Outside(outside) => Self::Outside(outside.of_connection(connection)),
        }
    }
}

impl CongestionControl for AnyCongestion {
    delegate! {
        answers {
            fn window() -> f64;
            fn threshold() -> f64;
            fn pacing_rate() -> Option<f64>;
            fn limits_samples() -> bool;
        }
        events {
            fn on_established(initial_window: f64);
            fn on_ack(acked: u64, now: u64, srtt: u64);
            fn on_idle(restart_window: f64);
            fn on_fast_retransmit(flight: f64);
            fn on_selective_loss(flight: f64);
            fn on_duplicate_ack();
            fn on_partial_ack(acked: u64);
            fn on_recovered();
            fn on_timeout(flight: f64);
            fn on_sample(sample: &AckSample);
            fn on_lost(now: u64, lost: &Lost);
            fn on_echo(acked: u64, marked: bool, una: u64, end: u64);
            fn on_mark(flight: f64);
        }
    }
}
