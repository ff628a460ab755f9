//! Places at a server, one per client. Limits are in total and per network, so that no network can exclude another.

use std::net::{IpAddr, Ipv6Addr};
use std::time::{Duration, Instant};

/// Time without activity after which a connection may be closed for a new one.
const REPLACEABLE: Duration = Duration::from_secs(1);
/// A connection counts as idle until it has moved at least this many further bytes.
const ACTIVE_BYTES: u64 = 256;

/// A client's network for limits: an IPv4 address or an IPv6 /64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network(IpAddr);

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            v4 => v4,
        })
    }
}

/// Time of the last activity of a connection or a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Activity {
    bytes: u64,
    since: Instant,
}

impl Activity {
    pub(crate) fn new() -> Self {
        Self {
            bytes: 0,
            since: Instant::now(),
        }
    }

    /// Updates the bytes moved so far. Returns the time since the last activity.
    pub(crate) fn idle(&mut self, bytes: u64) -> Duration {
        if bytes >= self.bytes.saturating_add(ACTIVE_BYTES) {
            *self = Self {
                bytes,
                ..Self::new()
            };
        }
        self.since.elapsed()
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) total: usize,
    pub(crate) per_network: usize,
}

/// Decision about a new client's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Free,
    /// A place that becomes free when the server closes the holder with this index.
    Replace(usize),
    Refused,
}

impl Places {
    /// Finds a place for a newcomer; `holders` are the present clients with their idle times. A newcomer may replace an
    /// idle client, or any client of the largest network if the newcomer's network does not become larger than it.
    pub(crate) fn find(self, holders: &[(Network, Duration)], newcomer: Network) -> Place {
        let count = |network| holders.iter().filter(|holder| holder.0 == network).count();
        let own = count(newcomer);
        let is_idle = |idle: Duration| idle >= REPLACEABLE;
        let idlest = |may_go: &dyn Fn(&(Network, Duration)) -> bool| {
            let indexed = holders.iter().enumerate();
            let eligible = indexed.filter(|(_, holder)| may_go(holder));
            let idlest = eligible.max_by_key(|(_, holder)| holder.1);
            idlest.map_or(Place::Refused, |(index, _)| Place::Replace(index))
        };
        if own >= self.per_network {
            return idlest(&|holder| holder.0 == newcomer && is_idle(holder.1));
        }
        if holders.len() < self.total {
            return Place::Free;
        }
        let largest = holders.iter().map(|holder| count(holder.0)).max();
        match largest {
            Some(largest) if largest > own + 1 => idlest(&|holder| count(holder.0) == largest),
            _ => idlest(&|holder| is_idle(holder.1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn network(address: &str) -> Network {
        address.parse::<IpAddr>().unwrap().into()
    }

    const PLACES: Places = Places {
        total: 4,
        per_network: 2,
    };
    const BUSY: Duration = Duration::from_millis(10);
    const IDLE: Duration = Duration::from_secs(2);

    #[test]
    fn a_network_is_an_ipv4_address_or_an_ipv6_prefix() {
        assert_eq!(network("2001:db8::1"), network("2001:db8::ffff:1"));
        assert_ne!(network("2001:db8::1"), network("2001:db8:0:1::1"));
        assert_eq!(network("::ffff:10.0.0.1"), network("10.0.0.1"));
        assert_ne!(network("10.0.0.1"), network("10.0.0.2"));
    }

    #[test]
    fn an_idle_holder_is_replaced_and_a_busy_one_is_not() {
        let [a, b, c] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(network);
        let holders = [(a, BUSY), (a, IDLE), (b, 2 * IDLE), (b, BUSY)];
        assert_eq!(PLACES.find(&holders[..2], c), Place::Free);
        assert_eq!(PLACES.find(&holders, c), Place::Replace(2));
        assert_eq!(PLACES.find(&holders, a), Place::Replace(1));
        let busy = holders.map(|(network, _)| (network, BUSY));
        assert_eq!(PLACES.find(&busy[..2], a), Place::Refused);
        let each = ["10.0.0.1", "10.0.0.2", "10.0.0.4", "10.0.0.5"];
        let each = each.map(|address| (network(address), BUSY));
        assert_eq!(PLACES.find(&each, c), Place::Refused);
    }

    #[test]
    fn the_largest_network_yields_a_place_in_use() {
        let three = Places {
            per_network: 3,
            ..PLACES
        };
        let [a, b, c] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(network);
        let holders = [(a, BUSY), (a, 2 * BUSY), (a, BUSY), (b, 3 * BUSY)];
        assert_eq!(three.find(&holders, c), Place::Replace(1));
        assert_eq!(three.find(&holders, b), Place::Replace(1));
    }

    proptest! {
        /// Simulates slow, silent and greedy clients from many networks.
        #[test]
        fn limits_hold_and_a_network_without_places_gets_one_from_a_crowd(
            clients in prop::collection::vec((0..6_u8, 0..3000_u64, any::<bool>()), 1..200),
        ) {
            let places = Places { total: 8, per_network: 3 };
            let mut held: Vec<(Network, Duration)> = Vec::new();
            for (network, idle, leaves) in clients {
                let newcomer = Network(IpAddr::from([10, 0, 0, network]));
                let count = |held: &[(Network, Duration)], of| {
                    held.iter().filter(|holder| holder.0 == of).count()
                };
                let own = count(&held, newcomer);
                let crowded = held.iter().any(|holder| count(&held, holder.0) > own + 1);
                let some_idle = held.iter().any(|holder| holder.1 >= REPLACEABLE);
                match places.find(&held, newcomer) {
                    Place::Free => prop_assert!(held.len() < 8 && own < 3),
                    Place::Replace(index) => {
                        let (_, idle) = held.swap_remove(index);
                        prop_assert!(idle >= REPLACEABLE || crowded);
                    }
                    Place::Refused => {
                        prop_assert!(own == 3 || !(some_idle || crowded));
                        continue;
                    }
                }
                held.push((newcomer, Duration::from_millis(idle)));
                prop_assert!(held.len() <= 8);
                prop_assert!(held.iter().all(|holder| count(&held, holder.0) <= 3));
                if leaves {
                    held.remove(0);
                }
            }
        }
    }

    #[test]
    fn a_trickle_is_idle() {
        let mut activity = Activity::new();
        activity.since -= IDLE;
        assert!(activity.idle(255) >= IDLE);
        assert!(activity.idle(256) < IDLE);
    }
}
