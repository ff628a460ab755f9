//! Segments as agents exchange them, and packets as links queue them.

use crate::tcp::Options;
use asymq_core::ack::AckInfo;
use asymq_core::decide::random::mix;
use asymq_core::overhead::Overhead;
use asymq_core::packet::{Header, Network, Packet, flags};
use asymq_core::{Ecn, Flow, Instant, Protocol};
use asymq_scenario::{Scenario, Toward};

/// What an agent sends: a TCP segment or a UDP datagram.
///
/// Every data segment is full, so sequence numbers count segments: 0 is the SYN, 1 the first data
/// segment. [`Layout`] turns them into bytes.
///
/// Number and kind share a word: segments are copied more often than anything else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment<O = ()> {
    word: u64,
    /// Its TCP options.
    pub(crate) options: O,
}

impl<O: Options> Segment<O> {
    /// A segment of `kind`. `number` is, for data, its own number; for an ACK, the next number
    /// expected; for a datagram, whatever its sender chooses. Below 2^61.
    #[inline]
    pub(crate) fn new(kind: Kind, number: u64) -> Self {
        Self::with(kind, number, O::default())
    }

    /// The same with options.
    #[inline]
    pub(crate) const fn with(kind: Kind, number: u64, options: O) -> Self {
        Self {
            word: number << 3 | kind as u64,
            options,
        }
    }

    /// What it is.
    #[inline]
    pub(crate) const fn kind(self) -> Kind {
        match self.word & 7 {
            0 => Kind::Syn,
            1 => Kind::SynAck,
            2 => Kind::Data,
            3 => Kind::Ack,
            4 => Kind::AckWithin,
            _ => Kind::Datagram,
        }
    }

    /// Its number.
    #[inline]
    pub(crate) const fn number(self) -> u64 {
        self.word >> 3
    }
}

/// The kinds of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Syn,
    SynAck,
    Data,
    Ack,
    /// An ACK of a part of segment `number`, and of all before it.
    AckWithin,
    Datagram,
}

impl Kind {
    pub(crate) const COUNT: usize = 6;
    pub(crate) const ALL: [Self; Self::COUNT] = [
        Self::Syn,
        Self::SynAck,
        Self::Data,
        Self::Ack,
        Self::AckWithin,
        Self::Datagram,
    ];
}

/// A packet in a link's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SimPacket<O = ()> {
    /// What the qdisc sees.
    pub(crate) header: Header,
    /// The segment in it.
    pub(crate) segment: Segment<O>,
}

impl<O: Options> Packet for SimPacket<O> {
    #[inline]
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

    /// Home is one host, and each conversation has a server of its own.
    fn network(&self) -> Network {
        const HOME: u64 = mix(0);
        let server = mix(1 + (self.header.flow.0 >> 1));
        let hosts = match self.toward() {
            Toward::Up => [HOME, server],
            Toward::Down => [server, HOME],
        };
        Network { hosts, dscp: 0 }
    }

    /// The header alone carries the number then; [`Layout::as_regenerated`] reads it.
    fn rewrite_ack(&mut self, info: &AckInfo) {
        self.header.ack = info.ack;
        if let Some(timestamps) = info.timestamps {
            self.segment.options.set_timestamps(timestamps);
        }
    }
}

impl<O> SimPacket<O> {
    /// The conversation it belongs to.
    #[inline]
    pub(crate) fn conversation(&self) -> usize {
        (self.header.flow.0 as u32 >> 1) as usize
    }

    /// How many conversations had this index before its own.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        (self.header.flow.0 >> 32) as u32
    }

    /// Its direction.
    pub(crate) fn toward(&self) -> Toward {
        if self.header.flow.0 & 1 == 0 {
            Toward::Up
        } else {
            Toward::Down
        }
    }
}

/// How one conversation's segments look on the wire.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Upper half: how many conversations had this index before. Lower half: the index, above one
    /// bit for the direction.
    flow: u64,
    /// Payload bytes of a data segment.
    mss: u32,
    /// IP bytes of each kind of segment.
    lengths: [u32; Kind::COUNT],
    /// What links charge for a packet beside its IP bytes.
    overhead: Option<Overhead>,
    /// Whether no queue can read more of a packet than its length and its flow.
    opaque: bool,
}

impl Layout {
    /// The layout of a conversation with data segments of `mss` bytes of payload, `headers` bytes
    /// of TCP and IP headers, and datagrams of `datagram` IP bytes.
    pub(crate) fn new(conversation: usize, mss: u32, headers: u32, datagram: u32) -> Self {
        Self {
            flow: (conversation as u64) << 1,
            mss,
            lengths: Kind::ALL.map(|kind| match kind {
                Kind::Data => mss + headers,
                Kind::Datagram => datagram,
                _ => headers,
            }),
            overhead: None,
            opaque: false,
        }
    }

    /// The layout of a conversation of this scenario.
    pub(crate) fn of(conversation: usize, scenario: &Scenario, datagram: u32) -> Self {
        Self {
            overhead: scenario.overhead,
            ..Self::new(
                conversation,
                scenario.payload(),
                scenario.ack_len(),
                datagram,
            )
        }
    }

    /// The same with packets that no queue can read.
    pub(crate) fn opaque(self) -> Self {
        Self {
            opaque: true,
            ..self
        }
    }

    /// The same layout for the next conversation of the same index.
    pub(crate) fn next_generation(&self) -> Self {
        Self {
            flow: self.flow.wrapping_add(1 << 32),
            ..*self
        }
    }

    /// How many conversations had its index before.
    #[inline]
    pub(crate) fn generation(&self) -> u32 {
        (self.flow >> 32) as u32
    }

    /// Payload bytes of a data segment.
    pub(crate) fn payload(&self) -> u32 {
        self.mss
    }

    /// IP bytes of a segment.
    #[inline]
    pub(crate) fn len(&self, kind: Kind) -> u32 {
        self.lengths[kind as usize]
    }

    /// Bytes that a link spends on a segment without SACK ranges.
    pub(crate) fn charged(&self, kind: Kind) -> u32 {
        self.charge(self.len(kind))
    }

    #[inline]
    fn charge(&self, len: u32) -> u32 {
        self.overhead
            .map_or(len, |overhead| overhead.charge_len(len))
    }

    /// The conversation's index.
    pub(crate) fn conversation(&self) -> usize {
        (self.flow as u32 >> 1) as usize
    }

    /// The TCP sequence number at which segment `number` starts; the initial one is 0.
    #[inline]
    pub(crate) fn byte(&self, number: u64) -> u32 {
        match number.checked_sub(1) {
            None => 0,
            Some(data) => (data as u32).wrapping_mul(self.mss).wrapping_add(1),
        }
    }

    /// The segment in a packet that has passed a regenerator, which may have rewritten the header.
    pub(crate) fn as_regenerated<O: Options>(&self, packet: &SimPacket<O>) -> Segment<O> {
        let segment = packet.segment;
        if segment.kind() != Kind::Ack || self.opaque {
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

    /// The packet of a segment that arrives at a queue.
    #[inline]
    pub(crate) fn packet<O: Options>(
        &self,
        segment: Segment<O>,
        toward: Toward,
        arrival: Instant,
    ) -> SimPacket<O> {
        /// By kind: flags, and whether the acknowledgement number is that of the SYN.
        const FLAGS: [(u16, bool); Kind::COUNT] = [
            (flags::SYN, false),
            (flags::SYN | flags::ACK, true),
            (flags::ACK, true),
            (flags::ACK, false),
            (flags::ACK, false),
            (0, false),
        ];
        let kind = segment.kind();
        let mut len = self.len(kind);
        let (mut flags, acks_syn) = FLAGS[kind as usize];
        let mut ecn = Ecn::NotEct;
        if let Some(options) = segment.options.on_wire() {
            len += options.sack_bytes();
            flags |= options.flags;
            ecn = options.ecn;
        }
        let direction = u64::from(toward == Toward::Down);
        let bare = Header {
            arrival,
            flow: Flow(self.flow | direction),
            len: self.charge(len),
            ip_len: len,
            protocol: Protocol::NonTcp,
            ecn,
            ..Header::default()
        };
        if self.opaque {
            return SimPacket {
                header: bare,
                segment,
            };
        }
        SimPacket {
            header: Header {
                payload: if kind == Kind::Data { self.mss } else { 0 },
                ack: if kind == Kind::Ack {
                    self.byte(segment.number())
                } else {
                    acks_syn.into()
                },
                flags,
                protocol: if kind == Kind::Datagram {
                    Protocol::NonTcp
                } else {
                    Protocol::Tcp
                },
                ..bare
            },
            segment,
        }
    }
}

/// Takes the segments that an agent sends.
pub(crate) trait Outbox<O = ()> {
    /// Sends one segment now.
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
    use crate::tcp::TcpOptions;
    use asymq_core::TrafficClass;
    use asymq_core::catalog::{Catalog as _, Role, Standard};
    use asymq_core::frame::{Parsed, ack_info, hosts_and_dscp};
    use asymq_laws::frames::{Arrival, Held, arrivals, same_verdicts};
    use asymq_laws::{capture, golden};

    /// The facts of a frame, as the simulator has them; its segment's number is the frame's. SACK blocks count
    /// segments, here of a byte.
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

    /// What a simulated packet has, and what only a real one has: a window, hosts, link headers.
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

    /// Gateway and kernel have the same tests.
    #[test]
    fn every_discipline_treats_simulated_packets_as_the_frames_that_they_stand_for() {
        treated_as_frames::<SimPacket<TcpOptions>>(&arrivals());
    }

    #[test]
    fn a_capture_of_real_tcp_leaves_the_simulators_queues_as_it_leaves_any_others() {
        treated_as_frames::<Captured>(&capture::arrivals(capture::HOME).unwrap());
    }

    #[test]
    fn a_regenerated_ack_is_received_with_the_earlier_number_at_any_distance() {
        let layout = Layout::new(0, 1000, 40, 0);
        let ack = |number| {
            let segment = Segment::<()>::new(Kind::Ack, number);
            layout.packet(segment, Toward::Up, Instant::ZERO)
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
                .packet(data, Toward::Up, Instant::ZERO)
                .ack_info()
                .is_none()
        );
    }

    #[test]
    fn of_an_opaque_conversation_a_qdisc_sees_flow_and_length_alone() {
        let layout = Layout::new(7, 1460, 40, 0).opaque();
        for (kind, len) in [(Kind::Ack, 40), (Kind::Data, 1500), (Kind::Syn, 40)] {
            let segment = Segment::<()>::new(kind, 9);
            let packet = layout.packet(segment, Toward::Up, Instant::ZERO);
            assert_eq!(packet.header.traffic_class(), TrafficClass::Other);
            assert_eq!((packet.header.len, packet.header.payload), (len, 0));
            assert!(packet.ack_info().is_none());
            assert_eq!(packet.conversation(), 7);
            assert_eq!(layout.as_regenerated(&packet), segment);
        }
    }

    #[test]
    fn a_link_charges_cells_for_what_has_ip_bytes() {
        let layout = Layout {
            overhead: Some("pppoe-vcmux".parse().unwrap()),
            ..Layout::new(0, 1460, 40, 0)
        };
        let packet = |kind| {
            let segment = Segment::<()>::new(kind, 1);
            layout.packet(segment, Toward::Up, Instant::ZERO).header
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
                Toward::Down,
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
        assert_eq!(packet(Kind::Data, 1).toward(), Toward::Down);
    }
}
