//! A bridge in the kernel for times without a gateway. It consists of nf_tables rules at the ingress of two interfaces,
//! and of chains that block these rules while a process lives.

use super::message::{Message, Netlink};
use std::io;

/// One direction of the kernel's bridge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BypassRule<'a> {
    /// Index of the incoming interface.
    pub from: u32,
    /// Name of the incoming interface.
    pub name: &'a str,
    /// Index of the outgoing interface.
    pub to: u32,
}

/// Blocks the kernel's bridge between two interfaces until the value is dropped or its process ends. Packet sockets
/// still receive frames.
#[derive(Debug)]
pub struct BypassBlock(
    #[expect(dead_code, reason = "its tables exist as long as the socket")] Netlink,
);

/// Priority of the blocking chain. It runs before the bridge's chain, so that frames dropped here are not bridged.
const BEFORE: i32 = -300;
const DROP: u32 = 0;
const ACCEPT: u32 = 1;

impl BypassBlock {
    /// Blocks the bridge of the interfaces in `rules`; it need not exist yet.
    ///
    /// # Errors
    /// The kernel does not support nf_tables owners (Linux 5.12), or another gateway holds an interface.
    pub fn take(rules: [BypassRule<'_>; 2]) -> io::Result<Self> {
        const OWNER: u32 = 2;
        let mut socket = Netlink::open_netfilter()?;
        let messages = rules.iter().flat_map(|rule| {
            let table = format!("asymq-hold-{}", rule.from);
            [
                new_table(&table, OWNER),
                chain(&table, rule.name, BEFORE, DROP),
            ]
        });
        socket.batch(messages)?;
        Ok(Self(socket))
    }
}

/// Makes the kernel bridge the interfaces whenever no process blocks the bridge. The bridge remains when this process
/// ends. Returns true if it replaced an existing bridge.
///
/// # Errors
/// The kernel does not support `fwd` in nf_tables, or a privilege is missing.
pub fn add_bypass(rules: [BypassRule<'_>; 2]) -> io::Result<bool> {
    let mut was = false;
    for rule in rules {
        was |= remove_bypass(rule.from)?;
    }
    let messages = rules.iter().flat_map(|rule| {
        let table = table_of(rule.from);
        [
            new_table(&table, 0),
            chain(&table, rule.name, 0, ACCEPT),
            forward(&table, rule.to),
        ]
    });
    Netlink::open_netfilter()?.batch(messages)?;
    Ok(was)
}

/// Removes the kernel's bridge of an incoming interface. Returns true if the bridge existed.
pub fn remove_bypass(from: u32) -> io::Result<bool> {
    let request = Message::get(kind(libc::NFT_MSG_DELTABLE)).body(&family(0));
    let request = request.text(NFTA_TABLE_NAME, &table_of(from));
    match Netlink::open_netfilter()?.batch([request]) {
        Ok(()) => Ok(true),
        // The table does not exist, or nf_tables is missing.
        Err(error) if is_absent(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// True if the interface has a bridge in the kernel for incoming frames; a process may block it.
pub fn has_bypass(from: u32) -> bool {
    let request = Message::get(kind(libc::NFT_MSG_GETTABLE)).body(&family(0));
    let request = request.text(NFTA_TABLE_NAME, &table_of(from));
    let socket = Netlink::open_netfilter();
    socket.is_ok_and(|mut socket| socket.request(request).is_ok())
}

fn is_absent(error: &io::Error) -> bool {
    use libc::{EINVAL, ENOENT, EOPNOTSUPP, EPROTONOSUPPORT};
    let code = error.raw_os_error();
    matches!(code, Some(ENOENT | EOPNOTSUPP | EPROTONOSUPPORT | EINVAL))
}

fn table_of(from: u32) -> String {
    format!("asymq-bypass-{from}")
}

// linux/netfilter/nf_tables.h
const NFTA_TABLE_NAME: u16 = 1;
const NFTA_TABLE_FLAGS: u16 = 2;
const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_NAME: u16 = 3;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_POLICY: u16 = 5;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_HOOK_HOOKNUM: u16 = 1;
const NFTA_HOOK_PRIORITY: u16 = 2;
const NFTA_HOOK_DEV: u16 = 3;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_CHAIN: u16 = 2;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_LIST_ELEM: u16 = 1;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_IMMEDIATE_DREG: u16 = 1;
const NFTA_IMMEDIATE_DATA: u16 = 2;
const NFTA_DATA_VALUE: u16 = 1;
const NFTA_FWD_SREG_DEV: u16 = 1;

const CHAIN: &str = "ingress";

pub(super) fn kind(of: libc::c_int) -> u16 {
    (libc::NFNL_SUBSYS_NFTABLES << 8 | of) as u16
}

fn family(resource: u16) -> [u8; 4] {
    family_of(libc::NFPROTO_NETDEV as u8, resource)
}

/// The struct `nfgenmsg`: family, version, resource.
pub(super) fn family_of(family: u8, resource: u16) -> [u8; 4] {
    let [high, low] = resource.to_be_bytes();
    [family, 0, high, low]
}

fn new_table(name: &str, flags: u32) -> Message {
    let request = Message::create(kind(libc::NFT_MSG_NEWTABLE)).body(&family(0));
    let request = request.text(NFTA_TABLE_NAME, name);
    request.attribute(NFTA_TABLE_FLAGS, &flags.to_be_bytes())
}

fn chain(table: &str, interface: &str, priority: i32, policy: u32) -> Message {
    let request = Message::create(kind(libc::NFT_MSG_NEWCHAIN)).body(&family(0));
    request
        .text(NFTA_CHAIN_TABLE, table)
        .text(NFTA_CHAIN_NAME, CHAIN)
        .nest(NFTA_CHAIN_HOOK, |hook| {
            hook.attribute(NFTA_HOOK_HOOKNUM, &libc::NF_NETDEV_INGRESS.to_be_bytes())
                .attribute(NFTA_HOOK_PRIORITY, &priority.to_be_bytes())
                .text(NFTA_HOOK_DEV, interface)
        })
        .attribute(NFTA_CHAIN_POLICY, &policy.to_be_bytes())
        .text(NFTA_CHAIN_TYPE, "filter")
}

fn forward(table: &str, to: u32) -> Message {
    let register = libc::NFT_REG_1.to_be_bytes();
    let expression = |list: Message, name: &str, data: &dyn Fn(Message) -> Message| {
        list.nest(NFTA_LIST_ELEM, |of| {
            of.text(NFTA_EXPR_NAME, name).nest(NFTA_EXPR_DATA, data)
        })
    };
    let request = Message::create(kind(libc::NFT_MSG_NEWRULE)).body(&family(0));
    request
        .text(NFTA_RULE_TABLE, table)
        .text(NFTA_RULE_CHAIN, CHAIN)
        .nest(NFTA_RULE_EXPRESSIONS, |list| {
            let list = expression(list, "immediate", &|data| {
                data.attribute(NFTA_IMMEDIATE_DREG, &register)
                    .nest(NFTA_IMMEDIATE_DATA, |value| {
                        value.attribute(NFTA_DATA_VALUE, &to.to_ne_bytes())
                    })
            });
            expression(list, "fwd", &|data| {
                data.attribute(NFTA_FWD_SREG_DEV, &register)
            })
        })
}

impl Netlink {
    pub(super) fn open_netfilter() -> io::Result<Self> {
        Self::open_family(libc::NETLINK_NETFILTER)
    }

    /// Sends changes that the kernel applies together or not at all.
    fn batch(&mut self, messages: impl IntoIterator<Item = Message>) -> io::Result<()> {
        let limit = |of: libc::c_int| {
            let resource = libc::NFNL_SUBSYS_NFTABLES as u16;
            Message::silent(of as u16).body(&family(resource))
        };
        let ends = [limit(libc::NFNL_MSG_BATCH_BEGIN)].into_iter();
        let all = ends
            .chain(messages)
            .chain([limit(libc::NFNL_MSG_BATCH_END)]);
        self.request_all(all)
    }
}
