//! CE marks that senders count from their ACKs, by Linux's rule and by the rules of RFC 9768. Written from these
//! sources, without the product's code.

use super::acks::{AE, CWR, ECE, SEGMENT, Said};
use super::receiver::COUNTERS;

/// Newly acknowledged bytes and packets.
#[derive(Clone, Copy)]
pub(crate) struct Learned {
    pub(crate) packets: u32,
    /// Lower bound of Linux's `delivered_bytes`: the step of the cumulative number. `tcp_shifted_skb` omits SACKed
    /// bytes that were merged, and `tcp_clean_rtx_queue` overwrites the others when the number advances.
    pub(crate) bytes: u32,
    pub(crate) progress: bool,
}

/// A sender's rule for an ACK that may hide a wrap of ACE.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rule {
    /// Linux: `__tcp_accecn_process` and `tcp_accecn_process_option` in `net/ipv4/tcp_input.c`.
    Linux {
        /// True if Linux has the exact number of packets: with SACK, or without loss.
        knows_packets: bool,
    },
    /// RFC 9768, appendix A.2.2.
    Option,
    /// RFC 9768, appendix A.2.1: the option is not read.
    Ace,
}

pub(crate) const RULES: [Rule; 4] = [
    Rule::Linux {
        knows_packets: true,
    },
    Rule::Linux {
        knows_packets: false,
    },
    Rule::Option,
    Rule::Ace,
];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    /// Number of CE-marked packets: `delivered_ce`, `s.cep`.
    pub(crate) ce: u32,
    /// Counters of ECT(0), CE and ECT(1), `delivered_ecn_bytes`.
    bytes: [u32; 3],
    /// Linux's `est_ecnfield`: index of the counter to which new bytes are attributed.
    estimated: Option<usize>,
    /// True once the count has differed from the receiver's.
    pub(crate) confused: bool,
    /// True once an ACK had the option.
    pub(crate) saw_option: bool,
}

impl Default for Marks {
    fn default() -> Self {
        Self {
            ce: 0,
            bytes: COUNTERS,
            estimated: None,
            confused: false,
            saw_option: false,
        }
    }
}

impl Marks {
    pub(crate) fn hears(&mut self, rule: Rule, said: &Said, learned: Learned) {
        if !learned.progress {
            return;
        }
        self.saw_option |= said.accecn.is_some();
        let before = self.bytes[1];
        let bytes = match rule {
            Rule::Linux { .. } => learned.bytes,
            Rule::Option | Rule::Ace => learned.packets * SEGMENT,
        };
        let valid = self.reads_option(said, bytes);
        let d_ceb = self.bytes[1].wrapping_sub(before) & 0x00ff_ffff;
        let bit = |flag, value| if said.flags & flag > 0 { value } else { 0 };
        let ace = bit(AE, 4) + bit(CWR, 2) + bit(ECE, 1);
        let delta = (ace + 16 - 5 - self.ce % 8) % 8;
        let packets = learned.packets;
        self.ce += match (rule, packets > 7) {
            (_, false) => delta,
            (Rule::Linux { knows_packets }, _) => {
                linux((delta, packets, valid), (d_ceb, bytes), knows_packets)
            }
            (Rule::Option, _) if said.accecn.is_some() => by_option(delta, packets, d_ceb),
            // "The safest likely case under the prevailing conditions."
            (Rule::Option, _) if self.saw_option && delta == 0 => 0,
            (Rule::Option | Rule::Ace, _) => safe(delta, packets),
        };
        self.confused |= self.ce != said.marks;
    }

    /// True if the counters may be used.
    fn reads_option(&mut self, said: &Said, bytes: u32) -> bool {
        let Some((kind, fields, counters)) = said.accecn else {
            if let Some(field) = self.estimated {
                self.bytes[field] = self.bytes[field].wrapping_add(bytes) & 0x00ff_ffff;
            }
            return self.estimated.is_some();
        };
        let before = self.estimated;
        let (mut valid, mut changed, mut ambiguous) = (before.is_some(), false, false);
        for (place, counter) in counters[..fields].iter().enumerate() {
            let field = if kind == 172 { place } else { 2 - place };
            let delta = counter.wrapping_sub(self.bytes[field]) & 0x00ff_ffff;
            self.bytes[field] = *counter;
            if delta >= 1 << 23 {
                (valid, ambiguous) = (false, true);
            }
            if delta != 0 && before != Some(field) {
                if changed {
                    (valid, ambiguous) = (false, true);
                } else {
                    (self.estimated, changed) = (Some(field), true);
                }
            }
        }
        if ambiguous {
            self.estimated = None;
        }
        valid
    }
}

fn safe(delta: u32, packets: u32) -> u32 {
    packets - (packets + 8 - delta) % 8
}

fn linux(
    (delta, packets, valid): (u32, u32, bool),
    (d_ceb, bytes): (u32, u32),
    knows_packets: bool,
) -> u32 {
    let safe = safe(delta, packets);
    if !valid {
        return safe;
    }
    if d_ceb == 0 {
        return delta;
    }
    if packets >= 16 && knows_packets {
        if bytes <= d_ceb {
            return safe;
        }
        let estimate = (u64::from(d_ceb) * u64::from(packets)).div_ceil(bytes.into()) as u32;
        return safe.min(delta + (estimate & !7));
    }
    if d_ceb > delta * SEGMENT {
        return safe;
    }
    if d_ceb < (safe * SEGMENT) >> 1 {
        return delta;
    }
    safe
}

fn by_option(delta: u32, packets: u32, d_ceb: u32) -> u32 {
    let safe = safe(delta, packets);
    let full = d_ceb <= delta * SEGMENT;
    match full && (safe == 0 || d_ceb / safe < SEGMENT / 2) {
        true => delta,
        false => safe,
    }
}
