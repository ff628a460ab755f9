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
        Self {
            hystart: hystart::Hystart::new(true),
            start: Instant::now(),
            over: false,
        }
    }

    pub fn on_ack(&mut self, ack: u64, end: u64, rtt: Duration) -> u8 {
        // A round starts as the next packet is sent, which is before this ACK or with it.
        self.hystart.start_round(end - 1);
        let packet = Acked { pkt_num: ack - 1 };
        self.over |= self.hystart.on_packet_acked(&packet, rtt, self.start);
        match (self.over, self.hystart.in_css()) {
            (true, _) => 2,
            (false, css) => css.into(),
        }
    }
}
