//! AQMs that act on arrivals, and their parameters.

use super::{BoxedAqm, Config, ECN, Entry, Maker, Role, Typed, entries, listed, parameters};
use crate::Limit;
use crate::decide::aqm::{Red, RedParams, Step};
use crate::hold::{BuildError, boxed};

parameters! {
    MARK_ABOVE: Limit = "mark-above", "20p",
        "Backlog above which every arriving data packet is marked, or dropped if it is not ECN-capable (DCTCP's K)";
}

type Make = fn(&Config) -> Result<BoxedAqm, BuildError>;

const fn aqm(name: &'static str, make: Make, summary: &'static str) -> Entry {
    Entry {
        maker: Maker::Aqm(make),
        ..Entry::part(Role::Aqm, name, summary)
    }
}

/// The AQMs, in the order of `--help`.
pub(super) static AQMS: &[Entry] = entries! {
    Entry::part(Role::Aqm, "none", "Drops and marks nothing"), maker: Maker::Nothing;
    aqm("red", |config| red(config, true), "Applies RED to data"), source: "Floyd and Jacobson 1993", parameters: listed![ECN];
    aqm("acc", |config| red(config, false), "Applies RED to data and ACKs: the gateway's part of ACC"),
        source: "RFC 3449, sec. 4.3", parameters: listed![ECN];
    aqm("step", |config| Ok(boxed(Step::new(config.get(MARK_ABOVE)?))?), "Marks all data packets while the backlog exceeds a threshold, for DCTCP"),
        source: "RFC 8257, sec. 3.1", parameters: listed![MARK_ABOVE];
};

fn red(config: &Config, spares_acks: bool) -> Result<BoxedAqm, BuildError> {
    const TYPICAL: u32 = 1500;
    let packets = match config.limit {
        Limit::Packets(packets) => packets,
        Limit::Bytes(bytes) => (bytes / u64::from(TYPICAL)).min(1 << 20) as u32,
    };
    Ok(boxed(Red::new(RedParams {
        spares_acks,
        ecn: config.get(ECN)?,
        ..RedParams::for_limit(packets, config.link.tx_time(TYPICAL))
    }))?)
}
