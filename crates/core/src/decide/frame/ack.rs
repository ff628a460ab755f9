//! What a real ACK says, and how a queued one is made to say what a later one does.

use crate::decide::ack::{AckInfo, MAX_SACK_RANGES, SackRange};

const ACK_NUMBER: usize = 8;
const FLAGS: usize = 12;
const WINDOW: usize = 14;
const CHECKSUM: usize = 16;
const FIXED_HEADER: usize = 20;

/// Kinds of TCP options (IANA); what is not here is not understood, and its carrier is kept.
mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
    pub(super) const MD5: u8 = 19;
    pub(super) const AO: u8 = 29;
    pub(super) const ACCECN_0: u8 = 172;
    pub(super) const ACCECN_1: u8 = 174;
}

/// What the ACK in `frame` says, given where its TCP header begins; `None` if there is none.
pub fn ack_info(frame: &[u8], transport: u16) -> Option<AckInfo> {
    let header = tcp_header(frame, transport)?;
    let word = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let mut info = AckInfo {
        ack: long(&header[ACK_NUMBER..])?,
        window: word(WINDOW),
        flags: word(FLAGS) & 0x01ff,
        // Reserved bits that somebody sets mean something that we do not know.
        keep: word(FLAGS) & 0x0e00 != 0,
        ..AckInfo::default()
    };
    if for_each_option(header, |kind, body, _| read_option(&mut info, kind, body)).is_none() {
        info.keep = true;
    }
    Some(info)
}

/// Writes number, window and timestamps of `newer` into the ACK in `frame`, and mends its checksum
/// by the difference (RFC 1624), so that a wrong checksum stays wrong.
pub fn rewrite_ack(frame: &mut [u8], transport: u16, newer: &AckInfo) {
    let Some(length) = tcp_header(frame, transport).map(<[u8]>::len) else {
        return;
    };
    let start = usize::from(transport);
    let header = &mut frame[start..start + length];
    let before = sum(header);
    header[ACK_NUMBER..ACK_NUMBER + 4].copy_from_slice(&newer.ack.to_be_bytes());
    header[WINDOW..WINDOW + 2].copy_from_slice(&newer.window.to_be_bytes());
    if let Some((val, ecr)) = newer.timestamps {
        let mut place = None;
        for_each_option(header, |kind, body, at| {
            if kind == kind::TIMESTAMPS && body.len() == 8 {
                place = Some(at);
            }
        });
        if let Some(at) = place {
            header[at..at + 4].copy_from_slice(&val.to_be_bytes());
            header[at + 4..at + 8].copy_from_slice(&ecr.to_be_bytes());
        }
    }
    let after = sum(header);
    let checksum = u16::from_be_bytes([header[CHECKSUM], header[CHECKSUM + 1]]);
    let mended = !fold(u64::from(!checksum) + u64::from(!fold(before)) + after);
    header[CHECKSUM..CHECKSUM + 2].copy_from_slice(&mended.to_be_bytes());
}

/// The TCP header with its options.
fn tcp_header(frame: &[u8], transport: u16) -> Option<&[u8]> {
    let segment = frame
        .get(usize::from(transport)..)
        .filter(|_| transport > 0)?;
    let length = usize::from(segment.get(FLAGS)? >> 4) * 4;
    segment
        .get(..length)
        .filter(|header| header.len() >= FIXED_HEADER)
}

/// Calls `see` with each option's kind, body and the body's offset in the header; `None` if an
/// option's length is a lie.
fn for_each_option(header: &[u8], mut see: impl FnMut(u8, &[u8], usize)) -> Option<()> {
    let mut at = FIXED_HEADER;
    while let Some(&kind) = header.get(at) {
        match kind {
            kind::END => break,
            kind::NOP => at += 1,
            _ => {
                let length = usize::from(*header.get(at + 1)?);
                let body = header
                    .get(at + 2..at + length.max(2))
                    .filter(|_| length >= 2)?;
                see(kind, body, at + 2);
                at += length;
            }
        }
    }
    Some(())
}

fn read_option(info: &mut AckInfo, kind: u8, body: &[u8]) {
    match (kind, body.len()) {
        (kind::TIMESTAMPS, 8) if info.timestamps.is_none() => {
            info.timestamps = long(body).zip(long(&body[4..]));
        }
        (kind::SACK, length)
            if length > 0
                && length % 8 == 0
                && length / 8 <= MAX_SACK_RANGES
                && info.sack_ranges == 0 =>
        {
            for (range, bytes) in info.sack.iter_mut().zip(body.chunks_exact(8)) {
                if let (Some(start), Some(end)) = (long(bytes), long(&bytes[4..])) {
                    *range = SackRange { start, end };
                    info.sack_ranges += 1;
                }
            }
        }
        (kind::MD5, 16) => info.signed = true,
        (kind::AO, _) => (info.signed, info.keep) = (true, true),
        (kind::ACCECN_0 | kind::ACCECN_1, 0 | 3 | 6 | 9) => {
            info.accecn_option = body.len() as u8 + 2;
        }
        _ => info.keep = true,
    }
}

fn long(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
}

fn sum(header: &[u8]) -> u64 {
    let words = header
        .chunks_exact(2)
        .map(|word| u16::from_be_bytes([word[0], word[1]]));
    words.map(u64::from).sum()
}

fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
