//! AQ: the capacities less the measured non-TCP rates (paper 000, section 3).

use crate::model::{AckDemand, Capacities, OutOfReach};
use crate::packet::{Header, Protocol};
use crate::units::{Duration, Instant, Rate};

/// What AQ does where the capacities themselves violate eq. 11, so that no ratio would fill both
/// directions. (Where only a *measurement* violates it, the last valid ratio stays in force: the
/// paper reports full links at UDP rates that no other rule explains, section 4.8.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BeyondLimit {
    /// Half the uplink for each class. ACKs are lost, but they are cumulative: the download keeps
    /// most of its rate and the upload its half.
    #[default]
    EqualShares,
    /// ACKs are served only when no data waits, and one place is kept for them. What the paper's
    /// implementation must have done: Figs. 5 and 6 show a full upload and no download.
    StarveAcks,
}

/// How many data packets one ACK stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DataPerAck {
    /// As given, at least 1: 1 without delayed ACKs, 2 with RFC 5681's.
    Given(f64),
    /// Counted in every interval: TCP data packets down over ACKs up.
    Measured,
}

/// AQ's four parameters, its interval, and the two choices that the paper leaves open.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AqParams {
    /// Uplink capacity, the paper's `C_u`.
    pub up: Rate,
    /// Downlink capacity, the paper's `C_d`.
    pub down: Rate,
    /// Bytes of an ACK as charged to the link, `S_A`.
    pub ack_size: u32,
    /// Bytes of a full data packet as charged to the link, `S_D`.
    pub data_size: u32,
    /// Data packets per ACK.
    pub data_per_ack: DataPerAck,
    /// How often the ratio is recomputed, `T`.
    pub interval: Duration,
    /// What to do where eq. 11 fails.
    pub beyond_limit: BeyondLimit,
}

impl AqParams {
    /// The paper's defaults for a link: 40 and 1500 bytes, one ACK per packet, 200 ms.
    pub const fn new(up: Rate, down: Rate) -> Self {
        Self {
            up,
            down,
            ack_size: 40,
            data_size: 1500,
            data_per_ack: DataPerAck::Given(1.0),
            interval: Duration::from_millis(200),
            beyond_limit: BeyondLimit::EqualShares,
        }
    }

    /// The share of the uplink that is data's when nothing but TCP flows and nothing is measured.
    ///
    /// # Errors
    /// Eq. 11 fails for these capacities and sizes.
    pub fn static_data_share(&self) -> Result<f64, OutOfReach> {
        let data_per_ack = match self.data_per_ack {
            DataPerAck::Given(packets) => packets,
            DataPerAck::Measured => 1.0,
        };
        self.data_share(self.capacities(0.0, 0.0), data_per_ack)
    }

    fn capacities(&self, non_tcp_up: f64, non_tcp_down: f64) -> Capacities {
        Capacities {
            up: self.up.bits_per_sec() as f64 - non_tcp_up,
            down: self.down.bits_per_sec() as f64 - non_tcp_down,
        }
    }

    fn data_share(&self, capacities: Capacities, data_per_ack: f64) -> Result<f64, OutOfReach> {
        let demand = AckDemand::new(self.ack_size, self.data_size, data_per_ack);
        Ok(capacities.full_rates(demand, demand)?.data_share())
    }
}

/// The controller: meters the traffic of one interval, and answers with a new share at its end.
#[derive(Clone, Debug)]
pub struct AqController {
    params: AqParams,
    interval_start: Instant,
    interval_end: Instant,
    non_tcp_up_bytes: u64,
    non_tcp_down_bytes: u64,
    acks_up: u64,
    data_packets_down: u64,
    data_per_ack: f64,
    last_valid_share: Option<f64>,
}

impl AqController {
    /// A controller, and the share of the link that the data class starts with.
    pub fn new(params: AqParams) -> (Self, f64) {
        let share = params.static_data_share().ok();
        let controller = Self {
            params,
            interval_start: Instant::ZERO,
            interval_end: Instant::ZERO,
            non_tcp_up_bytes: 0,
            non_tcp_down_bytes: 0,
            acks_up: 0,
            data_packets_down: 0,
            data_per_ack: match params.data_per_ack {
                DataPerAck::Given(packets) => packets,
                DataPerAck::Measured => 1.0,
            },
            last_valid_share: share,
        };
        let share = controller.share_in_force();
        (controller, share)
    }

    /// The parameters in force.
    pub fn params(&self) -> &AqParams {
        &self.params
    }

    /// Data packets per ACK, as given or as last measured.
    pub fn data_per_ack(&self) -> f64 {
        self.data_per_ack
    }

    /// Meters a packet offered to the uplink.
    #[inline]
    pub fn meter_up(&mut self, header: &Header, is_ack: bool) {
        if is_ack {
            self.acks_up += 1;
        } else if header.protocol != Protocol::Tcp {
            self.non_tcp_up_bytes += u64::from(header.len);
        }
    }

    /// Meters a packet crossing on the downlink.
    #[inline]
    pub fn meter_down(&mut self, header: &Header) {
        if header.protocol != Protocol::Tcp {
            self.non_tcp_down_bytes += u64::from(header.len);
        } else if header.is_tcp_data() {
            self.data_packets_down += 1;
        }
    }

    /// The data class's new share if an interval has ended at `now`. Costs a comparison otherwise.
    #[inline]
    pub fn tick(&mut self, now: Instant) -> Option<f64> {
        if now < self.interval_end {
            return None;
        }
        Some(self.end_interval(now))
    }

    fn end_interval(&mut self, now: Instant) -> f64 {
        let elapsed = now.saturating_since(self.interval_start).as_secs_f64();
        // The first call only starts the clock: its epoch is the caller's, not ours.
        if self.interval_end > Instant::ZERO && elapsed > 0.0 {
            self.update_data_per_ack();
            let rate = |bytes: u64| bytes as f64 * 8.0 / elapsed;
            let capacities = self
                .params
                .capacities(rate(self.non_tcp_up_bytes), rate(self.non_tcp_down_bytes));
            if let Ok(share) = self.params.data_share(capacities, self.data_per_ack) {
                self.last_valid_share = Some(share);
            }
        }
        self.interval_start = now;
        self.interval_end = now + self.params.interval;
        (self.non_tcp_up_bytes, self.non_tcp_down_bytes) = (0, 0);
        (self.acks_up, self.data_packets_down) = (0, 0);
        self.share_in_force()
    }

    /// Moves a quarter of the way to what the interval showed; an interval with few ACKs shows
    /// nothing. Lost data or a starved ACK class can only bend the count, so it is bounded.
    fn update_data_per_ack(&mut self) {
        const ENOUGH_ACKS: u64 = 8;
        const MOST_DATA_PER_ACK: f64 = 64.0;
        if self.params.data_per_ack == DataPerAck::Measured && self.acks_up >= ENOUGH_ACKS {
            let seen = self.data_packets_down as f64 / self.acks_up as f64;
            self.data_per_ack += (seen.clamp(1.0, MOST_DATA_PER_ACK) - self.data_per_ack) / 4.0;
        }
    }

    fn share_in_force(&self) -> f64 {
        self.last_valid_share
            .unwrap_or(match self.params.beyond_limit {
                BeyondLimit::EqualShares => 0.5,
                BeyondLimit::StarveAcks => 1.0,
            })
    }
}
