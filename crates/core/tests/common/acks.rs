//! ACKs as receivers build them, their frames, and the rules of `docs/notes/ack-rules.md` as predicates. The predicates
//! share no code with the product.

/// Bytes of a segment.
pub(crate) const SEGMENT: u32 = 1460;

pub(crate) const ACK: u16 = 0x010;
pub(crate) const PSH: u16 = 0x008;
pub(crate) const URG: u16 = 0x020;
pub(crate) const ECE: u16 = 0x040;
pub(crate) const CWR: u16 = 0x080;
pub(crate) const AE: u16 = 0x100;
pub(crate) const RESERVED: u16 = 0xe00;
const ECN: u16 = ECE | CWR | AE;

/// A header field or option that a filter does not understand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extra {
    Mptcp,
    TcpAo,
    Unknown,
    LyingLength,
    Md5,
}

/// Properties of a frame outside the TCP header that may differ within a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Path {
    pub(crate) v6: bool,
    /// Priority and identifier of a VLAN tag.
    pub(crate) vlan: Option<u16>,
    pub(crate) pppoe: bool,
    pub(crate) source_mac: u8,
    pub(crate) destination_mac: u8,
    /// DSCP and ECN field.
    pub(crate) traffic_class: u8,
    /// IPv4 options or IPv6 hop-by-hop options.
    pub(crate) ip_options: bool,
    /// Host of an outer header of the other IP version.
    pub(crate) tunnel: Option<u8>,
    /// Bits that differ between the outer and the inner header, in DSCP and ECN field.
    pub(crate) outer_class: u8,
    /// IPv4 options or IPv6 hop-by-hop options in the outer header.
    pub(crate) outer_options: bool,
}

/// Fields of the frame to build, and its fate on the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) port: u16,
    pub(crate) host: u16,
    pub(crate) path: Path,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) window: u16,
    /// TCP flags except ACK.
    pub(crate) flags: u16,
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) sack: [(u32, u32); 4],
    pub(crate) sacks: usize,
    /// Kind of the AccECN option (172 or 174), number of counters, and the counters.
    pub(crate) accecn: Option<(u8, usize, [u32; 3])>,
    pub(crate) extra: Option<Extra>,
    /// Number of marks that the receiver has counted; not part of the frame.
    pub(crate) marks: u32,
    /// Index of the bit in the TCP segment that was flipped on the path.
    pub(crate) flipped: Option<usize>,
    /// A wrong IPv4 header checksum.
    pub(crate) ip_checksum_wrong: bool,
    pub(crate) payload: usize,
}

pub(crate) fn before(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) < 0
}

fn internet_sum(mut sum: u32, bytes: &[u8]) -> u32 {
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |low| u32::from(*low));
    }
    sum
}

fn internet_checksum(sum: u32) -> u16 {
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    !(sum as u16)
}

impl Said {
    pub(crate) fn ranges(&self) -> &[(u32, u32)] {
        &self.sack[..self.sacks]
    }

    pub(crate) fn is_corrupt(&self) -> bool {
        // A tunnel's outer header has the other version, so one of the two headers is IPv4.
        let has_v4 = !self.path.v6 || self.path.tunnel.is_some();
        self.flipped.is_some() || self.ip_checksum_wrong && has_v4
    }

    pub(crate) fn is_dsack(&self) -> bool {
        let inside = |a: (u32, u32), b: (u32, u32)| !before(a.0, b.0) && !before(b.1, a.1);
        match *self.ranges() {
            [first, ..] if before(first.0, self.ack) => true,
            [first, second, ..] => inside(first, second),
            _ => false,
        }
    }

    fn options(&self, out: &mut Vec<u8>) {
        match self.extra {
            Some(Extra::Mptcp) => out.extend([30, 4, 0x20, 0]),
            Some(Extra::TcpAo) => out.extend([29, 4, 1, 1]),
            Some(Extra::Unknown) => out.extend([254, 4, 0, 0]),
            Some(Extra::Md5) => {
                out.extend([1, 1, 19, 18]);
                out.extend([7; 16]);
            }
            Some(Extra::LyingLength) | None => {}
        }
        if let Some((val, ecr)) = self.timestamps {
            out.extend([1, 1, 8, 10]);
            out.extend(val.to_be_bytes());
            out.extend(ecr.to_be_bytes());
        }
        if let Some((kind, fields, counters)) = self.accecn {
            out.extend([kind, 2 + 3 * fields as u8]);
            for counter in &counters[..fields] {
                out.extend(&counter.to_be_bytes()[1..]);
            }
        }
        if self.sacks > 0 {
            out.extend([5, 2 + 8 * self.sacks as u8]);
            for (start, end) in self.ranges() {
                out.extend(start.to_be_bytes());
                out.extend(end.to_be_bytes());
            }
        }
        if self.extra == Some(Extra::LyingLength) {
            out.extend([8, 40]);
        }
    }

    /// Number of bytes available for further options.
    pub(crate) fn room(&self) -> usize {
        let mut options = Vec::new();
        self.options(&mut options);
        40 - options.len().div_ceil(4) * 4
    }

    pub(crate) fn write(&self, frame: &mut Vec<u8>) {
        let path = &self.path;
        frame.clear();
        frame.extend([
            2,
            0,
            0,
            0,
            0,
            path.destination_mac,
            2,
            0,
            0,
            1,
            0,
            path.source_mac,
        ]);
        if let Some(tag) = path.vlan {
            frame.extend([0x81, 0]);
            frame.extend(tag.to_be_bytes());
        }
        let outer_v6 = path.v6 != path.tunnel.is_some();
        let mut length_at = 0;
        if path.pppoe {
            frame.extend([0x88, 0x64, 0x11, 0, 0, 9]);
            length_at = frame.len();
            frame.extend([0, 0]);
            frame.extend(if outer_v6 { [0, 0x57] } else { [0, 0x21] });
        } else {
            frame.extend(if outer_v6 { [0x86, 0xdd] } else { [0x08, 0] });
        }
        let outer = frame.len();
        if let Some(host) = path.tunnel {
            let inner = if path.v6 { 41 } else { 4 };
            let class = path.traffic_class ^ path.outer_class;
            self.ip(
                frame,
                outer_v6,
                inner,
                (path.outer_options, class),
                host.into(),
            );
        }
        let ip = frame.len();
        let options = (path.ip_options, path.traffic_class);
        self.ip(frame, path.v6, 6, options, self.host);
        let tcp = frame.len();
        frame.extend(self.port.to_be_bytes());
        frame.extend(443u16.to_be_bytes());
        frame.extend(self.seq.to_be_bytes());
        frame.extend(self.ack.to_be_bytes());
        frame.extend([0, 0]);
        frame.extend(self.window.to_be_bytes());
        frame.extend([0; 4]);
        self.options(frame);
        let header = (frame.len() - tcp).div_ceil(4) * 4;
        assert!(header <= 60, "too many options: {self:?}");
        frame.resize(tcp + header + self.payload, 0);
        let word = (header as u16 / 4) << 12 | ACK | self.flags;
        frame[tcp + 12..tcp + 14].copy_from_slice(&word.to_be_bytes());
        self.finish(frame, outer, ip, tcp);
        if length_at > 0 {
            let length = (frame.len() - length_at - 2) as u16;
            frame[length_at..length_at + 2].copy_from_slice(&length.to_be_bytes());
        }
        if let Some(bit) = self.flipped {
            // Ports and data offset never flip: the frame would leave its flow, or lose its TCP segment.
            let bit = 32 + bit % 64;
            frame[tcp + bit / 8] ^= 1 << (bit % 8);
        }
    }

    fn ip(
        &self,
        frame: &mut Vec<u8>,
        v6: bool,
        protocol: u8,
        (options, class): (bool, u8),
        host: u16,
    ) {
        let [high, low] = host.to_be_bytes();
        if v6 {
            let first = if options { 0 } else { protocol };
            frame.extend([0x60 | class >> 4, class << 4, 0, 0, 0, 0, first, 64]);
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, high, low]);
            frame.extend([0x20, 1, 0xd, 0xb8, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
            if options {
                frame.extend([protocol, 0, 1, 4, 0, 0, 0, 0]);
            }
        } else {
            let words = if options { 6 } else { 5 };
            frame.extend([0x40 | words, class, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0]);
            frame.extend([10, 0, high, low, 203, 0, 113, 5]);
            if options {
                frame.extend([1, 1, 1, 1]);
            }
        }
    }

    /// Writes the lengths and checksums of all headers.
    fn finish(&self, frame: &mut [u8], outer: usize, ip: usize, tcp: usize) {
        let end = frame.len();
        let mut headers = vec![(ip, tcp)];
        if outer < ip {
            headers.push((outer, ip));
        }
        for (start, next) in headers {
            if frame[start] >> 4 == 6 {
                let length = (end - start - 40) as u16;
                frame[start + 4..start + 6].copy_from_slice(&length.to_be_bytes());
                continue;
            }
            let length = (end - start) as u16;
            frame[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
            let mut checksum = internet_checksum(internet_sum(0, &frame[start..next]));
            if self.ip_checksum_wrong {
                checksum ^= 0x0100;
            }
            frame[start + 10..start + 12].copy_from_slice(&checksum.to_be_bytes());
        }
        let addresses = if frame[ip] >> 4 == 6 {
            ip + 8..ip + 40
        } else {
            ip + 12..ip + 20
        };
        let pseudo = internet_sum(6 + (end - tcp) as u32, &frame[addresses]);
        let checksum = internet_checksum(internet_sum(pseudo, &frame[tcp..]));
        frame[tcp + 16..tcp + 18].copy_from_slice(&checksum.to_be_bytes());
    }

    pub(crate) fn frame(&self) -> Vec<u8> {
        let mut frame = Vec::new();
        self.write(&mut frame);
        frame
    }
}

/// A rule of `docs/notes/ack-rules.md`.
pub(crate) struct Rule {
    pub(crate) name: &'static str,
    /// RFCs from which the rule follows.
    pub(crate) source: &'static str,
    /// True if the first ACK may be filtered for the second.
    pub(crate) lets: fn(&Said, &Said) -> bool,
}

const fn rule(name: &'static str, source: &'static str, lets: fn(&Said, &Said) -> bool) -> Rule {
    Rule { name, source, lets }
}

fn covered(range: (u32, u32), by: &Said) -> bool {
    let inside = |mine: &(u32, u32)| !before(range.0, mine.0) && !before(mine.1, range.1);
    !before(by.ack, range.1) || by.ranges().iter().any(inside)
}

/// The rules that compare two ACKs. `ack_knowledge.rs` tests the rules that depend on the flow.
pub(crate) const RULES: &[Rule] = &[
    rule("pure", "RFC 3449, sec. 5.2.1", |old, new| {
        old.payload + new.payload == 0
    }),
    rule(
        "checksum",
        "RFC 9293, sec. 3.1; RFC 791, sec. 3.1",
        |old, new| !old.is_corrupt() && !new.is_corrupt(),
    ),
    rule("context", "RFC 2474; RFC 3168, sec. 6.1.4", |old, new| {
        old.path == new.path && (old.host, old.port) == (new.host, new.port)
    }),
    rule("ip-options", "RFC 791; RFC 8200, sec. 4", |old, new| {
        ![old.path, new.path]
            .iter()
            .any(|path| path.ip_options || path.outer_options)
    }),
    rule("number", "RFC 9293, sec. 3.10.7.4", |old, new| {
        let more = |range: &(u32, u32)| !covered(*range, old);
        before(old.ack, new.ack) || old.ack == new.ack && new.ranges().iter().any(more)
    }),
    rule("sequence", "RFC 9293, secs. 3.8.4, 3.8.6.1", |old, new| {
        old.seq == new.seq
    }),
    rule("window", "RFC 9293, sec. 3.10.7.4", |old, new| {
        old.window <= new.window
    }),
    rule("urgency", "RFC 9293, sec. 3.8.5", |old, _| {
        old.flags & (PSH | URG) == 0
    }),
    rule("reserved", "RFC 9293, sec. 3.1", |old, new| {
        (old.flags | new.flags) & RESERVED == 0
    }),
    rule("options", "RFC 8684, sec. 3; RFC 5925", |old, new| {
        let known = |extra| matches!(extra, None | Some(Extra::Md5));
        known(old.extra) && known(new.extra)
    }),
    rule("signature", "RFC 2385, sec. 2", |old, new| {
        (old.extra == Some(Extra::Md5)) == (new.extra == Some(Extra::Md5))
    }),
    rule(
        "timestamps",
        "RFC 7323, secs. 4.3, 5.3",
        |old, new| match (old.timestamps, new.timestamps) {
            (None, _) => true,
            (Some(old), Some(new)) => !before(new.0, old.0) && !before(new.1, old.1),
            (Some(_), None) => false,
        },
    ),
    rule("dsack", "RFC 2883, sec. 4; RFC 8985, sec. 6.2", |old, _| {
        !old.is_dsack()
    }),
    rule(
        "ecn-echo",
        "RFC 3168, sec. 6.1.3; RFC 9768, sec. 3.2.2",
        |old, new| {
            let kind = |said: &Said| said.accecn.map(|(kind, ..)| kind);
            let counts = kind(old).is_some() && kind(old) == kind(new);
            (old.flags ^ new.flags) & ECN == 0 || counts
        },
    ),
    rule("accecn", "RFC 9768, sec. 3.2.3", |old, new| {
        let goes_on = |(old, new): (&u32, &u32)| new.wrapping_sub(*old) % (1 << 24) < 1 << 23;
        match (&old.accecn, &new.accecn) {
            (None, None) => true,
            (Some((kind, fields, old)), Some((new_kind, new_fields, new))) => {
                kind == new_kind
                    && fields <= new_fields
                    && old.iter().zip(new).take(*fields).all(goes_on)
            }
            _ => false,
        }
    }),
];

/// The rules that depend on a queue's state of the flow.
pub(crate) const FLOW_RULES: &[(&str, &str)] = &[
    ("sack", "RFC 2018, sec. 4"),
    ("duplicates", "RFC 5681, sec. 3.2"),
    ("stretch", "RFC 3449, sec. 5.2.1"),
    ("ace", "RFC 9768, secs. 3.2.2.5.2, 3.3.3"),
];
