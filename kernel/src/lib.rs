//! The disciplines of asymq inside Linux: the Rust half of `sch_asymq`.
//!
//! C owns packets, locks, timers and netlink; the Rust half makes the decisions. A packet is a `skb::Skb`: its parsed
//! header and the address of C's `sk_buff`. C also lists all packets, so C can continue after a fault in Rust.
//!
//! - `abi`: the entry points and the structures of `module/asymq.h`.
//! - `frame`: first bytes of a packet.
//! - `host`: functions of the C half: memory, packets, messages.
//! - `request`: parses the numbers that `tc` sends.
//! - `instance`: one qdisc.
//! - `learning`: a learnt rate.
//! - `window`: recent sojourn times and rates.
#![no_std]

extern crate alloc;

mod abi;
mod frame;
mod host;
mod instance;
mod learning;
mod request;
#[cfg(feature = "selftest")]
mod selftest;
mod skb;
mod window;
