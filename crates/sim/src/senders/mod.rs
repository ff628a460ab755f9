//! TCP senders without I/O: transmission and retransmission. A [`Sender`] receives ACKs and the time, and sends
//! segments into an [`Outbox`](crate::packets::Outbox). A [`CongestionControl`](crate::congestion::CongestionControl)
//! sets the window.
//!
//! With SACK, senders recover like today's systems: with RACK-TLP, PRR, and Linux's retransmission timeout. Without
//! SACK, where RFCs leave a choice, senders follow ns-2.35, which the papers and our comparison use. These senders have
//! an initial window of 2, limited transmit, one RTT sample per window, a clock of 10 ms, and a minimum retransmission
//! timeout of 0.2 s.

mod delivery;
mod extension;
mod feedback;
mod pacing;
mod prr;
mod rack;
mod rtt;
mod selective;
mod sender;

pub(crate) use delivery::Deliveries;
pub(crate) use extension::{FullSending, Sending};
pub(crate) use pacing::{Bursts, Pacer, rate_of_window};
pub(crate) use rtt::{RttEstimator, RttExtent};
pub(crate) use selective::Repair;
pub(crate) use sender::{Phase, Sender};

#[cfg(test)]
mod tests;
