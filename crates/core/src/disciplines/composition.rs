//! What a machine is made of; the papers' mechanisms as short compositions.

use crate::classify::Classifier;
use crate::parts::controller::aq::AqParams;
use crate::parts::controller::gradient::GradientParams;
use crate::parts::service::CreditPer;
use crate::parts::{RedParams, Thinning, ThinningBounds};
use crate::units::{Limit, Rate};

/// How the ACK queue holds ACKs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum AckHold {
    /// All of them, in order.
    Fifo,
    /// Without those whose news a later one carries.
    Thinned(Thinning, ThinningBounds),
}

/// Who is served next; see [`Service`](crate::parts::service::Service).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ServiceKind {
    /// In the order of arrival.
    Shared,
    /// ACKs first.
    AcksFirst,
    /// Packets in turn.
    RoundRobin,
    /// Bytes in a ratio, borrowing what the other leaves; data has this share (0 to 1).
    Weighted(f64),
    /// Bytes at a share of the link each, without borrowing; data has this share.
    Paced(f64),
    /// By credit that ACKs earn.
    Credit(CreditPer),
}

/// What moves the weights, or a limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ControllerKind {
    /// Nothing.
    Fixed,
    /// AQ.
    Aq(AqParams),
    /// ACQ and DCBQ.
    Gradient(GradientParams),
    /// AFVQ: the ACK queue's limit follows the data backlog, from this many ACKs at an empty data
    /// queue down to one at a full one. `docs/afvq.md` derives it.
    AckLimit(u32),
}

/// How the buffer is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Buffer {
    /// Both classes share one limit.
    Shared(Limit),
    /// Each class has its own.
    Separate {
        /// The ACK queue's.
        ack: Limit,
        /// The data queue's.
        data: Limit,
    },
    /// One limit, divided in the ratio of service: `B_D / B_A = R_D / R_A` (paper 000, section 3).
    InRatio(Limit),
}

/// Which arrivals RED may drop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RedOn {
    /// None.
    Nothing,
    /// Data only: RED as for a router that spares ACKs.
    Data(RedParams),
    /// Data and ACKs alike: the gateway's part of ACC, ACK congestion control (RFC 3449, section
    /// 4.3), in which ACKs are signalled congestion too. The receivers' part needs changed hosts.
    All(RedParams),
}

/// A discipline as a choice of parts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Composition {
    /// Capacity of this link.
    pub link: Rate,
    /// Capacity of the opposite direction.
    pub opposite: Rate,
    /// Which packets are ACKs.
    pub classifier: Classifier,
    /// How ACKs are held.
    pub ack: AckHold,
    /// Early drops.
    pub red: RedOn,
    /// Who is next.
    pub service: ServiceKind,
    /// What moves the weights.
    pub controller: ControllerKind,
    /// How much may wait.
    pub buffer: Buffer,
}
