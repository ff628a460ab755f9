//! What `quiche`'s HyStart++ uses of its recovery.

#[path = "quiche/hystart.rs"]
pub mod hystart;

use std::time::{Duration, Instant};

pub struct Acked {
    pub pkt_num: u64,
}

/// The phases of an ACK of all below `ack`, where all below `end` was sent: 0 for slow start, 1 for the
/// conservative one, 2 once it is over.
pub struct Phases {
    hystart: hystart::Hystart,
    start: Instant,
    over: bool,
}

impl Phases {
    pub fn new() -> Self {
        let mut hystart = hystart::Hystart::new(true);
        hystart.start_round(0);
        Self {
            hystart,
            start: Instant::now(),
            over: false,
        }
    }

    pub fn on_ack(&mut self, ack: u64, end: u64, rtt: Duration) -> u8 {
        // The next packet that is sent starts a round. It ends with the ACK of all that was sent before: TCP's
        // numbers, one more than QUIC's.
        let packet = Acked { pkt_num: ack };
        self.over |= self.hystart.on_packet_acked(&packet, rtt, self.start);
        self.hystart.start_round(end);
        match (self.over, self.hystart.in_css()) {
            (true, _) => 2,
            (false, css) => css.into(),
        }
    }
}
