//! AQ: solves the paper's equations, with measured non-TCP rates subtracted from the capacities (AQ, sec. 3).

use super::model::{AckDemand, Capacities, OutOfReach};
use crate::decide::control::{Controller, Needs, Settings, Signals, Step};
use crate::{Duration, Instant, Probe, Rate, Reading, Share};

/// Behaviour of AQ if the capacities violate eq. 11, so that no ratio fills both directions. If only a *measurement*
/// violates eq. 11, AQ continues to use the last valid ratio. Only this rule explains why the paper's links are full at
/// high UDP rates (sec. 4.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BeyondLimit {
    /// Half of the uplink for each class. ACKs are lost, but they are cumulative: the download keeps most of its rate,
    /// and the upload gets half of the uplink.
    EqualShares,
    /// The buffer has room for only one ACK, and ACKs are served only while the data queue is empty. The paper's
    /// implementation probably did this: Figs. 5 and 6 show a full upload and no download.
    StarveAcks,
}

/// Data packets per ACK.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DataPerAck {
    /// A fixed number, at least 1: 1 without delayed ACKs, 2 with delayed ACKs (RFC 5681).
    Given(f64),
    /// Measured in each interval: TCP data packets down divided by ACKs up.
    Measured,
}

impl DataPerAck {
    /// Returns the number before any measurement.
    pub const fn initial(self) -> f64 {
        match self {
            Self::Given(packets) => packets,
            Self::Measured => 1.0,
        }
    }
}

/// Parameters of AQ, with the paper's symbols.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AqParams {
    /// Uplink capacity, the paper's `C_u`.
    pub up: Rate,
    /// True if `up` follows changes of the link's rate.
    pub up_follows: bool,
    /// Downlink capacity, the paper's `C_d`.
    pub down: Rate,
    /// Size of an ACK on the link in bytes, `S_A`.
    pub ack_size: u32,
    /// Size of a full data packet on the link in bytes, `S_D`.
    pub data_size: u32,
    /// Data packets per ACK.
    pub data_per_ack: DataPerAck,
    /// Interval at which the ratio is recomputed, `T`.
    pub interval: Duration,
    /// Behaviour if eq. 11 does not hold.
    pub beyond_limit: BeyondLimit,
}

impl AqParams {
    /// Returns the data class's share of the uplink before any measurement, if all traffic is TCP.
    ///
    /// # Errors
    /// Eq. 11 does not hold for these capacities and sizes.
    pub fn static_data_share(&self) -> Result<f64, OutOfReach> {
        self.data_share(self.capacities(0.0, 0.0), self.data_per_ack.initial())
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

/// The controller: computes a new share at the end of every interval.
#[derive(Clone, Debug)]
pub struct AqController {
    params: AqParams,
    data_per_ack: f64,
    last_valid_share: Option<f64>,
}

impl AqController {
    /// Creates a controller without measurements.
    pub fn new(params: AqParams) -> Self {
        Self {
            params,
            data_per_ack: params.data_per_ack.initial(),
            last_valid_share: params.static_data_share().ok(),
        }
    }

    /// Returns the data class's current share.
    pub fn data_share(&self) -> Share {
        let share = self
            .last_valid_share
            .unwrap_or(match self.params.beyond_limit {
                BeyondLimit::EqualShares => 0.5,
                BeyondLimit::StarveAcks => 1.0,
            });
        Share::from_f64(share)
    }

    /// Recomputes the share, with the measured non-TCP traffic taken off the capacities (eqs. 9 and 10).
    fn measure(&mut self, signals: &Signals) {
        let elapsed = signals.elapsed.as_secs_f64();
        if elapsed <= 0.0 {
            return;
        }
        self.update_data_per_ack(signals);
        let rate = |bytes: u64| bytes as f64 * 8.0 / elapsed;
        let (up, down) = (signals.arrived.non_tcp.bytes, signals.reverse.non_tcp.bytes);
        let capacities = self.params.capacities(rate(up), rate(down));
        if let Ok(share) = self.params.data_share(capacities, self.data_per_ack) {
            self.last_valid_share = Some(share);
        }
    }

    /// Moves the estimate a quarter of the way to the interval's value. Skips intervals with few ACKs. Bounds the
    /// value, because lost data and a starved ACK class distort it.
    fn update_data_per_ack(&mut self, signals: &Signals) {
        const MIN_ACKS: u64 = 8;
        const MAX_DATA_PER_ACK: f64 = 64.0;
        let acks = signals.arrived.acks.packets;
        if self.params.data_per_ack == DataPerAck::Measured && acks >= MIN_ACKS {
            let seen = signals.reverse.tcp_data.packets as f64 / acks as f64;
            self.data_per_ack += (seen.clamp(1.0, MAX_DATA_PER_ACK) - self.data_per_ack) / 4.0;
        }
    }
}

impl Controller for AqController {
    fn step(&mut self, now: Instant, signals: &Signals) -> Step {
        self.measure(signals);
        Step {
            settings: Settings {
                data_share: Some(self.data_share()),
                ..Settings::default()
            },
            next: now + self.params.interval,
        }
    }

    fn set_rates(&mut self, link: Rate, reverse: Option<Rate>) {
        if self.params.up_follows {
            self.params.up = link;
        }
        self.params.down = reverse.unwrap_or(self.params.down);
    }

    fn needs(&self) -> Needs {
        Needs {
            reverse: true,
            ..Needs::default()
        }
    }

    fn probe(&self, show: &mut Probe<'_>) {
        show("data_per_ack", Reading::Real(self.data_per_ack));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl AqParams {
        /// The paper's defaults: ACKs of 40 bytes, packets of 1500 bytes, one ACK per packet, an interval of 200 ms.
        const fn new(up: Rate, down: Rate) -> Self {
            Self {
                up,
                up_follows: true,
                down,
                ack_size: 40,
                data_size: 1500,
                data_per_ack: DataPerAck::Given(1.0),
                interval: Duration::from_millis(200),
                beyond_limit: BeyondLimit::EqualShares,
            }
        }
    }

    #[test]
    fn shares_follow_the_links_rate_unless_the_configured_rate_is_given() {
        let rates = ["1mbit", "2mbit", "10mbit"].map(|rate| rate.parse().unwrap());
        let [slow, fast, down] = rates;
        let one_second = Signals {
            elapsed: Duration::from_secs(1),
            ..Signals::default()
        };
        for (up_follows, expected) in [(true, fast), (false, slow)] {
            let mut aq = AqController::new(AqParams {
                up_follows,
                ..AqParams::new(slow, down)
            });
            aq.set_rates(fast, None);
            aq.step(Instant::ZERO, &one_second);
            let new = AqController::new(AqParams::new(expected, down));
            assert_eq!(aq.data_share(), new.data_share());
        }
    }
}
