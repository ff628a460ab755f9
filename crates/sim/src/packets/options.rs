//! TCP options as segments carry them.

use asymq_core::Ecn;
use asymq_core::decide::ack::{AccEcn, AccEcnOrder, AckInfo, MAX_SACK_RANGES, SackRange};
use asymq_scenario::Scenario;
use std::fmt::Debug;

/// TCP options that a run's segments carry.
pub(crate) trait Options: Copy + Debug + Default + PartialEq + Send + 'static {
    /// True if runs with these options can contain flows of `--flow`, tunnels, floods or modems. If false, the compiler
    /// removes the checks for them.
    const EXTRAS: bool;

    /// Converts a segment's options; plain TCP discards them.
    fn of(_options: TcpOptions) -> Self {
        Self::default()
    }

    /// The options as on the wire; `None` without options.
    fn on_wire(&self) -> Option<&TcpOptions> {
        None
    }

    /// Copies the timestamps of a later ACK into these options.
    fn set_timestamps(&mut self, _timestamps: (u32, u32)) {}

    fn set_spin(&mut self, _spin: bool) {}

    /// Marks the packet if it is ECN-capable. Returns true if it now has CE.
    fn mark_ce(&mut self) -> bool {
        false
    }
}

impl Options for () {
    const EXTRAS: bool = false;
}

/// Timestamps (RFC 7323), SACK blocks (RFC 2018) and ECN's fields (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpOptions {
    /// TSval and TSecr.
    pub(crate) timestamps: Option<(u32, u32)>,
    /// SACK blocks in segments relative to the acknowledgement number; only the first `blocks` are valid.
    sack: [(u32, u32); MAX_SACK_RANGES],
    blocks: u8,
    /// Payload of a segment in bytes.
    mss: u16,
    /// AccECN option of kind 174: number of counters, and the counters.
    pub(crate) accecn: Option<(u8, [u32; 3])>,
    /// The ECN field of the IP header.
    pub(crate) ecn: Ecn,
    /// TCP flags in addition to the flags of the segment's kind.
    pub(crate) flags: u16,
    /// QUIC's spin bit (RFC 9000, section 17.4).
    pub(crate) spin: bool,
    /// For QUIC: additional bytes of an ACK beyond its minimum.
    pub(crate) added: u8,
    /// True if the ACK carries a PING.
    pub(crate) ping: bool,
}

impl TcpOptions {
    /// Creates options without SACK blocks, for a flow with segments of `mss` bytes.
    pub(crate) fn new(timestamps: Option<(u32, u32)>, mss: u16) -> Self {
        Self {
            timestamps,
            mss,
            ..Self::default()
        }
    }

    /// Appends a block from `start` to `end` (exclusive), in segments relative to the acknowledgement number.
    pub(crate) fn push_sack(&mut self, start: u64, end: u64) {
        if let Some(block) = self.sack.get_mut(usize::from(self.blocks)) {
            *block = (start as u32, end as u32);
            self.blocks += 1;
        }
    }

    /// The SACK blocks in segments relative to the acknowledgement number.
    pub(crate) fn blocks(&self) -> &[(u32, u32)] {
        &self.sack[..usize::from(self.blocks)]
    }

    /// Payload of the flow's segments in bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.mss.into()
    }

    /// Bytes of SACK blocks and AccECN counters in the header, padding included.
    pub(crate) fn ack_bytes(&self) -> u32 {
        let sack = match self.blocks {
            0 => 0,
            blocks => 4 + 8 * u32::from(blocks),
        };
        let accecn = self
            .accecn
            .map_or(0, |(fields, _)| 2 + 3 * u32::from(fields));
        sack + accecn.next_multiple_of(4)
    }

    /// Omits AccECN's counters if the SACK blocks leave no room, as in Linux.
    pub(crate) fn keep_what_fits(&mut self) {
        /// Maximum bytes of options in a TCP header.
        const ROOM: u32 = 40;
        let stamps = if self.timestamps.is_some() { 12 } else { 0 };
        if stamps + self.ack_bytes() > ROOM {
            self.accecn = None;
        }
    }

    /// The SACK blocks as ranges of sequence numbers.
    pub(crate) fn sack_ranges(&self, ack: u32) -> impl Iterator<Item = SackRange> {
        let byte = move |segments: u32| ack.wrapping_add(segments.wrapping_mul(self.mss.into()));
        self.blocks().iter().map(move |&(start, end)| SackRange {
            start: byte(start),
            end: byte(end),
        })
    }

    /// Copies the options into the description of an ACK.
    pub(crate) fn write_to(&self, info: &mut AckInfo) {
        info.timestamps = self.timestamps;
        info.accecn = self.accecn.map(|(fields, counters)| AccEcn {
            order: AccEcnOrder::One,
            fields,
            counters,
        });
        let ack = info.ack;
        for (slot, range) in info.sack.iter_mut().zip(self.sack_ranges(ack)) {
            *slot = range;
        }
        info.sack_ranges = self.blocks;
    }
}

impl Options for TcpOptions {
    const EXTRAS: bool = true;

    fn of(options: TcpOptions) -> Self {
        options
    }

    fn on_wire(&self) -> Option<&TcpOptions> {
        Some(self)
    }

    fn set_timestamps(&mut self, timestamps: (u32, u32)) {
        self.timestamps = Some(timestamps);
    }

    fn set_spin(&mut self, spin: bool) {
        self.spin = spin;
    }

    fn mark_ce(&mut self) -> bool {
        let capable = self.ecn.is_capable();
        if capable {
            self.ecn = Ecn::Ce;
        }
        capable
    }
}

/// The timestamp clock of a host. It wraps after at least 49 days. A run takes at most 56 hours and starts at an offset
/// of at most a day, so wraps and PAWS need no treatment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HostClock {
    tick: u64,
    offset: u64,
    /// Drift in parts per billion; positive if the clock is fast.
    drift: i64,
}

impl Default for HostClock {
    fn default() -> Self {
        Self {
            tick: 1_000_000,
            offset: 0,
            drift: 0,
        }
    }
}

impl HostClock {
    const DAY: f64 = 86_400e9;

    /// Creates a server's clock in this scenario; `fractions` returns offset and drift as fractions of their ranges.
    pub(crate) fn of_server(scenario: &Scenario, fractions: impl FnOnce() -> [f64; 2]) -> Self {
        let mut clock = Self::default();
        if let Some(tick) = scenario.clock_tick {
            clock.tick = tick.as_nanos();
        }
        if let Some(ppm) = scenario.clock_drift {
            let [offset, drift] = fractions();
            clock.offset = (offset * Self::DAY) as u64;
            clock.drift = ((2.0 * drift - 1.0) * f64::from(ppm) * 1e3) as i64;
        }
        clock
    }

    pub(crate) fn stamp(&self, now: u64) -> u32 {
        let mut local = now + self.offset;
        if self.drift != 0 {
            let gained = i128::from(now) * i128::from(self.drift) / 1_000_000_000;
            local = local.saturating_add_signed(gained as i64);
        }
        (local / self.tick) as u32
    }

    /// Returns the time at which the clock first showed `stamp`. The result is up to a microsecond early.
    pub(crate) fn time(&self, stamp: u32) -> u64 {
        let local = (u64::from(stamp) * self.tick).saturating_sub(self.offset);
        if self.drift == 0 {
            return local;
        }
        let rate = 1_000_000_000 + i128::from(self.drift);
        (i128::from(local) * 1_000_000_000 / rate) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_parses_as_printed() {
        for (tick, offset, drift) in [
            (1_000_000, 0, 0),
            (1_000_000, 86_399_000_000_000, 50_000),
            (10_000_000, 123_456_789, -50_000),
        ] {
            let clock = HostClock {
                tick,
                offset,
                drift,
            };
            for now in [0, 20_000_000, 3_600_000_000_000] {
                let read = clock.time(clock.stamp(now));
                assert!(
                    read <= now && now - read <= tick + 1000,
                    "{clock:?} {now} {read}"
                );
            }
        }
    }
}
