//! DCTCP (RFC 8257): reduces the window in proportion to the share of marked segments.

use crate::congestion::AckSample;
use crate::congestion::contract::inherit;
use crate::congestion::{CongestionControl, WindowBased};

/// Weight of one window's share of marks in the average (RFC 8257, section 4.2).
const G: f64 = 1.0 / 16.0;

/// DCTCP's reduction. Another congestion control provides growth and the response to losses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dctcp<C> {
    inner: C,
    marks: MarkedShare,
}

/// Average share of marked segments.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MarkedShare {
    /// `DCTCP.Alpha`; `None` before averages begin.
    pub(super) alpha: Option<f64>,
    acked: u64,
    marked: u64,
    /// Number whose acknowledgement ends the observation window.
    window_end: u64,
}

impl MarkedShare {
    /// Updates alpha once per window (section 3.3, steps 1 to 8).
    pub(super) fn add(&mut self, acked: u64, marked: u64, una: u64, end: u64) {
        self.acked += acked;
        self.marked += marked.min(acked);
        if una > self.window_end {
            if let Some(alpha) = &mut self.alpha
                && self.acked > 0
            {
                let share = self.marked as f64 / self.acked as f64;
                *alpha = *alpha * (1.0 - G) + G * share;
            }
            self.window_end = end;
            (self.acked, self.marked) = (0, 0);
        }
    }
}

impl<C: WindowBased> Dctcp<C> {
    /// Creates a new window. Alpha starts at 1, so that the first mark halves the window (section 4.2).
    pub(crate) fn new(inner: C) -> Self {
        let marks = MarkedShare {
            alpha: Some(1.0),
            ..MarkedShare::default()
        };
        Self { inner, marks }
    }
}

impl<C: WindowBased> CongestionControl for Dctcp<C> {
    inherit!(inner: window threshold on_established on_sample on_ack on_idle on_fast_retransmit on_duplicate_ack on_partial_ack on_recovered on_timeout);

    fn on_echo(&mut self, acked: u64, marked: u64, una: u64, end: u64) {
        self.marks.add(acked, marked, una, end);
    }

    /// Reduces the window (section 3.3, step 9).
    fn on_mark(&mut self, _flight: f64) {
        let window = (self.inner.window() * (1.0 - self.marks.alpha.unwrap_or(1.0) / 2.0)).max(2.0);
        self.inner.adjust(window, window);
    }
}

impl<C: WindowBased> WindowBased for Dctcp<C> {
    fn adjust(&mut self, window: f64, threshold: f64) {
        self.inner.adjust(window, threshold);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::Reno;

    fn open() -> Dctcp<Reno> {
        let mut dctcp = Dctcp::new(Reno::new());
        dctcp.on_established(100.0);
        dctcp
    }

    #[test]
    fn alpha_averages_the_marked_share_of_each_window_with_a_sixteenth() {
        // RFC 8257, section 3.3: alpha = alpha * 15/16 + share / 16.
        let mut dctcp = open();
        let mut expected = 1.0;
        for window in 0..20u64 {
            for ack in 1..=10 {
                let una = window * 10 + ack;
                dctcp.on_echo(1, u64::from(ack <= 3), una, una + 9);
                if ack == 1 && window > 0 {
                    // Share of the previous window; alpha is updated at this window's first ACK.
                    expected = expected * 15.0 / 16.0 + 0.3 / 16.0;
                    assert!(
                        (dctcp.marks.alpha.unwrap() - expected).abs() < 0.02,
                        "{window}"
                    );
                }
            }
        }
        assert!((dctcp.marks.alpha.unwrap() - expected).abs() < 0.02);
    }

    #[test]
    fn a_mark_takes_half_of_alpha_and_a_loss_takes_half() {
        let mut dctcp = open();
        dctcp.marks.alpha = Some(0.2);
        dctcp.on_mark(100.0);
        assert_eq!((dctcp.window(), dctcp.threshold()), (90.0, 90.0));
        dctcp.on_fast_retransmit(90.0);
        dctcp.on_recovered();
        assert_eq!(dctcp.window(), 45.0, "section 3.5");
        let mut first = open();
        first.on_mark(100.0);
        assert_eq!(first.window(), 50.0, "alpha begins at 1");
    }
}
