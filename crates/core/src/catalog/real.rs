//! Parameters for real links, common to the gateway and the kernel module.

use super::Params;
use crate::decide::overhead::Overhead;
use crate::{Bytes, Limit, Rate};
use alloc::string::{String, ToString};

/// Returns parameters for real packets, with delayed ACKs and timestamps as in Linux.
pub fn surroundings(overhead: &Overhead) -> Params {
    let charged = |packet: u32| {
        let frame = if overhead.counts_frames() { 14 } else { 0 };
        Bytes(overhead.charge_len(packet + frame).into()).to_string()
    };
    [
        ("ack-size", charged(52)),
        ("data-size", charged(1500)),
        ("data-per-ack", String::from("auto")),
    ]
    .into_iter()
    .collect()
}

/// Range of rates to which a real link can be shaped, in bit/s.
const LINK_RATES: core::ops::RangeInclusive<u64> = 8_000..=100_000_000_000;

/// True if a real link can be shaped to this rate in bit/s.
pub fn is_link_rate(bits: u64) -> bool {
    LINK_RATES.contains(&bits)
}

/// Parses a rate to which a real link can be shaped. Below the range, one full frame takes seconds, and TCP
/// connections break. Above the range, one core cannot forward all packets.
///
/// # Errors
/// The text is not a rate, or the rate is out of range.
pub fn link_rate(text: &str) -> Result<Rate, String> {
    match text.parse() {
        Ok(rate) if is_link_rate(Rate::bits_per_sec(rate)) => Ok(rate),
        Err(error) if error != Rate::out_of_range() => Err(error.to_string()),
        _ => Err("out of range; use 8kbit to 100gbit".into()),
    }
}

/// Returns the nearest rate to which a real link can be shaped.
pub fn nearest_link_rate(rate: Rate) -> Rate {
    let bits = rate.bits_per_sec();
    let bits = bits.clamp(*LINK_RATES.start(), *LINK_RATES.end());
    Rate::from_bits_per_sec(bits).unwrap_or(rate)
}

/// Returns the default uplink buffer: 100 ms of full frames, but at least AQ's 50 packets. The maximum is 5000 packets,
/// or 20 ms (at most 100 000 packets) if that is more, because memory is allocated for each packet.
pub fn default_buffer(up: Rate) -> Limit {
    const LARGE: u64 = 5_000;
    let ms = |ms: u64| up.bits_per_sec() / 1000 * ms / (8 * 1514);
    let packets = ms(100).min(ms(20).max(LARGE)).clamp(50, 100_000);
    Limit::Packets(u32::try_from(packets).unwrap_or(u32::MAX))
}
