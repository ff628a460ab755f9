//! Interface of controllers: counters as input, settings as output.

use crate::decide::classify::Class;
use crate::{Backlog, Counter, Duration, Header, Instant, Limit, Probe, Protocol, Rate, Share};

/// Changes a discipline's settings periodically, based on measurements.
///
/// Only [`step`](Controller::step), which runs once per interval, may use floats.
pub trait Controller {
    /// Returns new settings and the time of the next call.
    fn step(&mut self, now: Instant, signals: &Signals) -> Step;

    /// Returns settings that depend on the backlog. Runs after every packet, with integers only, if
    /// [`needs`](Controller::needs) requests it.
    fn follow(&mut self, _levels: &Levels) -> Settings {
        Settings::default()
    }

    /// Updates the controller after a change of the link's rate; `reverse` is the rate of the reverse path, if known.
    fn set_rates(&mut self, _link: Rate, _reverse: Option<Rate>) {}

    /// True if the controller is independent of rates, or adapts in [`set_rates`](Controller::set_rates).
    fn follows_rates(&self) -> bool {
        false
    }

    /// Returns the measurements that the controller needs.
    fn needs(&self) -> Needs;

    /// Reports the names and values of the controller's variables.
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

/// Measurements that a controller may request, in addition to arrivals and departures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// True if the controller reads [`Signals::reverse`].
    pub reverse: bool,
    /// True if the controller reads [`Signals::acked_bytes`].
    pub acked_bytes: bool,
    /// True if [`Controller::follow`] is called after every packet.
    pub levels: bool,
}

/// Measurements since the previous step. Bytes are as charged to the link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Signals {
    /// Time since the previous step. Zero at the first step, which only starts the clock.
    pub elapsed: Duration,
    /// Packets that arrived at the discipline.
    pub arrived: Traffic,
    /// Packets dequeued for transmission.
    pub sent: Traffic,
    /// Packets that passed on the reverse path.
    pub reverse: Traffic,
    /// Bytes newly acknowledged by the ACKs that were sent.
    pub acked_bytes: u64,
    /// Current backlog of the ACK queue and of the data queue.
    pub backlog: [Backlog; Class::COUNT],
}

/// Counters of one direction by kind of packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Packets of the ACK class.
    pub acks: Counter,
    /// TCP packets with payload, outside the ACK class.
    pub tcp_data: Counter,
    /// All other TCP packets.
    pub tcp_control: Counter,
    /// Non-TCP and opaque packets.
    pub non_tcp: Counter,
}

impl Traffic {
    /// Counts a packet.
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
    /// Level of the ACK queue.
    pub ack: Level,
    /// Level of the data queue.
    pub data: Level,
}

/// Backlog and limit of one class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Queued packets and bytes.
    pub backlog: Backlog,
    /// Current limit.
    pub limit: Limit,
}

/// Changes of settings. `None` keeps a setting; a part ignores settings that it does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// New rate of the link.
    pub link: Option<Rate>,
    /// Data's share of the link, for services with shares.
    pub data_share: Option<Share>,
    /// Limit of the ACK queue.
    pub ack_limit: Option<Limit>,
    /// Target sojourn time of an AQM.
    pub target: Option<Duration>,
    /// Maximum time for which an ACK waits for a later ACK.
    pub ack_wait: Option<Duration>,
    /// Maximum number of bytes that a waiting ACK may newly acknowledge or SACK.
    pub ack_bytes: Option<u32>,
    /// Number of bytes at the start of a flow whose ACKs do not wait.
    pub ack_ramp: Option<u32>,
}
