//! Table of the hosts at home. An address is *answered* if one of its flows received a packet and then sent one. Each
//! answered address counts as a host. All other addresses together count as one host, because senders may forge
//! addresses. While no address is answered, the first few addresses count as hosts.
//!
//! Answers are recognized by flow, not by address, so NAT does not hide answers.

use super::{BuildError, FlowTable, Isolation, Slot, slots};
use crate::{Flow, Header, Instant, Network, Packet, Protocol, flags};
use alloc::boxed::Box;

/// Maximum number of remembered hosts. [`Host::NONE`] and [`Host::COMMON`] have no slot.
const HOSTS: u32 = 248;

/// Number of entries for answered flows, indexed by hash; a newer flow overwrites an older one.
const FLOWS: usize = 1024;

/// Time in seconds for which a host keeps its slot after its last answer. If no host was answered for this time, the
/// reverse path counts as invisible.
const LIFETIME: u32 = 60;

/// Maximum number of new addresses that count as hosts per lifetime while the reverse path is invisible.
const GUESSES: u32 = 16;

/// Number of a host at home; an index of the state per host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Host(u8);

impl Host {
    /// Host of packets without an address.
    pub const NONE: Self = Self(0);

    /// Host number that all unanswered addresses share.
    pub const COMMON: Self = Self(u8::MAX);

    fn of(slot: Slot) -> Self {
        Self(slot.index() as u8 + 1)
    }

    #[cfg(test)]
    pub(crate) const fn at(number: usize) -> Self {
        Self(number as u8)
    }

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Time in units of 2^30 ns, called seconds here; at least 1, because 0 means never.
fn second(now: Instant) -> u32 {
    ((now.as_nanos() >> 30) as u32).max(1)
}

/// Returns the fingerprint of a flow from home, and its index in the table.
const fn note_of(flow: Flow) -> (u32, usize) {
    let hash = flow.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((hash >> 20) as u32 | 1, (hash >> 54) as usize % FLOWS)
}

/// True if a packet of the reverse path answered the flow since the flow's last packet. Removes the answer's record.
fn is_answered(flows: &mut [u32], flow: Flow) -> bool {
    let (note, place) = note_of(flow);
    let seen = flows.get_mut(place).filter(|seen| **seen == note);
    seen.map(|seen| *seen = 0).is_some()
}

/// Returns a packet's hosts with the address of the host at home set to zero.
#[cold]
#[inline(never)]
const fn without_home([source, destination]: [u64; 2], home_is_source: bool) -> [u64; 2] {
    match home_is_source {
        true => [0, destination],
        false => [source, 0],
    }
}

/// The hosts at home, and the flows that were answered.
#[derive(Clone, Debug)]
pub struct Answered {
    needs_hosts: bool,
    /// Index of the home side: 0 source, 1 destination; `None` unless hosts get equal shares.
    home: Option<usize>,
    /// Second of the last answer to each address; zero if the address was not answered.
    hosts: FlowTable<u32>,
    /// Fingerprints of flows with a packet on the reverse path since their last packet from home; zero if empty.
    flows: Box<[u32]>,
    /// Last second in which the reverse path counts as visible. Each answer to a host extends this time.
    visible_until: u32,
    /// Start of the current lifetime, and number of new unanswered addresses since then.
    guesses: (u32, u32),
}

impl Answered {
    /// Creates an empty instance.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn new(isolation: Isolation) -> Result<Self, BuildError> {
        Ok(Self {
            needs_hosts: isolation.needs_hosts(),
            home: isolation.home(),
            hosts: FlowTable::new(HOSTS)?,
            flows: slots(FLOWS, |_| 0)?,
            visible_until: 0,
            guesses: (0, 0),
        })
    }

    /// Records a packet of the reverse path. Ignores SYN-ACKs and resets, because servers also
    /// send them to forged addresses.
    pub fn observe(&mut self, reverse: &Header) {
        let answers = reverse.flags & (flags::SYN | flags::RST) == 0;
        if answers || reverse.protocol != Protocol::Tcp {
            let (note, place) = note_of(reverse.flow.reverse());
            if let Some(flow) = self.flows.get_mut(place) {
                *flow = note;
            }
        }
    }

    /// Returns an arrival's source, destination, DSCP and home host. The home address is zero for [`Host::COMMON`].
    #[inline(always)]
    pub fn read<P: Packet>(&mut self, now: Instant, packet: &P) -> (Network, Host) {
        if !self.needs_hosts {
            return (Network::default(), Host::NONE);
        }
        let Network { mut hosts, dscp } = packet.network();
        let [source, destination] = hosts;
        // Indexed by constants, so that the hosts stay in registers.
        let (is_source, address) = match self.home {
            None => return (Network { hosts, dscp }, Host::NONE),
            Some(0) => (true, source),
            Some(_) => (false, destination),
        };
        let host = self.host_of(second(now), address, packet.header().flow);
        if host == Host::COMMON {
            hosts = without_home(hosts, is_source);
        }
        (Network { hosts, dscp }, host)
    }

    #[inline(always)]
    fn host_of(&mut self, now: u32, address: u64, flow: Flow) -> Host {
        let Some((slot, answered)) = self.hosts.find_mut(Flow(address)) else {
            return self.new_host(now, address, flow);
        };
        // One answer per second suffices.
        if *answered == now {
            return Host::of(slot);
        }
        if is_answered(&mut self.flows, flow) {
            (*answered, self.visible_until) = (now, now.saturating_add(LIFETIME));
        } else if *answered == 0 && self.is_visible(now) {
            return Host::COMMON;
        }
        Host::of(slot)
    }

    /// True if any host was answered recently.
    fn is_visible(&self, now: u32) -> bool {
        now <= self.visible_until
    }

    /// Counts a new, unanswered address. Returns true if the address may count as a host.
    fn may_guess(&mut self, now: u32) -> bool {
        let (since, count) = &mut self.guesses;
        if now.wrapping_sub(*since) > LIFETIME {
            (*since, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= GUESSES
    }

    /// Returns the host of an address that has no slot.
    #[inline(never)]
    fn new_host(&mut self, now: u32, address: u64, flow: Flow) -> Host {
        if address == 0 {
            return Host::NONE;
        }
        let is_answered = is_answered(&mut self.flows, flow);
        if is_answered {
            self.visible_until = now.saturating_add(LIFETIME);
        } else if self.is_visible(now) || !self.may_guess(now) {
            return Host::COMMON;
        }
        let age = |answered: &u32| {
            let is_fresh = *answered > 0 && now.wrapping_sub(*answered) <= LIFETIME;
            (!is_fresh).then_some(u64::from(*answered))
        };
        let answered = if is_answered { now } else { 0 };
        let slot = self.hosts.insert(Flow(address), age, answered);
        slot.map_or(Host::COMMON, Host::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Facts;
    use crate::units::Duration;

    /// A packet of a flow from an address at home to a server.
    fn packet(address: u64, flow: u64) -> Facts {
        let mut packet = Facts::default();
        packet.header.flow = Flow(flow * 2);
        packet.network.hosts = [address, 99];
        packet
    }

    struct Bench {
        answered: Answered,
        now: Instant,
    }

    impl Bench {
        fn new(isolation: Isolation) -> Self {
            Self {
                answered: Answered::new(isolation).unwrap(),
                now: Instant::ZERO + Duration::from_secs(5),
            }
        }

        fn send(&mut self, address: u64, flow: u64) -> Host {
            let (network, host) = self.answered.read(self.now, &packet(address, flow));
            assert_eq!(network.hosts[0] == 0, host == Host::COMMON);
            assert_eq!(network.hosts[1], 99);
            host
        }

        fn answer(&mut self, flow: u64, flags: u16) {
            let header = Header {
                flow: Flow(flow * 2 + 1),
                protocol: Protocol::Tcp,
                flags,
                ..Header::default()
            };
            self.answered.observe(&header);
        }

        /// Returns the host of an address that was just answered.
        fn converse(&mut self, address: u64, flow: u64) -> Host {
            self.answer(flow, flags::ACK);
            self.send(address, flow)
        }
    }

    #[test]
    fn an_address_shares_the_common_account_until_it_sends_after_an_answer() {
        let mut bench = Bench::new(Isolation::DualSrcHost);
        let one = bench.converse(1, 1);
        assert_ne!(one, Host::COMMON);
        assert_eq!(bench.send(2, 2), Host::COMMON);
        for forged in [flags::SYN | flags::ACK, flags::RST, flags::RST | flags::ACK] {
            bench.answer(2, forged);
            assert_eq!(bench.send(2, 2), Host::COMMON);
        }
        bench.answer(2, flags::ACK);
        assert_eq!(bench.send(3, 3), Host::COMMON, "the answer is not its own");
        let two = bench.send(2, 2);
        assert!(two != Host::COMMON && two != one);
        assert_eq!((bench.send(1, 7), bench.send(2, 8)), (one, two));
    }

    #[test]
    fn without_a_visible_reverse_path_the_addresses_of_a_home_are_hosts() {
        let mut bench = Bench::new(Isolation::DualSrcHost);
        let hosts = [1, 2].map(|address| bench.send(address, address));
        assert!(hosts[0] != hosts[1] && !hosts.contains(&Host::COMMON));
        assert_eq!(bench.converse(1, 1), hosts[0], "it keeps its account");
        assert_eq!(bench.send(2, 2), Host::COMMON);
        bench.now += Duration::from_secs(100);
        assert_eq!(bench.send(2, 2), hosts[1]);
    }

    #[test]
    fn forged_addresses_take_no_slot_of_an_answered_host() {
        let mut bench = Bench::new(Isolation::Triple);
        let hosts: [_; 30] =
            core::array::from_fn(|host| bench.converse(1 + host as u64, host as u64));
        for forged in 1000..100_000 {
            // Servers answer, and no client retransmits.
            assert_eq!(bench.send(forged, forged), Host::COMMON);
            bench.answer(forged, flags::ACK);
        }
        for (address, host) in (1..).zip(hosts) {
            assert_eq!(bench.send(address, 5), host);
        }
    }

    #[test]
    fn an_idle_host_gives_its_slot_to_a_new_one_after_a_minute() {
        let mut bench = Bench::new(Isolation::DualSrcHost);
        let count = |bench: &mut Bench, addresses: core::ops::Range<u64>| {
            addresses
                .filter(|address| bench.converse(*address, *address) != Host::COMMON)
                .count()
        };
        let first = count(&mut bench, 1..2000);
        assert!((200..=HOSTS as usize).contains(&first), "{first} hosts");
        assert!(count(&mut bench, 3000..3100) < 40);
        bench.now += Duration::from_secs(80);
        assert_eq!(count(&mut bench, 4000..4050), 50);
    }

    #[test]
    fn downlinks_isolate_destinations_and_flow_isolation_has_no_hosts() {
        let mut down = Answered::new(Isolation::DualDstHost).unwrap();
        let now = Instant::ZERO + Duration::from_secs(5);
        let mut of = |source, destination| {
            let mut packet = packet(source, 1);
            packet.network.hosts[1] = destination;
            down.read(now, &packet).1
        };
        assert_eq!(of(1, 7), of(2, 7));
        assert_ne!(of(1, 7), of(1, 8));
        let mut flows = Answered::new(Isolation::Flows).unwrap();
        assert_eq!(flows.read(now, &packet(1, 1)).1, Host::NONE);
    }

    #[test]
    fn before_any_answer_only_the_first_addresses_are_hosts() {
        let mut bench = Bench::new(Isolation::DualSrcHost);
        let hosts = |bench: &mut Bench, addresses: core::ops::Range<u64>| {
            let is_host = |address: &u64| bench.send(*address, *address) != Host::COMMON;
            addresses.filter(is_host).count() as u32
        };
        assert_eq!(hosts(&mut bench, 1..10_000), GUESSES);
        assert_eq!(hosts(&mut bench, 1..17), GUESSES, "they stay");
        assert_ne!(bench.converse(20_000, 5), Host::COMMON);
        assert_eq!(hosts(&mut bench, 1..10_000), 0, "the line is visible");
    }
}
