//! Who is served next.

mod ack_credit;
mod paced_shares;
mod weighted_bytes;

pub use ack_credit::{AckCredit, CreditPer};
pub use paced_shares::PacedShares;
pub use weighted_bytes::WeightedBytes;

use crate::units::Instant;

/// The two classes of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Pure acknowledgements.
    Ack,
    /// Everything else.
    Data,
}

/// The packet that a class would send next: its ticket (arrival order over both classes) and bytes.
pub type Head = (u64, u32);

/// What a service answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Serve this class.
    Serve(Class),
    /// Something waits, but nothing may go before this instant.
    NotBefore(Instant),
    /// Nothing waits.
    Empty,
}

/// The ways to choose between two classes.
#[derive(Clone, Debug)]
pub enum Service {
    /// One shared FIFO: in the order of arrival.
    Shared,
    /// ACKs first, strictly (RFC 3449 section 5.4.2).
    AcksFirst,
    /// Packet round robin, PRR (paper 003): one packet of each in turn while both wait.
    RoundRobin {
        /// Whose turn it is.
        turn: Class,
    },
    /// Weighted round robin by bytes, work conserving: WRR, CBQ that borrows, and AQ's ratio.
    Weighted(WeightedBytes),
    /// CBQ without borrowing, as in the papers: each class is paced at its share.
    Paced(PacedShares),
    /// VAQ: data spends credit that passing ACKs earn.
    Credit(AckCredit),
}

impl Service {
    /// The class to serve at `now`, given what waits.
    #[inline]
    pub fn next(&mut self, now: Instant, ack: Option<Head>, data: Option<Head>) -> Next {
        let class = match (self, ack, data) {
            (_, None, None) => return Next::Empty,
            (Self::Paced(paced), ack, data) => {
                return paced.next(now, ack.is_some(), data.is_some());
            }
            (Self::Weighted(weighted), ack, data) => {
                weighted.next(ack.map(|(_, len)| len), data.map(|(_, len)| len))
            }
            (_, Some(_), None) => Class::Ack,
            (_, None, Some(_)) => Class::Data,
            (Self::Shared, Some((ack, _)), Some((data, _))) => {
                if ack < data {
                    Class::Ack
                } else {
                    Class::Data
                }
            }
            (Self::AcksFirst, ..) => Class::Ack,
            (Self::RoundRobin { turn }, ..) => *turn,
            (Self::Credit(credit), _, Some((_, len))) => {
                if credit.affords(len) {
                    Class::Data
                } else {
                    Class::Ack
                }
            }
        };
        Next::Serve(class)
    }

    /// Accounts for a packet of `len` bytes that leaves; `contended` if the other class waited.
    #[inline]
    pub fn sent(&mut self, now: Instant, class: Class, len: u32, contended: bool) {
        match self {
            Self::Shared | Self::AcksFirst => {}
            Self::RoundRobin { turn } => {
                *turn = match class {
                    Class::Ack => Class::Data,
                    Class::Data => Class::Ack,
                }
            }
            Self::Weighted(weighted) => {
                if contended {
                    weighted.charge(class, len);
                }
            }
            Self::Paced(paced) => paced.charge(now, class, len),
            Self::Credit(credit) => {
                if class == Class::Data && contended {
                    credit.spend(len);
                }
            }
        }
    }

    /// Changes the data class's share, where the service has one.
    pub fn set_data_share(&mut self, data_share: f64) {
        match self {
            Self::Weighted(weighted) => weighted.set_data_share(data_share),
            Self::Paced(paced) => paced.set_data_share(data_share),
            _ => {}
        }
    }

    /// The data class's share, where the service has one.
    pub fn data_share(&self) -> Option<f64> {
        match self {
            Self::Weighted(weighted) => Some(weighted.data_share()),
            Self::Paced(paced) => Some(paced.data_share()),
            _ => None,
        }
    }
}
