//! Explicit congestion notification: signals between both ends (RFC 3168, section 6.1; RFC 8257, section 3.2; RFC 9768
//! in `accecn`).

mod accecn;

use crate::packets::TcpOptions;
use accecn::{Delivered, Received};
use asymq_core::{Ecn, flags};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EcnSender {
    /// True if the window was reduced; the next new segment reports this.
    reduced: bool,
    /// End of the last window that was reduced because of a mark. Marks below this number cause no further response.
    answered: u64,
    /// Counters if both ends use AccECN.
    accurate: Option<Delivered>,
    offer: Offer,
}

/// Type of ECN that a sender requests in its SYN, and the ECN field of its segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    /// True for AccECN, false for classic ECN.
    pub(crate) accurate: bool,
    /// True for ECT(1), false for ECT(0).
    pub(crate) ect1: bool,
}

impl EcnSender {
    /// Creates the state of a sender that has sent nothing.
    pub(crate) fn new(offer: Offer) -> Self {
        Self {
            offer,
            ..Self::default()
        }
    }

    /// Processes a SYN-ACK, which accepts AccECN or classic ECN.
    pub(crate) fn agree(&mut self, options: &TcpOptions) {
        let accepted = self.offer.accurate && accecn::is_accepted(options);
        self.accurate = accepted.then_some(Delivered::NOTHING);
    }

    /// True if both ends use AccECN.
    #[cfg(test)]
    pub(crate) const fn is_accurate(&self) -> bool {
        self.accurate.is_some()
    }

    /// Returns the number of marked packets that an ACK reports, if it acknowledges `acked` packets cumulatively and
    /// `delivered` in total. With classic ECN, ECE means that all of `acked` were marked.
    pub(crate) fn marks(&mut self, options: &TcpOptions, acked: u64, delivered: u64) -> u64 {
        match &mut self.accurate {
            Some(counters) => counters.hears(options, delivered as u32).into(),
            None if options.flags & flags::ECE != 0 => acked.max(1),
            None => 0,
        }
    }

    /// Sets the ECN bits of segment `number`. A segment is ECN-capable unless it is a retransmission (RFC 3168, section
    /// 6.1.5) or the SYN.
    pub(crate) fn mark(&mut self, options: &mut TcpOptions, number: u64, again: bool) {
        if number == 0 {
            options.flags |= match self.offer.accurate {
                true => accecn::OFFER,
                false => flags::ECE | flags::CWR,
            };
        } else if !again {
            options.ecn = match self.offer.ect1 {
                true => Ecn::Ect1,
                false => Ecn::Ect0,
            };
            if std::mem::take(&mut self.reduced) && self.accurate.is_none() {
                options.flags |= flags::CWR;
            }
        }
    }

    /// True if the window of segment `una` has already been reduced for a mark.
    pub(crate) fn has_answered(&self, una: u64) -> bool {
        una < self.answered
    }

    /// True if an ACK up to `una` requires a reduction because of a mark. There is one reduction per window; the
    /// current window ends below `end` (section 6.1.2).
    pub(crate) fn answers(&mut self, una: u64, end: u64) -> bool {
        let answers = una > self.answered;
        if answers {
            self.answered = end;
            self.reduced = true;
        }
        answers
    }
}

/// Rule by which a receiver echoes marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Echo {
    /// ECE in every ACK until the sender reports a reduced window (RFC 3168, section 6.1.3).
    Latched,
    /// ECE only in the ACKs of marked segments (RFC 8257, section 3.2).
    Exact,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct EcnReceiver {
    echo: Echo,
    /// True if ACKs now carry ECE.
    marked: bool,
    established: bool,
    /// AccECN counters, if the receiver supports AccECN.
    accurate: Option<Received>,
    /// True if the SYN requested AccECN.
    asked: bool,
}

impl EcnReceiver {
    pub(crate) const fn new(echo: Echo) -> Self {
        Self {
            echo,
            marked: false,
            established: false,
            accurate: None,
            asked: false,
        }
    }

    /// Returns a receiver that uses AccECN if the SYN requests it; `option` is false if only ACE is used.
    pub(crate) fn with_accurate(self, option: bool) -> Self {
        Self {
            accurate: Some(Received::nothing(option)),
            ..self
        }
    }

    fn counters(&mut self) -> Option<&mut Received> {
        self.accurate.as_mut().filter(|_| self.asked)
    }

    /// True if an ACK must be sent at once.
    pub(crate) fn is_due(&self) -> bool {
        self.asked && self.accurate.is_some_and(|counters| counters.due)
    }

    /// True if a delayed ACK must be sent before a segment with these options is processed. Then each ACK reports
    /// either marked or unmarked segments (RFC 8257, section 3.2).
    pub(crate) fn changes(&self, options: &TcpOptions) -> bool {
        !self.asked && self.echo == Echo::Exact && self.marked != (options.ecn == Ecn::Ce)
    }

    /// Processes the arrival of segment `number` with `payload` bytes.
    pub(crate) fn arrived(&mut self, number: u64, payload: u32, options: &TcpOptions) {
        if number == 0 {
            self.asked = self.accurate.is_some() && options.flags & flags::AE != 0;
            return;
        }
        if let Some(counters) = self.counters() {
            return counters.arrived(options.ecn, payload);
        }
        let marked = options.ecn == Ecn::Ce;
        self.marked = match self.echo {
            Echo::Exact => marked,
            Echo::Latched => marked || (self.marked && options.flags & flags::CWR == 0),
        };
    }

    /// Sets the ECN bits of an ACK. The first ACK answers the SYN and accepts ECN.
    pub(crate) fn mark(&mut self, options: &mut TcpOptions) {
        let first = !std::mem::replace(&mut self.established, true);
        if let Some(counters) = self.counters() {
            return match first {
                true => counters.accept(options),
                false => counters.mark(options),
            };
        }
        if self.marked || first {
            options.flags |= flags::ECE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(sender: &mut EcnSender, number: u64, again: bool) -> TcpOptions {
        let mut options = TcpOptions::default();
        sender.mark(&mut options, number, again);
        options
    }

    /// True if the ACK carries ECE for a segment with this ECN field and these flags.
    fn echo(receiver: &mut EcnReceiver, ecn: Ecn, flags: u16) -> bool {
        let mut options = TcpOptions::default();
        (options.ecn, options.flags) = (ecn, flags);
        receiver.arrived(1, 1460, &options);
        let mut ack = TcpOptions::default();
        receiver.mark(&mut ack);
        ack.flags & flags::ECE != 0
    }

    fn established(echo: Echo) -> EcnReceiver {
        let mut receiver = EcnReceiver::new(echo);
        let mut syn_ack = TcpOptions::default();
        receiver.mark(&mut syn_ack);
        assert_eq!(syn_ack.flags, flags::ECE, "RFC 3168, section 6.1.1");
        receiver
    }

    #[test]
    fn the_syn_requests_ecn_and_only_new_data_is_ecn_capable() {
        let mut sender = EcnSender::default();
        let syn = segment(&mut sender, 0, false);
        assert_eq!((syn.flags, syn.ecn), (flags::ECE | flags::CWR, Ecn::NotEct));
        assert_eq!(segment(&mut sender, 1, false).ecn, Ecn::Ect0);
        assert_eq!(segment(&mut sender, 1, true).ecn, Ecn::NotEct);
    }

    #[test]
    fn a_window_is_reduced_once_and_the_next_new_segment_has_cwr() {
        let mut sender = EcnSender::default();
        assert!(sender.answers(5, 20));
        assert_eq!(segment(&mut sender, 6, true).flags, 0);
        assert_eq!(segment(&mut sender, 20, false).flags, flags::CWR);
        assert_eq!(segment(&mut sender, 21, false).flags, 0);
        assert!(!sender.answers(20, 30));
        assert!(sender.answers(21, 30));
    }

    #[test]
    fn a_mark_is_echoed_until_the_sender_has_reduced() {
        let mut receiver = established(Echo::Latched);
        assert!(!echo(&mut receiver, Ecn::Ect0, 0));
        assert!(echo(&mut receiver, Ecn::Ce, 0));
        assert!(echo(&mut receiver, Ecn::Ect0, 0));
        assert!(!echo(&mut receiver, Ecn::Ect0, flags::CWR));
        assert!(echo(&mut receiver, Ecn::Ce, flags::CWR), "marked again");
    }

    #[test]
    fn an_exact_echo_is_of_the_marked_segments_alone() {
        let mut receiver = established(Echo::Exact);
        let seen = [Ecn::Ect0, Ecn::Ce, Ecn::Ce, Ecn::Ect0];
        let echoes = seen.map(|ecn| echo(&mut receiver, ecn, 0));
        assert_eq!(echoes, [false, true, true, false]);
        let mut marked = TcpOptions::default();
        assert!(!receiver.changes(&marked));
        marked.ecn = Ecn::Ce;
        assert!(receiver.changes(&marked));
    }
}
