//! nf_tables rules at an interface. A port with such rules is not taken over: its packets would bypass asymq, or its
//! rules would stop working.

use super::bypass::{family_of, kind};
use super::message::{Message, Netlink, attributes, find, text};
use std::io;

const NFTA_DEVICE_NAME: u16 = 1;

/// A kind of object, and its attributes.
struct Kind {
    request: libc::c_int,
    text: &'static str,
    table: u16,
    name: u16,
    hook: u16,
    /// Attribute for the name of the hook's only interface.
    device: Option<u16>,
    /// Attribute for a list of interface names.
    devices: u16,
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
    },
    Kind {
        // NFT_MSG_GETFLOWTABLE
        request: 23,
        text: "flow table",
        table: 1,
        name: 2,
        hook: 3,
        device: None,
        devices: 3,
    },
];

/// Returns the chains at the ingress or egress of an interface, and its flow tables. A flow table loses an
/// interface that moves to another namespace, even if the interface returns.
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
        let hook = find(body, self.hook)?;
        let is_ours = attributes(hook).any(|(kind, value)| {
            let mut listed = attributes(value).filter(|(kind, _)| *kind == NFTA_DEVICE_NAME);
            Some(kind) == self.device && text(value) == interface
                || kind == self.devices && listed.any(|(_, name)| text(name) == interface)
        });
        is_ours.then_some(())?;
        let (name, table) = (text(find(body, self.name)?), text(find(body, self.table)?));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_table_hooks_into_its_devices_with_and_without_hardware_offload() {
        for flags in [0u32, 1] {
            // Attributes in the kernel's order: hook number and priority, then the devices.
            let table = Message::bare()
                .body(&[0; 4])
                .text(1, "filter")
                .text(2, "fast")
                .nest(3, |hook| {
                    let hook = hook.attribute(1, &[0; 4]).attribute(2, &[0; 4]);
                    hook.nest(3, |devices| devices.text(1, "lan").text(1, "wan0"))
                })
                .attribute(7, &flags.to_be_bytes())
                .finish();
            let read = |name| KINDS[1].read(&table[4..], name);
            let expected = "the flow table fast of nftables' table filter";
            assert_eq!(read("wan0").as_deref(), Some(expected));
            assert_eq!(read("wan"), None);
        }
    }
}
