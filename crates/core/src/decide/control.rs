//! Interface of controllers: counters in, settings out.

use crate::decide::classify::Class;
use crate::packet::{Header, Protocol};
use crate::qdisc::{Backlog, Counter, Probe};
use crate::units::{Duration, Instant, Limit, Rate, Share};

/// Changes the settings of a discipline periodically, based on measurements.
///
/// Floats are allowed in [`step`](Controller::step), which runs once an interval, and nowhere else.
pub trait Controller {
    /// Returns new settings and the time of the next call.
    fn step(&mut self, now: Instant, signals: &Signals) -> Step;

    /// Returns settings that depend on the backlog, after every packet; integers only. Called only if
    /// [`needs`](Controller::needs) requests it.
    fn follow(&mut self, _levels: &Levels) -> Settings {
        Settings::default()
    }

    /// Called after a change of the link's rate; `reverse` is the rate of the reverse path, if known.
    fn set_rates(&mut self, _link: Rate, _reverse: Option<Rate>) {}

    /// True if it does not depend on rates, or follows [`set_rates`](Controller::set_rates).
    fn follows_rates(&self) -> bool {
        false
    }

    /// Signals that it needs.
    fn needs(&self) -> Needs;

    /// Names and values of its variables.
    fn probe(&self, _show: &mut Probe<'_>) {}
}

/// Result of a controller's step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// New settings.
    pub settings: Settings,
    /// Time of the next call; [`Instant::MAX`] for never.
    pub next: Instant,
}

/// Measurements that a controller needs, beyond arrivals and departures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The reverse path.
    pub reverse: bool,
    /// Bytes newly acknowledged by passing ACKs.
    pub acked_bytes: bool,
    /// A call of [`Controller::follow`] after every packet.
    pub levels: bool,
}

/// Measurements since the previous step. Bytes are as charged to the link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// Time since the previous step; zero at the first, which only starts the clock.
    pub elapsed: Duration,
    /// Packets offered to the discipline.
    pub arrived: Traffic,
    /// Packets dequeued for transmission.
    pub sent: Traffic,
    /// Packets of the reverse path.
    pub reverse: Traffic,
    /// Bytes acknowledged for the first time by the ACKs that were sent.
    pub acked_bytes: u64,
    /// Backlog of the ACK queue and of the data queue at the step.
    pub backlog: [Backlog; Class::COUNT],
}

/// Counters of one direction by kind of packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The ACK class.
    pub acks: Counter,
    /// TCP with payload, outside the ACK class.
    pub tcp_data: Counter,
    /// All other TCP.
    pub tcp_control: Counter,
    /// Non-TCP and opaque packets.
    pub non_tcp: Counter,
}

impl Traffic {
    /// Counts a packet.
    #[inline]
    pub fn count(&mut self, header: &Header, is_ack: bool) {
        let counter = if is_ack {
            &mut self.acks
        } else if !matches!(header.protocol, Protocol::Tcp) {
            &mut self.non_tcp
        } else if header.payload > 0 {
            &mut self.tcp_data
        } else {
            &mut self.tcp_control
        };
        counter.add(header.len);
    }

    /// Bytes outside the ACK class.
    pub const fn bytes_without_acks(&self) -> u64 {
        self.tcp_data.bytes + self.tcp_control.bytes + self.non_tcp.bytes
    }
}

/// Backlog and limit of each class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The ACK queue's.
    pub ack: Level,
    /// The data queue's.
    pub data: Level,
}

/// Backlog and limit of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Queued packets and bytes.
    pub backlog: Backlog,
    /// The limit in force.
    pub limit: Limit,
}

/// Changes of settings. `None` leaves a setting as it is; a part without the setting ignores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The link's new rate.
    pub link: Option<Rate>,
    /// The data class's share of the link, for services that have shares.
    pub data_share: Option<Share>,
    /// The ACK queue's limit.
    pub ack_limit: Option<Limit>,
    /// Target sojourn time of an AQM.
    pub target: Option<Duration>,
    /// Maximum wait of an ACK for a later one.
    pub ack_wait: Option<Duration>,
    /// Acknowledged bytes of a flow at which a held ACK is sent.
    pub ack_bytes: Option<u32>,
    /// Bytes at the start of a flow whose ACKs are not held.
    pub ack_ramp: Option<u32>,
}
