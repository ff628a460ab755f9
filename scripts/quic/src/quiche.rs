//! Stub of the recovery that `quiche`'s HyStart++ needs.

#[path = "quiche/hystart.rs"]
pub mod hystart;

use std::time::{Duration, Instant};

pub struct Acked {
    pub pkt_num: u64,
}

/// Computes the phase after an ACK of all packets below `ack`, when all packets below `end` were sent: 0 is slow start,
/// 1 the conservative phase, 2 the time after it.
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
        // The next packet sent starts a round. The round ends with the ACK of all data sent before. TCP's numbers are
        // one higher than QUIC's.
        let packet = Acked { pkt_num: ack };
        self.over |= self.hystart.on_packet_acked(&packet, rtt, self.start);
        self.hystart.start_round(end);
        match (self.over, self.hystart.in_css()) {
            (true, _) => 2,
            (false, css) => css.into(),
        }
    }
}
