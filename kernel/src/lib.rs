//! The disciplines of asymq inside Linux: what `sch_asymq`'s C half calls, and what it is called for.
//!
//! C owns packets, locks, timers and netlink; this half decides. A packet is a [`skb::Skb`], its facts
//! and the address of C's `sk_buff`; C keeps each in a list of its own as well, so that it can go on
//! whatever happens here.
//!
//! - [`abi`]: the entry points and the structures of `module/asymq.h`.
//! - [`frame`]: the bytes of a packet.
//! - [`host`]: what C does for us: memory, bytes of packets, and what becomes of them.
//! - [`request`]: from the numbers that `tc` sent to a discipline.
//! - [`instance`]: one qdisc.
//! - [`learning`]: a rate that nobody configures.
//! - [`window`]: sojourn times and rates of the last seconds.
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
