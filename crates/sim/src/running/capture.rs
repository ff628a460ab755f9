//! A trace of a link as pcapng (draft-ietf-opsawg-pcapng), with synthetic IPv4 and only headers.

use crate::packets::{Kind, Layout, Options, SimPacket, TcpOptions};
use asymq_core::decide::frame::checksum::{checksum, words};
use std::io::{self, Write};

/// Writes packets at the start of their transmission.
///
/// Addresses are 10.0.x.y at home and 10.1.x.y on the Internet; x.y is the conversation's index. The port on the
/// Internet is 5001. The port at home is 40000 for the first conversation of an index, and increases. Payloads, all
/// zeros, are cut off; checksums are valid.
pub(crate) struct Capture<'a> {
    out: &'a mut dyn Write,
    error: Option<io::Error>,
}

const IPV4: usize = 20;
const UDP: usize = 8;

impl<'a> Capture<'a> {
    /// Creates a trace of the link called `name`.
    pub(crate) fn new(out: &'a mut dyn Write, name: &str) -> Self {
        let mut capture = Self { out, error: None };
        let mut section = Vec::new();
        for word in [0x1a2b_3c4d_u32, 0x0000_0001, u32::MAX, u32::MAX] {
            section.extend(word.to_le_bytes());
        }
        capture.block(0x0a0d_0d0a, &section);
        let mut interface = Vec::new();
        // Link type RAW, no snapshot limit.
        interface.extend(101u32.to_le_bytes());
        interface.extend(0u32.to_le_bytes());
        option(&mut interface, 2, name.as_bytes());
        // if_tsresol: 10^-9 s.
        option(&mut interface, 9, &[9]);
        option(&mut interface, 0, &[]);
        capture.block(1, &interface);
        capture
    }

    /// Writes a packet whose transmission started at `nanos`.
    pub(crate) fn packet<O: Options>(
        &mut self,
        nanos: u64,
        packet: &SimPacket<O>,
        layout: &Layout,
    ) {
        let headers = headers(packet, layout);
        let mut body = Vec::with_capacity(64);
        for word in [
            0,
            (nanos >> 32) as u32,
            nanos as u32,
            headers.len() as u32,
            packet.header.ip_len,
        ] {
            body.extend(word.to_le_bytes());
        }
        body.extend(&headers);
        self.block(6, &body);
    }

    /// Returns the first write error; after this error nothing was written.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.error {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }

    fn block(&mut self, kind: u32, body: &[u8]) {
        if self.error.is_some() {
            return;
        }
        let padding = body.len().next_multiple_of(4) - body.len();
        let total = ((12 + body.len() + padding) as u32).to_le_bytes();
        let parts: [&[u8]; 5] = [
            &kind.to_le_bytes(),
            &total,
            body,
            &[0; 3][..padding],
            &total,
        ];
        self.error = parts
            .into_iter()
            .try_for_each(|part| self.out.write_all(part))
            .err();
    }
}

fn option(into: &mut Vec<u8>, code: u16, value: &[u8]) {
    into.extend(code.to_le_bytes());
    into.extend((value.len() as u16).to_le_bytes());
    into.extend(value);
    into.resize(into.len().next_multiple_of(4), 0);
}

/// IPv4 and TCP or UDP headers of a packet.
fn headers<O: Options>(packet: &SimPacket<O>, layout: &Layout) -> Vec<u8> {
    let direction = packet.direction();
    let number = packet.segment.number();
    let [high, low] = (layout.conversation() as u16).to_be_bytes();
    let (home, server) = ([10, 0, high, low], [10, 1, high, low]);
    let (home_port, server_port) = ((40_000 + layout.generation() % 25_000) as u16, 5_001u16);
    let [source, destination] = direction.pick([home, server], [server, home]);
    let ports = [home_port, server_port];
    let [source_port, destination_port] = direction.pick(ports, [server_port, home_port]);
    let udp = packet.segment.kind() == Kind::Datagram;
    let length = packet.header.ip_len as u16;
    let mut bytes = vec![0u8; IPV4 + if udp { UDP } else { tcp_header(packet) }];
    let (ip, transport) = bytes.split_at_mut(IPV4);
    ip[0] = 0x45;
    ip[1] = packet.header.ecn as u8;
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    // Do not fragment; 64 hops.
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = if udp { 17 } else { 6 };
    ip[12..16].copy_from_slice(&source);
    ip[16..20].copy_from_slice(&destination);
    let sum = checksum(0, ip);
    ip[10..12].copy_from_slice(&sum.to_be_bytes());

    let transport_length = length - IPV4 as u16;
    transport[0..2].copy_from_slice(&source_port.to_be_bytes());
    transport[2..4].copy_from_slice(&destination_port.to_be_bytes());
    let checksum_at = if udp {
        transport[4..6].copy_from_slice(&transport_length.to_be_bytes());
        6
    } else {
        let sequence = match packet.segment.kind() {
            Kind::Data | Kind::Syn => layout.byte(number),
            Kind::SynAck => 0,
            _ => 1,
        };
        transport[4..8].copy_from_slice(&sequence.to_be_bytes());
        transport[8..12].copy_from_slice(&packet.header.ack.to_be_bytes());
        let header = transport.len();
        transport[12] = (header as u8 / 4) << 4;
        // No-operation options, if a scenario configures longer headers.
        transport[20..].fill(1);
        if let Some(options) = packet.segment.options.on_wire() {
            let options = options_bytes(options, packet.header.ack);
            transport[20..20 + options.len()].copy_from_slice(&options);
        }
        transport[13] = packet.header.flags as u8;
        transport[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
        16
    };
    // Sum of the pseudo-header; a payload of zeros adds nothing.
    let pseudo = words(&ip[12..]) + u64::from(ip[9]) + u64::from(transport_length);
    let sum = match checksum(pseudo, transport) {
        0 if udp => u16::MAX,
        sum => sum,
    };
    transport[checksum_at..checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// Bytes of a segment's TCP header.
fn tcp_header<O>(packet: &SimPacket<O>) -> usize {
    (packet.header.ip_len - packet.header.payload) as usize - IPV4
}

/// Returns the options in the layout of RFC 7323 and RFC 2018, padded at the front to multiples of four bytes.
fn options_bytes(options: &TcpOptions, ack: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    if let Some((value, echo)) = options.timestamps {
        bytes.extend([1, 1, 8, 10]);
        bytes.extend(value.to_be_bytes());
        bytes.extend(echo.to_be_bytes());
    }
    let blocks = options.blocks().len() as u8;
    if blocks > 0 {
        bytes.extend([1, 1, 5, 2 + 8 * blocks]);
        for range in options.sack_ranges(ack) {
            bytes.extend(range.start.to_be_bytes());
            bytes.extend(range.end.to_be_bytes());
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::Segment;
    use asymq_core::{Direction, Instant};

    /// The blocks of a pcapng file: type and body.
    fn blocks(mut file: &[u8]) -> Vec<(u32, Vec<u8>)> {
        let word = |at: &[u8]| u32::from_le_bytes([at[0], at[1], at[2], at[3]]);
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let length = word(&file[4..]) as usize;
            assert_eq!(word(&file[length - 4..]) as usize, length);
            blocks.push((word(file), file[8..length - 4].to_vec()));
            file = &file[length..];
        }
        blocks
    }

    #[test]
    fn a_trace_holds_valid_headers_and_the_lengths_on_the_wire() {
        let layout = Layout::new(300, 1460, 40, 1000);
        let mut file = Vec::new();
        let mut capture = Capture::new(&mut file, "uplink");
        let kinds = [
            (Kind::Syn, 40),
            (Kind::Data, 1500),
            (Kind::Ack, 40),
            (Kind::Datagram, 1000),
        ];
        for (kind, _) in kinds {
            let packet = layout.packet(Segment::<()>::new(kind, 3), Direction::Up, Instant::ZERO);
            capture.packet(5_000_000_007, &packet, &layout);
        }
        capture.finish().unwrap();
        let blocks = blocks(&file);
        let types: Vec<u32> = blocks.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(types, [0x0a0d_0d0a, 1, 6, 6, 6, 6]);
        for ((_, body), (kind, length)) in blocks[2..].iter().zip(kinds) {
            assert_eq!(body[4..12], [1, 0, 0, 0, 0x07, 0xf2, 0x05, 0x2a], "time");
            assert_eq!(body[16..20], u32::to_le_bytes(length));
            let ip = &body[20..40];
            assert_eq!(checksum(0, ip), 0, "{kind:?}: a valid header sums to zero");
            assert_eq!(ip[2..4], (length as u16).to_be_bytes());
            assert_eq!(ip[12..20], [10, 0, 1, 44, 10, 1, 1, 44]);
            let captured = if kind == Kind::Datagram { 28 } else { 40 };
            assert_eq!(body[12..16], u32::to_le_bytes(captured));
            let transport = &body[40..20 + captured as usize];
            let pseudo = words(&ip[12..20]) + u64::from(ip[9]) + u64::from(length) - 20;
            assert_eq!(checksum(pseudo, transport), 0, "{kind:?}");
        }
    }

    struct Full;

    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_an_error_at_the_end() {
        let mut full = Full;
        let capture = Capture::new(&mut full, "uplink");
        assert_eq!(
            capture.finish().unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
    }
}
