//! RACK (RFC 8985, section 6): a segment is lost when a later one has arrived and the reordering window has passed.

/// Minimum number of SACKed segments that excludes reordering (`DupThresh`).
const THRESHOLD: u64 = 3;
/// Number of recoveries after which the reordering window shrinks again (section 6.2, step 4).
const PERSIST: u32 = 16;

/// State of RACK: observed reordering, and the delivered segment that was sent last. Times are in ns.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Rack {
    /// Send time and number of the delivered segment that was sent last (`RACK.xmit_ts`, `RACK.end_seq`).
    newest: (u64, u64),
    /// Round-trip time of the segment delivered last.
    rtt: u64,
    /// The highest segment delivered (`RACK.fack`).
    highest: u64,
    reordering_seen: bool,
    /// `RACK.reo_wnd_mult` minus one.
    wider: u64,
    /// Number of further recoveries before the window shrinks again (`RACK.reo_wnd_persist`).
    persist: u32,
    /// Further DSACKs are ignored until this segment number is acknowledged (`RACK.dsack_round`).
    dsack_round: u64,
}

impl Rack {
    /// Steps 2 and 3: segment `number`, sent at `sent`, was delivered at `now`. `again` is true for a retransmission.
    pub(super) fn on_delivered(
        &mut self,
        now: u64,
        number: u64,
        (sent, again): (u64, bool),
        min_rtt: u64,
    ) {
        self.highest = self.highest.max(number);
        self.reordering_seen |= number < self.highest && !again;
        // An ACK within less than the minimum round-trip time is for an earlier transmission.
        if again && now - sent < min_rtt {
            return;
        }
        self.rtt = now - sent;
        self.newest = self.newest.max((sent, number));
    }

    /// Step 4: processes an ACK up to `una` that reports a duplicate segment; `end` is the next number to send.
    pub(super) fn on_duplicate(&mut self, una: u64, end: u64) {
        if una >= self.dsack_round {
            self.dsack_round = end;
            self.wider = (self.wider + 1).min(254);
            self.persist = PERSIST;
        }
    }

    /// Step 4: processes the end of a recovery.
    pub(super) fn on_recovered(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.wider = 0;
        }
    }

    /// Returns the reordering window in ns. If no reordering was seen, the window is 0 while `recovering`, or if at
    /// least three segments are `sacked`.
    pub(super) fn window(&self, recovering: bool, sacked: u64, min_rtt: u64, srtt: u64) -> u64 {
        if !self.reordering_seen && (recovering || sacked >= THRESHOLD) {
            return 0;
        }
        ((self.wider + 1) * min_rtt / 4).min(srtt)
    }

    /// Step 5: returns the time at which segment `number`, sent at `sent`, starts to count as lost. `None` if no
    /// segment sent later has arrived.
    pub(super) fn lost_at(&self, number: u64, sent: u64, window: u64) -> Option<u64> {
        ((sent, number) < self.newest).then(|| self.expires(sent, window))
    }

    /// Returns the time at which a segment sent at `sent` should have arrived.
    pub(super) fn expires(&self, sent: u64, window: u64) -> u64 {
        sent + self.rtt + window
    }
}
