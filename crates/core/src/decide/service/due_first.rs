//! Service of asymq: due packets first, then data before ACKs.

use super::{Departure, Heads, Next, Service};
use crate::decide::classify::Class;
use crate::{FULL_PACKET, Instant};

/// Bytes of due data after which a due ACK is served: one full packet.
const MAX_DATA_RUN: u32 = FULL_PACKET;

/// Bytes of due ACKs after which queued data is served. Data thus gets at least a quarter of the link.
const MAX_ACK_RUN: u32 = 3 * FULL_PACKET;

/// Serves due data (of sparse flows), then due ACKs, then other data, then other ACKs. The link idles only if no
/// packet is queued. Neither class can starve the other.
#[derive(Clone, Copy, Debug, Default)]
pub struct DueFirst {
    /// Bytes of data sent while an ACK was due. An ACK resets this count.
    data_run: u32,
    /// Bytes of ACKs sent while data was queued. Data that is not due resets this count.
    ack_run: u32,
    /// For ACKs and for data: true if a packet was due at the last choice.
    due: (bool, bool),
}

impl Service for DueFirst {
    fn next(&mut self, now: Instant, heads: Heads) -> Next {
        let (ack, data) = match (heads.ack, heads.data) {
            (None, None) => return Next::Empty,
            (Some(_), None) => return Next::Serve(Class::Ack),
            (None, Some(data)) => {
                self.due = (false, data.due <= now);
                return Next::Serve(Class::Data);
            }
            (Some(ack), Some(data)) => (ack.due <= now, data.due <= now),
        };
        self.due = (ack, data);
        Next::Serve(match self.due {
            (true, true) if self.data_run >= MAX_DATA_RUN => Class::Ack,
            (true, false) if self.ack_run < MAX_ACK_RUN => Class::Ack,
            _ => Class::Data,
        })
    }

    fn sent(&mut self, _now: Instant, departure: Departure) {
        match departure.class {
            Class::Ack => {
                self.data_run = 0;
                if departure.contended {
                    self.ack_run = self.ack_run.saturating_add(departure.len);
                }
            }
            Class::Data => {
                if !self.due.1 {
                    self.ack_run = 0;
                }
                if self.due == (true, true) {
                    self.data_run = self.data_run.saturating_add(departure.len);
                }
            }
        }
    }

    fn follows_rates(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::service::Head;
    use crate::units::Duration;

    /// Accounts for `bytes` of ACKs sent while data is queued, and returns the next choice.
    fn after_acks(bytes: u32) -> Next {
        let now = Instant::ZERO + Duration::from_millis(1);
        let head = |due| Head {
            ticket: 0,
            len: 40,
            due,
        };
        let heads = Heads {
            ack: Some(head(now)),
            data: Some(head(Instant::MAX)),
        };
        let mut service = DueFirst::default();
        assert_eq!(service.next(now, heads), Next::Serve(Class::Ack));
        let departure = Departure {
            class: Class::Ack,
            len: bytes,
            contended: true,
            acked_bytes: 0,
        };
        service.sent(now, departure);
        service.next(now, heads)
    }

    #[test]
    fn due_acks_go_before_bulk_data_until_three_full_packets_of_them_went() {
        assert_eq!(after_acks(MAX_ACK_RUN - 1), Next::Serve(Class::Ack));
        assert_eq!(after_acks(MAX_ACK_RUN), Next::Serve(Class::Data));
    }
}
