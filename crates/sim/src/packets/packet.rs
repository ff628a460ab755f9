//! Segments as endpoints exchange them, and packets as links queue them.

use crate::packets::Options;
use asymq_core::decide::ack::AckInfo;
use asymq_core::decide::overhead::Overhead;
use asymq_core::decide::random::mix;
use asymq_core::{Ecn, Flow, Header, Instant, Network, Packet, Protocol, flags};
use asymq_scenario::{Aim, Direction, Encapsulation, Scenario, Tunnel};

/// A packet of an endpoint: a TCP segment or a UDP datagram.
///
/// Every data segment is full, so sequence numbers count segments: 0 is the SYN, 1 the first data segment. [`Layout`]
/// converts them to bytes.
///
/// Number and kind share a word to keep segments small, because they are copied often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment<O = ()> {
    word: u64,
    pub(crate) options: O,
}

impl<O: Options> Segment<O> {
    /// Creates a segment. `number`, below 2^61, is the segment's own number for data, the next expected number for an
    /// ACK, and any number for a datagram.
    pub(crate) fn new(kind: Kind, number: u64) -> Self {
        Self::with(kind, number, O::default())
    }

    pub(crate) const fn with(kind: Kind, number: u64, options: O) -> Self {
        Self {
            word: number << 3 | kind as u64,
            options,
        }
    }

    pub(crate) const fn kind(self) -> Kind {
        Kind::of_bits(self.word)
    }

    pub(crate) const fn number(self) -> u64 {
        self.word >> 3
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Syn,
    SynAck,
    Data,
    Ack,
    /// An ACK of all segments before `number`, and of a part of segment `number`.
    AckWithin,
    Datagram,
}

/// A value for each kind of segment.
///
/// Two of the eight entries are unused, so that an index of three bits needs no check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PerKind<T>([T; 8]);

impl<T: Copy> PerKind<T> {
    pub(crate) fn new(value: impl Fn(Kind) -> T) -> Self {
        let values = [0, 1, 2, 3, 4, 5, 6, 7];
        Self(values.map(|bits| value(Kind::of_bits(bits))))
    }

    fn map(self, change: impl Fn(T) -> T) -> Self {
        Self(self.0.map(change))
    }

    pub(crate) fn of(&self, kind: Kind) -> T {
        self.0[kind as usize]
    }

    pub(crate) fn of_segment<O>(&self, segment: &Segment<O>) -> T {
        self.0[(segment.word & 7) as usize]
    }
}

impl Kind {
    const fn of_bits(word: u64) -> Self {
        match word & 7 {
            0 => Self::Syn,
            1 => Self::SynAck,
            2 => Self::Data,
            3 => Self::Ack,
            4 => Self::AckWithin,
            _ => Self::Datagram,
        }
    }
}

/// A packet in a link's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SimPacket<O = ()> {
    /// The header, as the qdisc reads it.
    pub(crate) header: Header,
    pub(crate) segment: Segment<O>,
}

impl<O: Options> Packet for SimPacket<O> {
    fn header(&self) -> &Header {
        &self.header
    }

    fn ack_info(&self) -> Option<AckInfo> {
        if self.segment.kind() != Kind::Ack || self.header.protocol != Protocol::Tcp {
            return None;
        }
        let mut info = AckInfo {
            ack: self.header.ack,
            window: u16::MAX,
            flags: self.header.flags,
            ..AckInfo::default()
        };
        if let Some(options) = self.segment.options.on_wire() {
            options.write_to(&mut info);
        }
        Some(info)
    }

    fn mark_ce(&mut self) -> bool {
        let marked = self.segment.options.mark_ce();
        if marked {
            self.header.ecn = Ecn::Ce;
        }
        marked
    }

    /// Hosts of the packet. Home is one host, and each flow has its own server, except for floods. A flood's `note` is
    /// its [`Aim`].
    fn network(&self) -> Network {
        const HOME: u64 = mix(0);
        const NEIGHBOUR: u64 = mix(1 << 63);
        const FIRST_SERVER: u64 = mix(1);
        let server = mix(1 + (self.header.flow.0 >> 1));
        let (home, server) = match self.header.note {
            _ if !self.is_of_flood() => (HOME, server),
            FORGED => (mix(self.header.flow.0 | 1), FIRST_SERVER),
            SERVER => (NEIGHBOUR, FIRST_SERVER),
            _ => (NEIGHBOUR, server),
        };
        let hosts = self.direction().pick([home, server], [server, home]);
        Network { hosts, dscp: 0 }
    }

    /// Writes the acknowledgement number only into the header, from which [`Layout::as_regenerated`] reads it.
    fn rewrite_ack(&mut self, info: &AckInfo) {
        self.header.ack = info.ack;
        if let Some(timestamps) = info.timestamps {
            self.segment.options.set_timestamps(timestamps);
        }
    }
}

impl<O: Options> SimPacket<O> {
    pub(crate) fn conversation(&self) -> usize {
        match self.header.flow.0 >> 62 {
            _ if !O::EXTRAS => (self.header.flow.0 as u32 >> 1) as usize,
            0 => (self.header.flow.0 as u32 >> 1) as usize,
            1 => self.header.ack as usize,
            _ => self.segment.word as usize >> 3 & FLOOD_INDEX,
        }
    }

    const fn is_of_flood(&self) -> bool {
        self.header.flow.0 & FLOOD_FLOW != 0
    }

    pub(crate) fn tunnel(&self) -> Option<Tunnel> {
        if !O::EXTRAS || self.header.flow.0 >> 62 != 1 {
            return None;
        }
        Tunnel::ALL
            .get(self.header.flow.0 as usize >> 1 & 3)
            .copied()
    }

    pub(crate) fn set_tunnel_number(&mut self, number: u32) {
        self.header.payload = number;
    }

    pub(crate) fn tunnel_number(&self) -> u32 {
        self.header.payload
    }

    /// Number of earlier conversations with the same index (in the lower half of the flow's number).
    pub(crate) fn generation(&self) -> u32 {
        (self.header.flow.0 >> 32) as u32
    }

    pub(crate) fn direction(&self) -> Direction {
        if self.header.flow.0 & 1 == 0 {
            Direction::Up
        } else {
            Direction::Down
        }
    }
}

/// Values of `note` in a flood's packets.
const SERVER: u32 = Aim::Server as u32;
const FORGED: u32 = Aim::Forged as u32;

/// Bit of a flow's number that marks a flood. Generations of conversations use lower bits.
const FLOOD_FLOW: u64 = 1 << 63;

/// Flag in the flow of a tunnel's packet; the tunnel's number is above the direction bit. In such packets, `ack` is the
/// conversation's index and `payload` is the packet's number in the tunnel. Queues read these fields only for TCP.
const TUNNEL_FLOW: u64 = 1 << 62;

/// Mask of the bits that hold the conversation's index in the number of a flood's packet.
const FLOOD_INDEX: usize = (1 << FLOOD_INDEX_BITS) - 1;
const FLOOD_INDEX_BITS: u32 = 16;

/// Returns the number of the packet that is number `count` of a flood.
pub(crate) const fn flood_number(index: usize, count: u64) -> u64 {
    count << FLOOD_INDEX_BITS | (index & FLOOD_INDEX) as u64
}

/// Form of one conversation's segments on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Payload bytes of a data segment.
    mss: u32,
    /// Headers of segment 0. The upper half of the flow is the number of earlier conversations with this index. The
    /// lower half is the index, shifted left by one bit for the direction.
    headers: PerKind<Header>,
    /// Step of the acknowledgement number per segment.
    ack_steps: PerKind<u32>,
    /// Bytes that links add to each IP packet.
    overhead: Option<Overhead>,
    /// Headers that hide parts of the packets from queues.
    encapsulation: Encapsulation,
    /// Size of an ACK's IP packet without options, in plain TCP.
    plain_ack: u32,
    /// A flood's number of flows, and its addresses. Other conversations have zero flows.
    flood: (u64, Aim),
}

impl Layout {
    /// Creates the layout of a conversation. Data segments have `mss` bytes of payload, and `headers` bytes of TCP and
    /// IP headers. Datagrams have IP packets of `datagram` bytes.
    pub(crate) fn new(conversation: usize, mss: u32, headers: u32, datagram: u32) -> Self {
        let header = |kind| {
            let (len, payload, flags, protocol) = match kind {
                Kind::Syn => (headers, 0, flags::SYN, Protocol::Tcp),
                Kind::SynAck => (headers, 0, flags::SYN | flags::ACK, Protocol::Tcp),
                Kind::Data => (mss + headers, mss, flags::ACK, Protocol::Tcp),
                Kind::Ack | Kind::AckWithin => (headers, 0, flags::ACK, Protocol::Tcp),
                Kind::Datagram => (datagram, 0, 0, Protocol::NonTcp),
            };
            Header {
                flow: Flow((conversation as u64) << 1),
                len,
                ip_len: len,
                payload,
                ack: match kind {
                    // The SYN has number 0.
                    Kind::SynAck | Kind::Data => 1,
                    // The number for segment 1, the first to be acknowledged, minus one step.
                    Kind::Ack => 1u32.wrapping_sub(mss),
                    Kind::Syn | Kind::AckWithin | Kind::Datagram => 0,
                },
                flags,
                protocol,
                ..Header::default()
            }
        };
        Self {
            mss,
            headers: PerKind::new(header),
            ack_steps: PerKind::new(|kind| if kind == Kind::Ack { mss } else { 0 }),
            overhead: None,
            encapsulation: Encapsulation::None,
            plain_ack: headers,
            flood: (0, Aim::Servers),
        }
    }

    /// Creates the layout of a flood: IP packets of `len` bytes, each of a random flow.
    pub(crate) fn flood(index: usize, scenario: &Scenario, len: u32, flood: (u64, Aim)) -> Self {
        let layout = Self::new(index, scenario.payload(), len, len);
        Self {
            flood,
            ..layout.charging(scenario.overhead)
        }
    }

    pub(crate) fn of(conversation: usize, scenario: &Scenario, datagram: u32) -> Self {
        let payload = scenario.payload();
        let layout = Self::new(conversation, payload, scenario.ack_len(), datagram);
        layout.charging(scenario.overhead)
    }

    fn charging(self, overhead: Option<Overhead>) -> Self {
        Self {
            headers: self.headers.map(|header| Header {
                len: charge(overhead, header.ip_len),
                ..header
            }),
            overhead,
            ..self
        }
    }

    pub(crate) fn encapsulated(self, encapsulation: Encapsulation) -> Self {
        if encapsulation == Encapsulation::None {
            return self;
        }
        let (index, overhead) = (self.conversation() as u32, self.overhead);
        let headers = PerKind::new(|kind| {
            let header = self.headers.of(kind);
            let ip_len = match kind {
                Kind::Ack | Kind::AckWithin => encapsulation.ack_len(header.ip_len, 0),
                _ => encapsulation.len(header.ip_len),
            };
            let (flow, ack) = match encapsulation.tunnel() {
                Some(tunnel) => (Flow(TUNNEL_FLOW | (tunnel as u64) << 1), index),
                None => (header.flow, 0),
            };
            Header {
                flow,
                ack,
                len: charge(overhead, ip_len),
                ip_len,
                protocol: match (encapsulation, kind) {
                    (Encapsulation::Quic, Kind::Syn | Kind::SynAck) => Protocol::QuicLong,
                    (Encapsulation::Quic, _) => Protocol::Quic,
                    _ => Protocol::NonTcp,
                },
                ..Header::default()
            }
        });
        Self {
            headers,
            ack_steps: PerKind::new(|_| 0),
            encapsulation,
            ..self
        }
    }

    /// Returns this layout for the next conversation with the same index.
    pub(crate) fn next_generation(&self) -> Self {
        Self {
            headers: self.headers.map(|header| Header {
                flow: Flow(header.flow.0.wrapping_add(1 << 32)),
                ..header
            }),
            ..*self
        }
    }

    fn flow(&self) -> u64 {
        self.headers.of(Kind::Data).flow.0
    }

    /// Number of earlier conversations with the same index (in the lower half of the flow's number).
    pub(crate) fn generation(&self) -> u32 {
        (self.flow() >> 32) as u32
    }

    /// Payload bytes of a data segment.
    pub(crate) fn payload(&self) -> u32 {
        self.mss
    }

    /// Size of a segment's IP packet in bytes.
    pub(crate) fn len(&self, kind: Kind) -> u32 {
        self.headers.of(kind).ip_len
    }

    /// Bytes that a link charges for a segment without SACK ranges.
    pub(crate) fn charged(&self, kind: Kind) -> u32 {
        self.headers.of(kind).len
    }

    /// Index of the layout's conversation.
    pub(crate) fn conversation(&self) -> usize {
        match self.encapsulation.tunnel() {
            Some(_) => self.headers.of(Kind::Data).ack as usize,
            None => (self.flow() as u32 >> 1) as usize,
        }
    }

    /// The TCP sequence number at which segment `number` starts; the initial one is 0.
    pub(crate) fn byte(&self, number: u64) -> u32 {
        match number.checked_sub(1) {
            None => 0,
            Some(data) => (data as u32).wrapping_mul(self.mss).wrapping_add(1),
        }
    }

    /// Returns the segment of a packet; a regenerator may have rewritten its header.
    pub(crate) fn as_regenerated<O: Options>(&self, packet: &SimPacket<O>) -> Segment<O> {
        let segment = packet.segment;
        if segment.kind() != Kind::Ack || self.encapsulation != Encapsulation::None {
            return segment;
        }
        let moved = packet.header.ack.wrapping_sub(self.byte(segment.number())) as i32;
        let mss = self.mss as i32;
        let number = segment.number() as i64 + i64::from(moved.div_euclid(mss));
        let kind = match moved.rem_euclid(mss) {
            0 => Kind::Ack,
            _ => Kind::AckWithin,
        };
        Segment::with(kind, number.max(1) as u64, segment.options)
    }

    /// Creates the packet of a segment that arrives at a queue.
    pub(crate) fn packet<O: Options>(
        &self,
        segment: Segment<O>,
        direction: Direction,
        arrival: Instant,
    ) -> SimPacket<O> {
        let common = self.headers.of_segment(&segment);
        let bit = u64::from(direction == Direction::Down);
        let steps = segment.number() as u32;
        let acked = self.ack_steps.of_segment(&segment).wrapping_mul(steps);
        let mut header = Header {
            arrival,
            flow: Flow(common.flow.0 | bit),
            ack: common.ack.wrapping_add(acked),
            ..common
        };
        if O::EXTRAS && self.flood.0 > 0 {
            let flow = mix(segment.number()) % self.flood.0;
            header.flow = Flow(mix(flow ^ common.flow.0) & !1 | bit | FLOOD_FLOW);
            header.note = self.flood.1 as u32;
        }
        if let Some(options) = segment.options.on_wire() {
            let added = options.ack_bytes();
            header.ecn = options.ecn;
            if self.encapsulation == Encapsulation::None {
                header.flags |= options.flags;
            }
            if added > 0 {
                header.ip_len = match self.encapsulation {
                    Encapsulation::None | Encapsulation::Opaque => header.ip_len + added,
                    encapsulation => {
                        encapsulation.ack_len(self.plain_ack + added, options.blocks().len() as u32)
                    }
                };
            }
            header.ip_len += u32::from(options.added);
            if header.ip_len != common.ip_len {
                header.len = charge(self.overhead, header.ip_len);
            }
        }
        SimPacket { header, segment }
    }
}

/// Returns the bytes that a link charges for an IP packet of this size.
fn charge(overhead: Option<Overhead>, len: u32) -> u32 {
    overhead.map_or(len, |overhead| overhead.charge_len(len))
}

/// Receives the segments that an endpoint sends.
pub(crate) trait Outbox<O = ()> {
    fn send(&mut self, segment: Segment<O>);
}

#[cfg(test)]
impl<O> Outbox<O> for Vec<Segment<O>> {
    fn send(&mut self, segment: Segment<O>) {
        self.push(segment);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packets::TcpOptions;
    use asymq_core::TrafficClass;
    use asymq_core::catalog::{Catalog as _, Role, Standard};
    use asymq_core::decide::frame::{Parsed, ack_info, hosts_and_dscp};
    use asymq_laws::frames::{Arrival, Held, arrivals, same_verdicts};
    use asymq_laws::{capture, golden};

    /// Builds a simulated packet from a frame; the segment's number is the frame's number. Segments have one byte, so
    /// SACK blocks count bytes.
    impl Held for SimPacket<TcpOptions> {
        fn hold(arrival: &Arrival, parsed: &Parsed) -> Self {
            let header = parsed.header;
            let kind = match header.protocol {
                Protocol::Tcp if header.is_pure_ack() => Kind::Ack,
                Protocol::Tcp => Kind::Data,
                _ => Kind::Datagram,
            };
            let info = ack_info(&arrival.bytes, parsed.transport).unwrap_or_default();
            let mut options = TcpOptions::new(info.timestamps, 1);
            for range in &info.sack[..info.sack_ranges.into()] {
                let beyond = |byte: u32| byte.wrapping_sub(info.ack).into();
                options.push_sack(beyond(range.start), beyond(range.end));
            }
            options.ecn = header.ecn;
            Self {
                header,
                segment: Segment::with(kind, arrival.number.unwrap_or_default().into(), options),
            }
        }

        fn number(&self) -> u16 {
            self.segment.number() as u16
        }
    }

    /// Fields of a simulated packet, and fields that only real packets have: window, hosts, link headers.
    struct Captured {
        packet: SimPacket<TcpOptions>,
        real: AckInfo,
        network: Network,
    }

    impl Packet for Captured {
        fn header(&self) -> &Header {
            self.packet.header()
        }

        fn ack_info(&self) -> Option<AckInfo> {
            let simulated = self.packet.ack_info()?;
            Some(AckInfo {
                ack: simulated.ack,
                flags: simulated.flags,
                timestamps: simulated.timestamps,
                sack: simulated.sack,
                sack_ranges: simulated.sack_ranges,
                ..self.real
            })
        }

        fn network(&self) -> Network {
            self.network
        }

        fn mark_ce(&mut self) -> bool {
            self.packet.mark_ce()
        }
    }

    impl Held for Captured {
        fn hold(arrival: &Arrival, parsed: &Parsed) -> Self {
            Self {
                packet: SimPacket::hold(arrival, parsed),
                real: ack_info(&arrival.bytes, parsed.transport).unwrap_or_default(),
                network: hosts_and_dscp(&arrival.bytes, parsed.network),
            }
        }

        fn number(&self) -> u16 {
            self.packet.number()
        }
    }

    fn treated_as_frames<P: Held + Send + 'static>(arrivals: &[Arrival]) {
        for entry in Standard.of_role(Role::Qdisc) {
            let config = golden::config(&Standard, entry.name).unwrap();
            let same = same_verdicts::<P>(&Standard, &config, arrivals);
            assert_eq!(same, Ok(()), "{}", entry.name);
        }
    }

    /// The gateway and the kernel have equal tests.
    #[test]
    fn every_discipline_treats_simulated_packets_as_the_frames_that_they_stand_for() {
        treated_as_frames::<SimPacket<TcpOptions>>(&arrivals());
    }

    #[test]
    fn a_capture_of_real_tcp_leaves_the_simulators_queues_like_all_others() {
        treated_as_frames::<Captured>(&capture::arrivals(capture::HOME).unwrap());
    }

    #[test]
    fn a_regenerated_ack_is_received_with_the_earlier_number_at_any_distance() {
        let layout = Layout::new(0, 1000, 40, 0);
        let ack = |number| {
            let segment = Segment::<()>::new(Kind::Ack, number);
            layout.packet(segment, Direction::Up, Instant::ZERO)
        };
        // 5 000 000 segments of 1000 bytes are beyond the wrap of sequence numbers.
        for number in [100, 5_000_000] {
            let packet = ack(number);
            assert_eq!(layout.as_regenerated(&packet), packet.segment);
            let rewritten = |info: &AckInfo| {
                let mut copy = packet;
                copy.rewrite_ack(info);
                copy
            };
            for before in [1, 70, 99] {
                let earlier = ack(number - before);
                let copy = rewritten(&earlier.ack_info().unwrap());
                assert_eq!(copy.header, earlier.header);
                assert_eq!(layout.as_regenerated(&copy), earlier.segment);
            }
            let within = AckInfo {
                ack: layout.byte(number - 70) + 400,
                ..AckInfo::default()
            };
            let received = layout.as_regenerated(&rewritten(&within));
            assert_eq!(received, Segment::<()>::new(Kind::AckWithin, number - 70));
        }
        let data = Segment::<()>::new(Kind::Data, 1);
        assert!(
            layout
                .packet(data, Direction::Up, Instant::ZERO)
                .ack_info()
                .is_none()
        );
    }

    #[test]
    fn a_qdisc_sees_only_flow_and_length_of_an_opaque_conversation() {
        let layout = Layout::new(7, 1460, 40, 0).encapsulated(Encapsulation::Opaque);
        for (kind, len) in [(Kind::Ack, 40), (Kind::Data, 1500), (Kind::Syn, 40)] {
            let segment = Segment::<()>::new(kind, 9);
            let packet = layout.packet(segment, Direction::Up, Instant::ZERO);
            assert_eq!(packet.header.traffic_class(), TrafficClass::Other);
            assert_eq!((packet.header.len, packet.header.payload), (len, 0));
            assert!(packet.ack_info().is_none());
            assert_eq!(packet.conversation(), 7);
            assert_eq!(layout.as_regenerated(&packet), segment);
        }
    }

    #[test]
    fn a_flood_has_its_own_host_and_the_given_number_of_flows() {
        let scenario = asymq_args::ScenarioArgs::default();
        let scenario = scenario.resolve(&asymq_args::Defaults::sim()).unwrap();
        let cases = [
            (3, 3, Aim::Servers),
            (u64::MAX, 500, Aim::Server),
            (u64::MAX, 500, Aim::Forged),
        ];
        for (flows, expected, aim) in cases {
            let layout = Layout::flood(7, &scenario, 60, (flows, aim));
            let packet = |count| {
                let segment = Segment::<TcpOptions>::new(Kind::Syn, flood_number(7, count));
                layout.packet(segment, Direction::Up, Instant::ZERO)
            };
            let packets: Vec<_> = (0..500).map(packet).collect();
            let distinct = |of: fn(&SimPacket<TcpOptions>) -> u64| {
                let all: std::collections::HashSet<u64> = packets.iter().map(of).collect();
                all.len()
            };
            assert_eq!(distinct(|packet| packet.header.flow.0), expected);
            let sources = if aim == Aim::Forged { 500 } else { 1 };
            assert_eq!(distinct(|packet| packet.network().hosts[0]), sources);
            let servers = if aim == Aim::Servers { 3 } else { 1 };
            assert_eq!(distinct(|packet| packet.network().hosts[1]), servers);
            let other = Layout::new(7, 1460, 40, 0).packet(
                Segment::<TcpOptions>::new(Kind::Syn, 0),
                Direction::Up,
                Instant::ZERO,
            );
            assert_ne!(packets[0].network().hosts[0], other.network().hosts[0]);
            for packet in &packets {
                assert_eq!((packet.conversation(), packet.header.len), (7, 60));
                assert_eq!(packet.direction(), Direction::Up);
            }
        }
    }

    #[test]
    fn a_link_charges_cells_for_ip_packets() {
        let layout = Layout::new(0, 1460, 40, 0).charging(Some("pppoe-vcmux".parse().unwrap()));
        let packet = |kind| {
            let segment = Segment::<()>::new(kind, 1);
            layout.packet(segment, Direction::Up, Instant::ZERO).header
        };
        // 40 + 32 bytes fill 2 cells of 53 bytes, 1500 + 32 fill 32.
        let (ack, data) = (packet(Kind::Ack), packet(Kind::Data));
        assert_eq!([ack.len, data.len], [2 * 53, 32 * 53]);
        assert_eq!([ack.ip_len, data.ip_len], [40, 1500]);
        assert_eq!(layout.charged(Kind::Data), 32 * 53);
    }

    #[test]
    fn a_qdisc_sees_segments_as_it_sees_real_ones() {
        let layout = Layout::new(7, 1460, 40, 1000);
        let packet = |kind, number| {
            layout.packet(
                Segment::<()>::new(kind, number),
                Direction::Down,
                Instant::ZERO,
            )
        };
        assert!(packet(Kind::Ack, 3).header.is_pure_ack());
        assert_eq!(packet(Kind::Ack, 3).header.ack, 1 + 2 * 1460);
        assert!(packet(Kind::Data, 1).header.is_tcp_data());
        assert_eq!(packet(Kind::Data, 1).header.len, 1500);
        assert!(!packet(Kind::SynAck, 1).header.is_pure_ack());
        assert_eq!(packet(Kind::Datagram, 0).header.protocol, Protocol::NonTcp);
        for (kind, class) in [
            (Kind::Syn, TrafficClass::Other),
            (Kind::SynAck, TrafficClass::Other),
            (Kind::Data, TrafficClass::Data),
            (Kind::Ack, TrafficClass::Ack),
            (Kind::AckWithin, TrafficClass::Ack),
            (Kind::Datagram, TrafficClass::Other),
        ] {
            assert_eq!(packet(kind, 1).header.traffic_class(), class, "{kind:?}");
        }
        assert_eq!(packet(Kind::Data, 1).conversation(), 7);
        assert_eq!(packet(Kind::Data, 1).direction(), Direction::Down);
    }
}
