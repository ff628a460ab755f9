//! AccECN (RFC 9768) as in Linux: counters of sender and receiver.

use crate::packets::TcpOptions;
use asymq_core::{Ecn, flags};

/// The three bits of ACE: AE, CWR and ECE.
const ACE: u16 = flags::AE | flags::CWR | flags::ECE;
/// Flags of a SYN that requests AccECN (sec. 3.1.1).
pub(super) const OFFER: u16 = ACE;
/// Flags of the SYN-ACK for a SYN that was not ECT (sec. 3.1.1, table 2).
const ACCEPTED: u16 = flags::CWR;
/// First value of ACE (sec. 3.2.1).
const FIRST: u32 = 5;
/// Initial values of the option's counters for ECT(1), CE and ECT(0) (sec. 3.2.1).
const FIRST_BYTES: [u32; 3] = [1, 0, 1];
const MASK: u32 = 0x00ff_ffff;

/// True if a SYN-ACK agrees to AccECN (sec. 3.1.2, table 2).
pub(super) fn is_accepted(options: &TcpOptions) -> bool {
    matches!((options.flags & ACE) >> 6, 2 | 3 | 4 | 6)
}

/// Counters of a receiver.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Received {
    /// True if ACKs carry the option.
    option: bool,
    marks: u32,
    bytes: [u32; 3],
    /// Number of counters in the option, up to the last counter that has changed.
    fields: u8,
    /// Number of marks since the last ACK.
    pending: u32,
    /// True if the last packet was marked.
    marked: bool,
    /// True if an ACK must be sent at once (sec. 3.2.2.5.1).
    pub(super) due: bool,
}

impl Received {
    /// Creates the counters of a new connection; `option` is false if only ACE is used.
    pub(super) fn nothing(option: bool) -> Self {
        Self {
            option,
            bytes: FIRST_BYTES,
            ..Self::default()
        }
    }

    /// Counts an arriving packet with `payload` bytes. An ACK must be sent at once for the first mark after an unmarked
    /// packet, and for every second mark.
    pub(super) fn arrived(&mut self, ecn: Ecn, payload: u32) {
        let place = match ecn {
            Ecn::NotEct => return self.marked = false,
            Ecn::Ect1 => 0,
            Ecn::Ce => 1,
            Ecn::Ect0 => 2,
        };
        if let Some(counter) = self.bytes.get_mut(place) {
            *counter = counter.wrapping_add(payload) & MASK;
        }
        self.fields = self.fields.max(place as u8 + 1);
        let marked = ecn == Ecn::Ce;
        if marked {
            self.marks += 1;
            self.pending += 1;
            self.due |= !self.marked || self.pending >= 2;
        }
        self.marked = marked;
    }

    /// Writes the counters into an ACK.
    pub(super) fn mark(&mut self, options: &mut TcpOptions) {
        (self.pending, self.due) = (0, false);
        options.flags |= ((((FIRST + self.marks) & 7) as u16) << 6) & ACE;
        options.accecn = self.option.then_some((self.fields, self.bytes));
    }

    /// Writes the acceptance into a SYN-ACK.
    pub(super) fn accept(&self, options: &mut TcpOptions) {
        options.flags |= ACCEPTED;
        options.accecn = self.option.then_some((0, FIRST_BYTES));
    }
}

/// Counters of a sender: what the receiver has reported so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    /// `delivered_ce`.
    pub(super) marks: u32,
    /// `delivered_ecn_bytes`.
    bytes: [u32; 3],
    /// `est_ecnfield`: the ECN field to which the latest bytes were attributed.
    attributed: Option<usize>,
}

impl Delivered {
    pub(super) const NOTHING: Self = Self {
        marks: 0,
        bytes: FIRST_BYTES,
        attributed: None,
    };

    /// Returns the number of new marks in an ACK that newly acknowledges `packets`, as `__tcp_accecn_process` does.
    pub(super) fn hears(&mut self, options: &TcpOptions, packets: u32) -> u32 {
        if packets == 0 {
            return 0;
        }
        let before = self.bytes[1];
        let segment = options.mss();
        let valid = self.reads(options, packets.wrapping_mul(segment));
        let ace = u32::from((options.flags & ACE) >> 6);
        let step = ace.wrapping_sub(FIRST + self.marks) & 7;
        let new = match packets > 7 {
            false => step,
            true => {
                let bytes = self.bytes[1].wrapping_sub(before) & MASK;
                cycles(step, packets, segment, valid.then_some(bytes))
            }
        };
        self.marks = self.marks.wrapping_add(new);
        new
    }

    /// Processes the option. Returns true if its counters are reliable.
    fn reads(&mut self, options: &TcpOptions, bytes: u32) -> bool {
        let before = self.attributed;
        let Some((fields, counters)) = options.accecn else {
            if let Some(place) = before {
                self.bytes[place] = self.bytes[place].wrapping_add(bytes) & MASK;
            }
            return before.is_some();
        };
        let mut moved = None;
        let mut ambiguous = false;
        for (place, counter) in counters.iter().enumerate().take(fields.into()) {
            let step = counter.wrapping_sub(self.bytes[place]) & MASK;
            self.bytes[place] = *counter;
            ambiguous |= step > MASK / 2;
            if step != 0 && before != Some(place) {
                ambiguous |= moved.is_some();
                moved = moved.or(Some(place));
            }
        }
        self.attributed = match ambiguous {
            true => None,
            false => moved.or(before),
        };
        before.is_some() && !ambiguous
    }
}

/// Returns the number of marks if ACE may have wrapped; `bytes` is the number of marked bytes, if known.
fn cycles(step: u32, packets: u32, segment: u32, bytes: Option<u32>) -> u32 {
    let most = packets - (packets.wrapping_sub(step) & 7);
    let Some(bytes) = bytes else {
        return most;
    };
    let full = u64::from(segment);
    let marked = u64::from(bytes);
    if bytes == 0 {
        step
    } else if packets >= 16 {
        let all = u64::from(packets) * full;
        let estimate = (marked * u64::from(packets)).div_ceil(all.max(1)) as u32;
        match marked >= all {
            true => most,
            false => most.min(step + (estimate & !7)),
        }
    } else if marked > u64::from(step) * full || marked >= (u64::from(most) * full) / 2 {
        most
    } else {
        step
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ecn::{Echo, EcnReceiver, EcnSender, Offer};
    use crate::packets::{Kind, Layout, Segment, SimPacket};
    use asymq_core::catalog::{BoxedQdisc, Catalog as _, Params, Place, Standard, resolve};
    use asymq_core::decide::random::mix;
    use asymq_core::{Dequeue, Discard, Instant};
    use asymq_scenario::Direction;

    const OFFERED: Offer = Offer {
        accurate: true,
        ect1: false,
    };

    fn receiver() -> EcnReceiver {
        EcnReceiver::new(Echo::Latched).with_accurate(true)
    }

    /// Returns the options of a SYN and of its answer.
    fn handshake(sender: &mut EcnSender, receiver: &mut EcnReceiver) -> (TcpOptions, TcpOptions) {
        let (mut syn, mut answer) = (TcpOptions::default(), TcpOptions::new(None, 1460));
        sender.mark(&mut syn, 0, false);
        receiver.arrived(0, 0, &syn);
        receiver.mark(&mut answer);
        sender.agree(&answer);
        (syn, answer)
    }

    #[test]
    fn both_ends_agree_to_common_options() {
        let mut offers = EcnSender::new(OFFERED);
        let (syn, answer) = handshake(&mut offers, &mut receiver());
        assert_eq!(syn.flags, flags::AE | flags::CWR | flags::ECE);
        assert_eq!(
            (answer.flags, answer.accecn),
            (flags::CWR, Some((0, [1, 0, 1])))
        );
        assert!(offers.is_accurate());

        let mut classic_receiver = EcnReceiver::new(Echo::Latched);
        let (_, answer) = handshake(&mut offers, &mut classic_receiver);
        assert_eq!((answer.flags, answer.accecn), (flags::ECE, None));
        assert!(!offers.is_accurate(), "falls back");

        let (syn, answer) = handshake(&mut EcnSender::default(), &mut receiver());
        assert_eq!(syn.flags, flags::CWR | flags::ECE);
        assert_eq!((answer.flags, answer.accecn), (flags::ECE, None));
    }

    #[test]
    fn ace_alone_counts_without_the_option() {
        let (mut sender, receiver) = (EcnSender::new(OFFERED), EcnReceiver::new(Echo::Latched));
        let mut receiver = receiver.with_accurate(false);
        let (_, answer) = handshake(&mut sender, &mut receiver);
        assert_eq!((answer.flags, answer.accecn), (flags::CWR, None));
        assert!(sender.is_accurate());
        let (mut data, mut ack) = (TcpOptions::default(), TcpOptions::new(None, 1460));
        data.ecn = Ecn::Ce;
        receiver.arrived(1, 1460, &data);
        receiver.mark(&mut ack);
        assert_eq!((ack.flags & ACE, ack.accecn), (6 << 6, None));
    }

    fn sad() -> BoxedQdisc<SimPacket<TcpOptions>> {
        let place = Place {
            link: "1mbit".parse().unwrap(),
            reverse: None,
            limit: "100p".parse().unwrap(),
        };
        let config = resolve(&Standard, "sad", &Params::new(), &Params::new(), place).unwrap();
        Standard.build(&config).unwrap()
    }

    /// Sends 40 000 segments; of each thousand, `marked` have CE. Returns the marks that the receiver counted,
    /// those that the sender counted, the number of filtered ACKs, and the number of all ACKs.
    fn counted(marked: u64, lost_options: u64, seed: u64) -> (u64, u64, u64, u64) {
        let mut state = seed;
        let mut below = |n: u64| {
            state = mix(state.wrapping_add(1));
            state % n
        };
        let (mut sender, mut receiver) = (EcnSender::new(OFFERED), receiver());
        handshake(&mut sender, &mut receiver);
        let layout = Layout::new(0, 1460, 40, 0);
        let mut queue = sad();
        let (mut una, mut heard, mut marks, mut left, mut sent) = (1, 0, 0, 0, 0);
        for number in 1..=40_000u64 {
            let mut data = TcpOptions::default();
            data.ecn = match below(1000) < marked {
                true => Ecn::Ce,
                false => Ecn::Ect0,
            };
            marks += u64::from(data.ecn == Ecn::Ce);
            receiver.arrived(number, 1460, &data);
            if number % 2 == 0 || receiver.is_due() {
                let mut ack = TcpOptions::new(None, 1460);
                receiver.mark(&mut ack);
                if below(1000) < lost_options {
                    ack.accecn = None;
                }
                let segment = Segment::with(Kind::Ack, number + 1, ack);
                let packet = layout.packet(segment, Direction::Up, Instant::ZERO);
                queue.enqueue(Instant::ZERO, packet, &mut Discard);
                sent += 1;
            }
            // The last data packet's ACK arrives: the queue is emptied at the end.
            let drains = number == 40_000;
            while drains || queue.backlog().packets > 50 || below(12) == 0 {
                let Dequeue::Packet(packet) = queue.dequeue(Instant::ZERO, &mut Discard) else {
                    break;
                };
                let ack = packet.segment;
                let delivered = ack.number() - una;
                una = ack.number();
                heard += sender.marks(&ack.options, delivered, delivered);
                left += 1;
            }
        }
        (marks, heard, sent - left, sent)
    }

    #[test]
    fn a_sender_counts_every_mark_of_a_filtered_path() {
        for lost_options in [0, 20, 300, 1000] {
            for marked in [0, 1, 10, 100, 500, 1000] {
                for seed in [1, 2] {
                    let (marks, heard, filtered, sent) = counted(marked, lost_options, seed);
                    let of = format!("{marked}, {lost_options}, {seed}: {filtered} of {sent}");
                    assert_eq!(marks, heard, "{of}");
                    // Without marks and with the option, the queue filters most ACKs.
                    assert!(
                        marked + lost_options > 0 || filtered * 10 > sent * 7,
                        "{of}"
                    );
                }
            }
        }
    }
}
