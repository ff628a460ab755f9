//! nf_tables rules at an interface. A port with such rules is not taken over: its packets would bypass asymq.

use super::bypass::{family_of, kind};
use super::message::{Message, Netlink, attributes};
use std::io;

const NFTA_DEVICE_NAME: u16 = 1;
const NFTA_FLOWTABLE_FLAGS: u16 = 7;
const NFT_FLOWTABLE_HW_OFFLOAD: u32 = 1;

/// A kind of object, and its attributes.
struct Kind {
    request: libc::c_int,
    text: &'static str,
    table: u16,
    name: u16,
    hook: u16,
    /// Attributes of the hook that name one interface, and a list of interfaces.
    device: Option<u16>,
    devices: u16,
    /// True if only objects with hardware offload count.
    offloaded: bool,
}

const KINDS: [Kind; 2] = [
    Kind {
        request: libc::NFT_MSG_GETCHAIN,
        text: "chain",
        table: 1,
        name: 3,
        hook: 4,
        device: Some(3),
        devices: 4,
        offloaded: false,
    },
    Kind {
        // NFT_MSG_GETFLOWTABLE
        request: 23,
        text: "flow table with hardware offload",
        table: 1,
        name: 2,
        hook: 3,
        device: None,
        devices: 3,
        offloaded: true,
    },
];

/// Chains at the ingress or egress of an interface, and its flow tables with hardware offload.
pub fn hooked_by(interface: &str) -> Vec<String> {
    let mut found = Vec::new();
    for kind in &KINDS {
        // Without nf_tables these objects do not exist.
        let _ = dump(kind.request, &mut |body| {
            found.extend(kind.read(body.get(4..).unwrap_or_default(), interface));
        });
    }
    found
}

impl Kind {
    /// Describes an object if it hooks into the interface.
    fn read(&self, body: &[u8], interface: &str) -> Option<String> {
        let find = |kind| {
            attributes(body)
                .find(|(of, _)| *of == kind)
                .map(|(_, value)| value)
        };
        let flags = find(NFTA_FLOWTABLE_FLAGS).and_then(|flags| flags.first_chunk());
        let flags = flags.map_or(0, |flags| u32::from_be_bytes(*flags));
        if self.offloaded && flags & NFT_FLOWTABLE_HW_OFFLOAD == 0 {
            return None;
        }
        let text =
            |of: &[u8]| String::from_utf8_lossy(of.strip_suffix(&[0]).unwrap_or(of)).into_owned();
        let hook = find(self.hook)?;
        let is_ours = attributes(hook).any(|(kind, value)| {
            let mut listed = attributes(value).filter(|(kind, _)| *kind == NFTA_DEVICE_NAME);
            Some(kind) == self.device && text(value) == interface
                || kind == self.devices && listed.any(|(_, name)| text(name) == interface)
        });
        is_ours.then_some(())?;
        let (name, table) = (text(find(self.name)?), text(find(self.table)?));
        Some(format!(
            "the {} {name} of nftables' table {table}",
            self.text
        ))
    }
}

fn dump(of: libc::c_int, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let request = Message::dump(kind(of)).body(&family_of(libc::NFPROTO_UNSPEC as u8, 0));
    Netlink::open_netfilter()?.ask(request, each)
}
