//! The slow loop as the packet path sees it: counters in, settings out.

use crate::decide::classify::Class;
use crate::packet::{Header, Protocol};
use crate::qdisc::{Backlog, Counter, Probe};
use crate::units::{Duration, Instant, Limit, Rate, Share};

/// Moves the settings of a discipline from time to time by what was measured meanwhile.
///
/// Floats are allowed in [`step`](Controller::step), which runs once an interval, and nowhere else.
pub trait Controller {
    /// Answers with new settings, and with the time of the next call.
    fn step(&mut self, now: Instant, signals: &Signals) -> Step;

    /// Settings that follow what waits, after every packet: integers only. Only called if
    /// [`needs`](Controller::needs) says so.
    fn follow(&mut self, _levels: &Levels) -> Settings {
        Settings::default()
    }

    /// The link goes on at another rate, and the reverse path at `reverse` if that is known.
    fn set_rates(&mut self, _link: Rate, _reverse: Option<Rate>) {}

    /// True if it is the same for any rates, or follows [`set_rates`](Controller::set_rates).
    fn follows_rates(&self) -> bool {
        false
    }

    /// Signals that must be measured for it.
    fn needs(&self) -> Needs;

    /// Names and values of its variables.
    fn probe(&self, _show: &mut Probe<'_>) {}
}

/// Answer of a controller.
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
    /// The bytes that passing ACKs acknowledge anew.
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
    /// Packets that left it to be transmitted.
    pub sent: Traffic,
    /// Packets of the reverse path.
    pub reverse: Traffic,
    /// Bytes acknowledged for the first time by the ACKs that were sent.
    pub acked_bytes: u64,
    /// Backlog of the ACK queue and of the data queue at the step.
    pub backlog: [Backlog; Class::COUNT],
}

/// Counters of one direction, by what a controller has to tell apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// The ACK class.
    pub acks: Counter,
    /// TCP with payload, outside the ACK class.
    pub tcp_data: Counter,
    /// All other TCP.
    pub tcp_control: Counter,
    /// All that is not TCP, or opaque.
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
    /// Packets and bytes that wait.
    pub backlog: Backlog,
    /// The limit in force.
    pub limit: Limit,
}

/// Changes of settings. `None` leaves a setting as it is; a part without the setting ignores it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// The link's rate, where it moves.
    pub link: Option<Rate>,
    /// The data class's share of the link, for services that have shares.
    pub data_share: Option<Share>,
    /// The ACK queue's limit.
    pub ack_limit: Option<Limit>,
    /// The sojourn time that an AQM aims at.
    pub target: Option<Duration>,
    /// Maximum wait of an ACK for a later one.
    pub ack_wait: Option<Duration>,
    /// Acknowledged bytes of a flow for which it waits no longer.
    pub ack_bytes: Option<u32>,
    /// Bytes at the start of a flow that are acknowledged without a wait.
    pub ack_ramp: Option<u32>,
}
