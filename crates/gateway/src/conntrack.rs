//! Finds hosts behind NAT in the kernel's connection tracking.
//!
//! A gateway between a router and its port sees only translated packets, which all have the router's address. A thread
//! maintains a bounded map from connections to home addresses. The forwarding loop reads this map without locks.

use crate::log;
use crate::net::{Conntrack, Tracked, Translated};
use crate::stop::Waker;
use crate::sys::poll;
use asymq_core::decide::frame::hosts_of_v4;
use asymq_core::decide::random;
use asymq_core::{Direction, Duration};
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

/// Slots per bucket: their keys fill one cache line.
const WAYS: usize = 8;
const BUCKETS: usize = 4096;
/// Minimum time between two complete reads of the kernel's table.
const RELOAD_INTERVAL: Duration = Duration::from_secs(1);

/// State of the `NatMap`, for snapshots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct HostsBehindNat {
    /// False if connection tracking cannot be read; all hosts behind NAT then count as one host.
    pub tracked: bool,
    /// Number of connections whose host is known.
    pub connections: u64,
    /// Number of connections that found no free slot. Some replaced another; the rest count as the router's own.
    pub refused: u64,
}

/// Map of translated connections, with one writer.
pub(crate) struct NatMap {
    keys: Box<[AtomicU64]>,
    hosts: Box<[AtomicU64]>,
    secret: [u64; 2],
    tracked: AtomicBool,
    connections: AtomicU64,
    refused: AtomicU64,
}

impl NatMap {
    pub(crate) fn new() -> Self {
        let slots = || (0..BUCKETS * WAYS).map(|_| AtomicU64::new(0)).collect();
        let random = RandomState::new();
        Self {
            keys: slots(),
            hosts: slots(),
            secret: [random.hash_one(1), random.hash_one(2) | 1],
            tracked: AtomicBool::new(false),
            connections: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// Returns the home host of an IPv4 frame, in the form of
    /// [`Frame::translated`](asymq_core::decide::frame::Frame::translated); 0 if the host is unknown. The network header
    /// begins at `network`.
    pub(crate) fn host(&self, direction: Direction, frame: &[u8], network: u16) -> u64 {
        read(frame, network, direction).map_or(0, |connection| {
            let host = self.get(&connection);
            // The lowest bit is the direction: up, the home host replaces the source; down, the destination.
            host | (u64::from(host != 0) * direction as u64)
        })
    }

    fn get(&self, connection: &Translated) -> u64 {
        let key = self.key(connection);
        self.slots(key)
            .find(|slot| self.keys[*slot].load(Ordering::Acquire) == key)
            .map_or(0, |slot| self.hosts[slot].load(Ordering::Relaxed))
    }

    /// Returns a keyed hash of a connection. The key prevents a sender from filling a bucket on purpose.
    fn key(&self, connection: &Translated) -> u64 {
        let [near, far] = connection.ends.map(|end| u64::from(u32::from(end)));
        let [port, far_port] = connection.ports.map(u64::from);
        let ports = port << 24 | far_port << 8 | u64::from(connection.protocol);
        let mix = |hash: u64, word: u64| {
            let product = u128::from(hash ^ word) * u128::from(self.secret[1]);
            (product >> 64) as u64 ^ product as u64
        };
        random::mix(mix(mix(self.secret[0], near << 32 | far), ports)).max(1)
    }

    fn slots(&self, key: u64) -> std::ops::Range<usize> {
        let bucket = (key >> 40) as usize % BUCKETS;
        bucket * WAYS..(bucket + 1) * WAYS
    }

    /// In a full bucket, returns a slot of the host with the most connections, if `host` has at least two fewer. A
    /// host that floods therefore leaves room for others.
    fn slot_of_most(&self, key: u64, host: u64) -> Option<usize> {
        let host_of = |slot: usize| self.hosts[slot].load(Ordering::Relaxed);
        let count = |of: u64| self.slots(key).filter(|slot| host_of(*slot) == of).count();
        let most = self.slots(key).max_by_key(|slot| count(host_of(*slot)))?;
        (count(host_of(most)) > count(host) + 1).then_some(most)
    }

    fn apply(&self, change: Tracked) {
        let (Tracked::New(connection, _) | Tracked::Gone(connection)) = change;
        let key = self.key(&connection);
        let find = |wanted: u64| {
            let is = |slot: &usize| self.keys[*slot].load(Ordering::Relaxed) == wanted;
            self.slots(key).find(is)
        };
        match change {
            Tracked::New(_, host) => {
                // The lowest bit encodes the direction.
                let host = (hosts_of_v4([host; 2])[0] & !1).max(2);
                let slot = find(key).or_else(|| find(0)).or_else(|| {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    self.slot_of_most(key, host)
                });
                let Some(slot) = slot else {
                    return;
                };
                let was = self.keys[slot].load(Ordering::Relaxed);
                self.hosts[slot].store(host, Ordering::Relaxed);
                self.keys[slot].store(key, Ordering::Release);
                self.connections
                    .fetch_add(u64::from(was == 0), Ordering::Relaxed);
            }
            Tracked::Gone(_) => {
                if let Some(slot) = find(key) {
                    self.keys[slot].store(0, Ordering::Relaxed);
                    self.connections.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
    }

    fn clear(&self) {
        self.keys
            .iter()
            .for_each(|key| key.store(0, Ordering::Relaxed));
        self.connections.store(0, Ordering::Relaxed);
    }

    pub(crate) fn state(&self) -> HostsBehindNat {
        HostsBehindNat {
            tracked: self.tracked.load(Ordering::Relaxed),
            connections: self.connections.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
        }
    }
}

/// Reads the addresses and ports of an IPv4 packet, those of the router first.
fn read(frame: &[u8], network: u16, direction: Direction) -> Option<Translated> {
    const WITH_PORTS: [u8; 5] = [6, 17, 33, 132, 136];
    const LATER_FRAGMENT: u16 = 0x1fff;
    let packet = frame.get(network.into()..)?;
    let header = packet.first_chunk::<20>()?;
    let offset = u16::from_be_bytes([header[6], header[7]]) & LATER_FRAGMENT;
    if header[0] >> 4 != 4 || !WITH_PORTS.contains(&header[9]) || offset != 0 {
        return None;
    }
    let ports: &[u8; 4] = packet
        .get(usize::from(header[0] & 15) * 4..)?
        .first_chunk()?;
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    let mut ends = [address(12), address(16)];
    let mut ports = [[ports[0], ports[1]], [ports[2], ports[3]]].map(u16::from_be_bytes);
    if direction == Direction::Down {
        ends.reverse();
        ports.reverse();
    }
    Some(Translated {
        ends,
        ports,
        protocol: header[9],
    })
}

/// Keeps a [`NatMap`] up to date.
pub(crate) struct NatTracker {
    socket: Conntrack,
    map: Arc<NatMap>,
}

impl NatTracker {
    /// Opens the connection tracking of the calling thread's network namespace. On failure, logs the error; the map
    /// then stays empty.
    pub(crate) fn open(map: Arc<NatMap>) -> Option<Self> {
        match Conntrack::open() {
            Ok(socket) => Some(Self { socket, map }),
            Err(error) => {
                log::line(&format!(
                    "connection tracking cannot be read ({error}); all hosts behind NAT share the link as one host"
                ));
                None
            }
        }
    }

    /// Updates the map from the kernel's events until `quit` wakes.
    pub(crate) fn follow(mut self, quit: &Waker) {
        let map = Arc::clone(&self.map);
        let mut is_lost = true;
        loop {
            if is_lost {
                map.clear();
                is_lost = self.socket.reload().is_err();
                map.tracked.store(!is_lost, Ordering::Relaxed);
            }
            let wait = is_lost.then_some(RELOAD_INTERVAL);
            let ready = poll([Some(self.socket.as_fd()), Some(quit.as_fd())], wait);
            let Ok([is_readable, false]) = ready else {
                return;
            };
            if is_readable && self.socket.read(&mut |change| map.apply(change)).is_err() {
                // The socket's buffer was full, so events were lost.
                is_lost = true;
                thread::sleep(RELOAD_INTERVAL.into());
                let _ = self.socket.read(&mut |_| {});
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connection(port: u16) -> Translated {
        let ends = [Ipv4Addr::new(192, 0, 2, 9), Ipv4Addr::new(198, 51, 100, 1)];
        Translated {
            ends,
            ports: [port, 443],
            protocol: 6,
        }
    }

    fn frame(direction: Direction, port: u16) -> Vec<u8> {
        let Translated {
            mut ends,
            mut ports,
            protocol,
        } = connection(port);
        if direction == Direction::Down {
            ends.reverse();
            ports.reverse();
        }
        let mut frame = vec![0; 54];
        (frame[14], frame[23]) = (0x45, protocol);
        frame[26..30].copy_from_slice(&ends[0].octets());
        frame[30..34].copy_from_slice(&ends[1].octets());
        frame[34..36].copy_from_slice(&ports[0].to_be_bytes());
        frame[36..38].copy_from_slice(&ports[1].to_be_bytes());
        frame
    }

    #[test]
    fn both_directions_of_a_connection_have_its_host_until_it_ends() {
        let map = NatMap::new();
        let host = |direction, port| map.host(direction, &frame(direction, port), 14);
        let hosts = |port| [host(Direction::Up, port), host(Direction::Down, port)];
        assert_eq!(hosts(1), [0, 0]);
        map.apply(Tracked::New(connection(1), Ipv4Addr::new(10, 0, 0, 1)));
        map.apply(Tracked::New(connection(2), Ipv4Addr::new(10, 0, 0, 2)));
        map.apply(Tracked::New(connection(3), Ipv4Addr::new(10, 0, 0, 1)));
        let [up, down] = hosts(1);
        assert_eq!((up & 1, down), (0, up | 1));
        assert_eq!(hosts(3), [up, down]);
        assert_ne!(hosts(2)[0], up);
        assert_eq!(map.state().connections, 3);
        map.apply(Tracked::New(connection(1), Ipv4Addr::new(10, 0, 0, 2)));
        assert_eq!(hosts(1), hosts(2));
        map.apply(Tracked::Gone(connection(1)));
        map.apply(Tracked::Gone(connection(1)));
        assert_eq!((hosts(1), map.state().connections), ([0, 0], 2));
    }

    #[test]
    fn a_full_map_refuses_and_counts() {
        let map = NatMap::new();
        for port in 0..=u16::MAX {
            map.apply(Tracked::New(connection(port), Ipv4Addr::new(10, 0, 0, 1)));
        }
        let HostsBehindNat {
            connections,
            refused,
            ..
        } = map.state();
        assert_eq!(connections + refused, 1 << 16);
        assert!((32_000..=32_768).contains(&connections), "{connections}");
        for port in 0..=u16::MAX {
            map.apply(Tracked::Gone(connection(port)));
        }
        assert_eq!(map.state().connections, 0);
    }

    #[test]
    fn a_host_that_floods_the_map_leaves_places_to_others() {
        let map = NatMap::new();
        let host = |port| map.host(Direction::Up, &frame(Direction::Up, port), 14);
        for port in 1000..=u16::MAX {
            map.apply(Tracked::New(connection(port), Ipv4Addr::new(10, 0, 0, 1)));
        }
        for port in 0..500 {
            map.apply(Tracked::New(connection(port), Ipv4Addr::new(10, 0, 0, 2)));
        }
        let found = (0..500).filter(|port| host(*port) != 0).count();
        assert_eq!(found, 500);
        assert!(map.state().connections <= (BUCKETS * WAYS) as u64);
        for port in 0..=u16::MAX {
            map.apply(Tracked::Gone(connection(port)));
        }
        assert_eq!(map.state().connections, 0);
    }

    #[test]
    fn hostile_frames_have_no_host_and_do_no_harm() {
        let map = NatMap::new();
        map.apply(Tracked::New(connection(1), Ipv4Addr::new(10, 0, 0, 1)));
        let whole = frame(Direction::Up, 1);
        assert_ne!(map.host(Direction::Up, &whole, 14), 0);
        for len in 0..38 {
            assert_eq!(map.host(Direction::Up, &whole[..len], 14), 0, "{len}");
        }
        assert_eq!(map.host(Direction::Up, &whole, u16::MAX), 0);
        for (at, value) in [(14, 0x65), (14, 0x4f), (21, 1), (23, 1), (20, 0x1f)] {
            let mut other = whole.clone();
            other[at] = value;
            assert_eq!(map.host(Direction::Up, &other, 14), 0, "{at}");
        }
    }
}
