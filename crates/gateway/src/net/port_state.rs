//! The configuration that the kernel deletes when an interface leaves its network namespace.

use super::Network;
use super::message::{Message, attributes, find, interface, text, word};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Configuration of an interface. Addresses, routes and neighbours are stored as netlink messages in hexadecimal
/// digits, in the order in which they must be added.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortState {
    /// Flags of the interface: up, ARP, promiscuous, all-multicast.
    flags: u32,
    /// MTU, queue length and group, by attribute.
    numbers: BTreeMap<u16, u32>,
    alias: String,
    altnames: Vec<String>,
    /// Values of the interface's files in `/proc/sys/net`.
    sysctls: BTreeMap<PathBuf, String>,
    addresses: Vec<String>,
    /// Nexthop objects, then groups of them.
    #[serde(default)]
    nexthops: Vec<String>,
    routes: Vec<Route>,
    neighbours: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Route {
    message: String,
    /// Remaining lifetime in seconds; 0 means unlimited.
    expires: u32,
}

const FLAGS: u32 = (libc::IFF_UP | libc::IFF_NOARP | libc::IFF_PROMISC | libc::IFF_ALLMULTI) as u32;
const NUMBERS: [u16; 3] = [libc::IFLA_MTU, libc::IFLA_TXQLEN, libc::IFLA_GROUP];
const IFLA_PROP_LIST: u16 = 52;
const IFLA_ALT_IFNAME: u16 = 53;
const RTM_NEWLINKPROP: u16 = 108;
const RTA_VIA: u16 = 18;
const RTA_EXPIRES: u16 = 23;
const RTM_NEWNEXTHOP: u16 = 104;
const RTM_GETNEXTHOP: u16 = 106;
const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_OIF: u16 = 5;
const NHA_RES_GROUP: u16 = 12;
const RTA_NH_ID: u16 = 30;
/// Flag for a next hop that is reached directly although no address of the link covers it.
const ONLINK: u8 = 4;
const NDA_CACHEINFO: u16 = 3;
const NDA_PROBES: u16 = 4;
const LINK_BODY: usize = 16;
const ADDRESS_BODY: usize = 8;
const ROUTE_BODY: usize = 12;
const NEXTHOP_BODY: usize = 8;
const NEIGHBOUR_BODY: usize = 12;
/// File for duplicate address detection. The detection is disabled while addresses are restored.
const ACCEPT_DAD: &str = "accept_dad";
/// Time limit for adding routes that depend on other routes, or on an address that is still tentative.
const ROUTE_TIMEOUT: Duration = Duration::from_secs(2);

impl PortState {
    /// Reads the configuration of an interface of the calling thread's network namespace.
    pub fn read(network: &mut Network, index: u32, name: &str) -> io::Result<Self> {
        let mut state = Self {
            sysctls: sysctls(name),
            addresses: addresses(network, index)?,
            nexthops: nexthops(network, index)?.1,
            routes: routes(network, index)?,
            neighbours: neighbours(network, index)?,
            ..Self::default()
        };
        state.read_link(network, index)?;
        Ok(state)
    }

    fn read_link(&mut self, network: &mut Network, index: u32) -> io::Result<()> {
        let request = Message::get(libc::RTM_GETLINK).body(&interface(index, 0, 0));
        let bodies = network.all(request, |body| Some(body.to_vec()))?;
        let body = bodies.first().ok_or(io::ErrorKind::NotFound)?;
        self.flags = word(body, 8).unwrap_or_default() & FLAGS;
        for (kind, value) in attributes(body.get(LINK_BODY..).unwrap_or_default()) {
            match kind {
                libc::IFLA_IFALIAS => self.alias = text(value),
                IFLA_PROP_LIST => {
                    let names = attributes(value).filter(|(kind, _)| *kind == IFLA_ALT_IFNAME);
                    self.altnames = names.map(|(_, name)| text(name)).collect();
                }
                kind if NUMBERS.contains(&kind) => {
                    self.numbers
                        .extend(word(value, 0).map(|number| (kind, number)));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Applies the configuration to the interface with this index and name. May be called again.
    ///
    /// # Errors
    /// The first failed change; the remaining changes are still made.
    pub fn apply(&self, network: &mut Network, index: u32, name: &str) -> io::Result<()> {
        let mut now = Self::default();
        now.read_link(network, index)?;
        let mut failed = Ok(());
        let mut note = |done: io::Result<()>| {
            if let Err(error) = done
                && failed.is_ok()
            {
                failed = Err(error);
            }
        };
        for (kind, number) in &self.numbers {
            if now.numbers.get(kind) != Some(number) {
                note(network.set_number(index, *kind, *number));
            }
        }
        if now.alias != self.alias {
            let alias = Message::link(index).attribute(libc::IFLA_IFALIAS, self.alias.as_bytes());
            note(network.0.request(alias));
        }
        for altname in self.altnames.iter().filter(|of| !now.altnames.contains(of)) {
            let message = Message::create(RTM_NEWLINKPROP).body(&interface(index, 0, 0));
            let list = |list: Message| list.text(IFLA_ALT_IFNAME, altname);
            let message = message.nest(IFLA_PROP_LIST | NESTED, list);
            note(network.0.request(message));
        }
        write_sysctls(&self.sysctls, name, false);
        if now.flags != self.flags {
            note(network.set_flags(index, self.flags, FLAGS));
        }
        note(self.apply_addresses(network, index));
        note(self.apply_routes(network, index));
        for neighbour in &self.neighbours {
            note(put(network, libc::RTM_NEWNEIGH, neighbour));
        }
        write_sysctls(&self.sysctls, name, true);
        failed
    }

    fn apply_addresses(&self, network: &mut Network, index: u32) -> io::Result<()> {
        let now = addresses(network, index)?;
        for other in now.iter().filter(|of| !self.addresses.contains(of)) {
            let is_kept = self.addresses.iter().any(|of| key(of) == key(other));
            if !is_kept {
                let request = Message::get(libc::RTM_DELADDR).body(&bytes(other));
                network.0.request(request)?;
            }
        }
        for address in self.addresses.iter().filter(|of| !now.contains(of)) {
            put(network, libc::RTM_NEWADDR, address)?;
        }
        Ok(())
    }

    /// Adds nexthop objects and routes in several passes, since some depend on others.
    fn apply_routes(&self, network: &mut Network, index: u32) -> io::Result<()> {
        let until = Instant::now() + ROUTE_TIMEOUT;
        loop {
            let now = routes(network, index)?;
            let is_in = |of: &Route, list: &[Route]| list.iter().any(|it| it.message == of.message);
            for other in now.iter().filter(|of| !is_in(of, &self.routes)) {
                let request = Message::get(libc::RTM_DELROUTE).body(&bytes(&other.message));
                // The kernel may have removed this route together with another one.
                let _ = network.0.request(request);
            }
            let missing: Vec<&Route> = self.routes.iter().filter(|of| !is_in(of, &now)).collect();
            let mut failed = None;
            let (_, objects) = nexthops(network, index)?;
            for object in self.nexthops.iter().filter(|of| !objects.contains(of)) {
                failed = put(network, RTM_NEWNEXTHOP, object).err().or(failed);
            }
            for route in &missing {
                let append = libc::NLM_F_CREATE | libc::NLM_F_APPEND;
                let message = Message::new(libc::RTM_NEWROUTE, append);
                let mut message = message.body(&bytes(&route.message));
                if route.expires > 0 {
                    message = message.attribute(RTA_EXPIRES, &route.expires.to_ne_bytes());
                }
                failed = network.0.request(message).err().or(failed);
            }
            match failed {
                None => return Ok(()),
                Some(error) if Instant::now() > until => return Err(error),
                Some(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }
}

/// Flag of an attribute that contains attributes. Newer request types require it.
const NESTED: u16 = libc::NLA_F_NESTED as u16;

fn put(network: &mut Network, kind: u16, message: &str) -> io::Result<()> {
    let request = Message::new(kind, libc::NLM_F_CREATE | libc::NLM_F_REPLACE);
    network.0.request(request.body(&bytes(message)))
}

/// Returns the messages of all objects of a kind. `head` is the request's fixed structure.
fn dump(network: &mut Network, kind: u16, head: &[u8]) -> io::Result<Vec<Vec<u8>>> {
    network.all(Message::dump(kind).body(head), |body| Some(body.to_vec()))
}

/// Formats a message with this fixed structure and these attributes.
fn message<V: AsRef<[u8]>>(head: &[u8], attributes: impl Iterator<Item = (u16, V)>) -> String {
    let add = |message: Message, (kind, value): (u16, V)| message.attribute(kind, value.as_ref());
    attributes.fold(Message::bare().body(head), add).hex()
}

/// Returns the messages that restore an interface's addresses. Omits fields that the kernel changes by itself.
fn addresses(network: &mut Network, index: u32) -> io::Result<Vec<String>> {
    const INPUT_FLAGS: u32 = libc::IFA_F_NODAD
        | libc::IFA_F_HOMEADDRESS
        | libc::IFA_F_MANAGETEMPADDR
        | libc::IFA_F_NOPREFIXROUTE
        | libc::IFA_F_MCAUTOJOIN;
    let mut all = dump(network, libc::RTM_GETADDR, &[0; ADDRESS_BODY])?;
    all.retain(|body| word(body, 4) == Some(index));
    let (mut v4, mut v6) = (Vec::new(), Vec::new());
    for body in &all {
        let mut head: [u8; ADDRESS_BODY] = *body.first_chunk().ok_or(io::ErrorKind::InvalidData)?;
        head[2] = 0;
        let settings = attributes(&body[ADDRESS_BODY..]).filter_map(|(kind, value)| match kind {
            libc::IFA_FLAGS => {
                let flags = word(value, 0).unwrap_or_default() & INPUT_FLAGS;
                Some((kind, flags.to_ne_bytes().to_vec()))
            }
            // The default: preferred and valid without a time limit.
            libc::IFA_CACHEINFO if word(value, 4) == Some(u32::MAX) => None,
            _ => Some((kind, value.to_vec())),
        });
        let message = message(&head, settings);
        match i32::from(head[0]) {
            libc::AF_INET => v4.push(message),
            // The kernel inserts new IPv6 addresses at the front.
            libc::AF_INET6 => v6.insert(0, message),
            _ => {}
        }
    }
    v4.extend(v6);
    Ok(v4)
}

/// Returns family, prefix length and addresses from the message of an address.
fn key(message: &str) -> Vec<u8> {
    let message = bytes(message);
    let head = message.get(..2).unwrap_or_default().to_vec();
    let ends = attributes(message.get(ADDRESS_BODY..).unwrap_or_default())
        .filter(|(kind, _)| [libc::IFA_LOCAL, libc::IFA_ADDRESS].contains(kind));
    ends.fold(head, |mut key, (_, value)| {
        key.extend(value);
        key
    })
}

/// Routes through an interface, except those that the kernel derives from addresses.
fn routes(network: &mut Network, index: u32) -> io::Result<Vec<Route>> {
    let all = dump(network, libc::RTM_GETROUTE, &[0; ROUTE_BODY])?;
    let (ids, _) = nexthops(network, index)?;
    let own = all.iter().filter(|body| is_through(body, index, &ids));
    Ok(own.filter_map(|body| route(body)).collect())
}

/// Returns numbers and messages of an interface's nexthop objects, and of the groups that contain one. The messages are
/// in the order in which they must be added. Older kernels have no such objects.
fn nexthops(network: &mut Network, index: u32) -> io::Result<(Vec<u32>, Vec<String>)> {
    let all = match dump(network, RTM_GETNEXTHOP, &[0; NEXTHOP_BODY]) {
        Err(error) if error.raw_os_error() == Some(libc::EOPNOTSUPP) => Vec::new(),
        all => all?,
    };
    let (mut ids, mut messages) = (Vec::new(), Vec::new());
    for kind in [NHA_OIF, NHA_GROUP] {
        for body in &all {
            let values = || attributes(body.get(NEXTHOP_BODY..).unwrap_or_default());
            let is_own = |value: &[u8]| match kind {
                NHA_OIF => word(value, 0) == Some(index),
                // Each entry has a number and a weight.
                _ => value
                    .chunks(8)
                    .any(|entry| word(entry, 0).is_some_and(|id| ids.contains(&id))),
            };
            if !values().any(|(of, value)| of == kind && is_own(value)) {
                continue;
            }
            let &[family, _, protocol, ..] = &body[..] else {
                continue;
            };
            ids.extend(find(&body[NEXTHOP_BODY..], NHA_ID).and_then(|id| word(id, 0)));
            let head = [family, 0, protocol, 0, body[4] & ONLINK, 0, 0, 0];
            // Attributes with higher numbers occur only in the kernel's answers.
            let settings = values().filter(|(of, _)| *of <= NHA_RES_GROUP);
            messages.push(message(&head, settings));
        }
    }
    Ok((ids, messages))
}

fn is_through(body: &[u8], index: u32, nexthops: &[u32]) -> bool {
    attributes(body.get(ROUTE_BODY..).unwrap_or_default()).any(|(kind, value)| match kind {
        libc::RTA_OIF => word(value, 0) == Some(index),
        RTA_NH_ID => word(value, 0).is_some_and(|id| nexthops.contains(&id)),
        libc::RTA_MULTIPATH => next_hops(value).any(|(at, _)| word(value, at + 4) == Some(index)),
        _ => false,
    })
}

/// Yields offset and length of each `rtnexthop`.
fn next_hops(value: &[u8]) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(*value.get(at..)?.first_chunk()?));
        let hop = (at, len);
        value.get(at..at + len).filter(|hop| hop.len() >= 8)?;
        at += len.next_multiple_of(4);
        Some(hop)
    })
}

fn route(body: &[u8]) -> Option<Route> {
    let mut head: [u8; ROUTE_BODY] = *body.first_chunk()?;
    let [family, _, _, _, table, protocol, ..] = head;
    let is_ip = [libc::AF_INET, libc::AF_INET6].contains(&family.into());
    if !is_ip || (table, protocol) == (libc::RT_TABLE_LOCAL, libc::RTPROT_KERNEL) {
        return None;
    }
    // The kernel itself sets the other flags: dead, no carrier, offloaded.
    head[8] &= ONLINK;
    head[9..].fill(0);
    let values = &body[ROUTE_BODY..];
    let has_object = find(values, RTA_NH_ID).is_some();
    let settings = attributes(values).filter_map(|(kind, value)| match kind {
        libc::RTA_CACHEINFO => None,
        // The nexthop object already contains these attributes.
        libc::RTA_OIF | libc::RTA_GATEWAY | RTA_VIA | libc::RTA_MULTIPATH if has_object => None,
        libc::RTA_MULTIPATH => {
            let mut hops = value.to_vec();
            next_hops(value).for_each(|(at, _)| hops[at + 2] &= ONLINK);
            Some((kind, hops))
        }
        _ => Some((kind, value.to_vec())),
    });
    // `rta_expires`, in hundredths of a second.
    let expires = find(values, libc::RTA_CACHEINFO).map_or(Some(0), |value| word(value, 8))?;
    Some(Route {
        message: message(&head, settings),
        expires: (expires.cast_signed().max(0) / 100).cast_unsigned(),
    })
}

fn neighbours(network: &mut Network, index: u32) -> io::Result<Vec<String>> {
    const PROXY: u8 = 8;
    let mut found = Vec::new();
    for flags in [0, PROXY] {
        let mut head = [0; NEIGHBOUR_BODY];
        head[10] = flags;
        for body in dump(network, libc::RTM_GETNEIGH, &head)? {
            let state = u16::from_ne_bytes([body[8], body[9]]);
            let is_set = state & libc::NUD_PERMANENT != 0 || body[10] & PROXY != 0;
            if word(&body, 4) != Some(index) || !is_set {
                continue;
            }
            let (head, values) = body.split_at(NEIGHBOUR_BODY);
            let is_setting = |(kind, _): &(u16, _)| ![NDA_CACHEINFO, NDA_PROBES].contains(kind);
            found.push(message(head, attributes(values).filter(is_setting)));
        }
    }
    Ok(found)
}

/// Folders in `/proc/sys/net` that contain an interface's files.
const SYSCTLS: [&str; 4] = ["ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"];

fn folder(of: &str, name: &str) -> PathBuf {
    Path::new("/proc/sys/net").join(of).join(name)
}

fn sysctls(name: &str) -> BTreeMap<PathBuf, String> {
    let files = SYSCTLS.iter().flat_map(|of| {
        let files = fs::read_dir(folder(of, name)).into_iter().flatten();
        files
            .flatten()
            .map(move |file| (Path::new(of).join(file.file_name()), file.path()))
    });
    // Files that cannot be read are omitted, for example a secret that was never set.
    files
        .filter_map(|(key, path)| Some((key, fs::read_to_string(path).ok()?)))
        .collect()
}

/// Writes values that differ from the current ones. If a file cannot be written, the kernel's default remains. Disables
/// duplicate address detection unless `detects`.
fn write_sysctls(values: &BTreeMap<PathBuf, String>, name: &str, detects: bool) {
    let now = sysctls(name);
    for (key, value) in values {
        let value = match detects || !key.ends_with(ACCEPT_DAD) {
            true => value.as_str(),
            false => "0",
        };
        if now.get(key).is_some_and(|now| now != value)
            && let (Some(of), Some(file)) = (key.parent(), key.file_name())
        {
            let of = of.to_string_lossy();
            let _ = fs::write(folder(&of, name).join(file), value);
        }
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits.filter_map(byte).collect()
}
