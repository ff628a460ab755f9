//! The papers' equations as functions; rates in bit/s, sizes in bytes.
//!
//! These are AQ's equations and the AMP model of the SAD paper ([`Amp`]); `docs/notes/papers.md` lists the references.

use crate::decide::overhead::Overhead;

crate::named! {
    /// Reason why no pair of rates fills both directions.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum OutOfReach {
        /// The downloads' ACKs need more than the uplink: AQ's eq. 11 does not hold.
        AcksOverloadUplink = "the downloads' ACKs alone need more than the uplink (eq. 11)",
        /// The uploads' ACKs need more than the downlink.
        AcksOverloadDownlink = "the uploads' ACKs alone need more than the downlink",
        /// A capacity is zero or negative: other traffic uses all of it.
        NoCapacity = "other traffic leaves no capacity",
    }
}

crate::show_by_name!(OutOfReach);

impl core::error::Error for OutOfReach {}

/// Bytes of ACKs in one direction per byte of data in the other direction.
///
/// If every packet is acknowledged, this is the paper's `r_s = S_A / S_D` (eq. 8). With `d` packets per ACK, `r_s / d`
/// replaces `r_s` in eqs. 3 and 4 and in all results from them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AckDemand(f64);

impl AckDemand {
    /// Computes the demand from the sizes of an ACK and a data packet, and the data packets per ACK (at least 1).
    pub fn new(ack_size: u32, data_size: u32, data_per_ack: f64) -> Self {
        let data_bytes = f64::from(data_size.max(1)) * data_per_ack.max(1.0);
        Self(f64::from(ack_size) / data_bytes)
    }

    /// Returns the bytes of ACKs per byte of data.
    pub const fn ratio(self) -> f64 {
        self.0
    }
}

/// Remaining capacity for TCP in each direction, in bit/s (`C_u - R_u^U` and `C_d - R_d^U`, eq. 10).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacities {
    /// Remaining uplink capacity in bit/s.
    pub up: f64,
    /// Remaining downlink capacity in bit/s.
    pub down: f64,
}

/// The four rates at which both directions are full, in bit/s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FullRates {
    /// Data up, `R_D`.
    pub data_up: f64,
    /// ACKs up, `R_A`.
    pub ack_up: f64,
    /// Data down, `R'_D`.
    pub data_down: f64,
    /// ACKs down, `R'_A`.
    pub ack_down: f64,
}

impl FullRates {
    /// The service ratio `R_D / R_A` (eqs. 7 and 9).
    pub fn ratio(&self) -> f64 {
        self.data_up / self.ack_up
    }

    /// Data's share of the uplink, `R_D / (R_D + R_A)`.
    pub fn data_share(&self) -> f64 {
        self.data_up / (self.data_up + self.ack_up)
    }
}

impl Capacities {
    /// Solves eqs. 1 to 4 for the four rates. Eqs. 5 and 6 do the same with one ACK demand for both directions.
    ///
    /// `download` is the ACK demand of the downloads, whose ACKs go up; `upload` is the ACK demand of the uploads.
    ///
    /// # Errors
    /// A rate would not be positive; see [`OutOfReach`].
    pub fn full_rates(
        self,
        download: AckDemand,
        upload: AckDemand,
    ) -> Result<FullRates, OutOfReach> {
        if !(self.up > 0.0 && self.down > 0.0) {
            return Err(OutOfReach::NoCapacity);
        }
        let determinant = 1.0 - download.0 * upload.0;
        let data_up = (self.up - download.0 * self.down) / determinant;
        let data_down = (self.down - upload.0 * self.up) / determinant;
        // The rate is NaN if the product of both demands is 1.
        if data_up <= 0.0 || data_up.is_nan() {
            return Err(OutOfReach::AcksOverloadUplink);
        }
        if data_down <= 0.0 {
            return Err(OutOfReach::AcksOverloadDownlink);
        }
        Ok(FullRates {
            data_up,
            ack_up: data_down * download.0,
            data_down,
            ack_down: data_up * upload.0,
        })
    }

    /// Returns the minimum uplink rate at which eq. 11 holds for this downlink, in bit/s.
    pub fn least_uplink(self, download: AckDemand) -> f64 {
        self.down * download.0
    }

    /// Returns the normalized asymmetry `k` (RFC 3449, sec. 3; DCBQ, eq. 1). Above 1, the ACKs of a full download
    /// exceed the uplink.
    pub fn normalized_asymmetry(self, download: AckDemand) -> f64 {
        self.down / self.up * download.0
    }
}

/// Input of the AMP model (SAD, sec. 2): a link whose classes use their full shares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amp {
    /// `C_r` and `C_f` in bit/s.
    pub capacities: Capacities,
    /// Bytes of an ACK, `P_ack`.
    pub ack_size: u32,
    /// Bytes of a packet, `P`.
    pub packet_size: u32,
    /// `M`: packets that one ACK releases.
    pub packets_per_ack: f64,
    /// `g`: data's share of the reverse link, 0 to 1.
    pub reverse_share: f64,
    /// `f`: data's share of the forward link, 0 to 1.
    pub forward_share: f64,
}

/// Maximum rates of one channel, per second (SAD, sec. 2, table).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// Maximum number of packets.
    pub packets: f64,
    /// Maximum number of ACKs.
    pub acks: f64,
}

impl Amp {
    /// `A`: number of ACKs that the reverse link carries per second.
    pub fn acks(&self) -> f64 {
        (1.0 - self.reverse_share) * self.capacities.up / bits(self.ack_size)
    }

    /// `F`: capacity of the forward link for data, in bit/s.
    pub fn forward(&self) -> f64 {
        self.forward_share * self.capacities.down
    }

    /// Maximum forward throughput, `min(F, A M P)`, in bit/s.
    pub fn throughput(&self) -> f64 {
        let released = self.acks() * self.packets_per_ack * bits(self.packet_size);
        self.forward().min(released)
    }

    /// Bounds of the reverse channel.
    pub fn reverse_bound(&self) -> Bound {
        Bound {
            packets: self.reverse_share * self.capacities.up / bits(self.packet_size),
            acks: self.acks(),
        }
    }

    /// Bounds of the forward channel, as in the paper's table. The sentence above the table uses `1 - f` instead of `f`
    /// for the ACKs' share. With either share, the reverse packets bound the number of ACKs.
    pub fn forward_bound(&self) -> Bound {
        let acks = self.forward() / bits(self.ack_size);
        Bound {
            packets: self.throughput() / bits(self.packet_size),
            acks: acks.min(self.reverse_bound().packets),
        }
    }

    /// Normalized asymmetry `K` of the link with this overhead.
    pub fn asymmetry(&self, overhead: &Overhead) -> f64 {
        let [ack, packet] = [self.ack_size, self.packet_size].map(|size| overhead.charge_len(size));
        self.capacities
            .normalized_asymmetry(AckDemand::new(ack, packet, 1.0))
    }
}

fn bits(bytes: u32) -> f64 {
    f64::from(bytes.max(1)) * 8.0
}

/// Returns the maximum queueing delay under DropTail in seconds (eq. 12): a full buffer of `buffer` bytes, drained at
/// `rate` bit/s. For the buffer `B_D` and the rate `R_D`, the result is the delay of data under AQ (eq. 13).
pub fn worst_delay(buffer: f64, rate: f64) -> f64 {
    buffer * 8.0 / rate
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The link of most figures in AQ, sec. 4.
    const AQ: Capacities = Capacities {
        up: 1e6,
        down: 10e6,
    };

    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!(
            (value - expected).abs() <= tolerance,
            "{value} is not {expected}"
        );
    }

    #[test]
    fn rates_fill_both_directions() {
        let demand = AckDemand::new(40, 1500, 1.0);
        let rates = AQ.full_rates(demand, demand).unwrap();
        near(rates.data_up + rates.ack_up, 1e6, 1e-3); // eq. 1
        near(rates.data_down + rates.ack_down, 10e6, 1e-3); // eq. 2
        near(rates.ack_up, rates.data_down * 40.0 / 1500.0, 1e-3); // eq. 3
        near(rates.ack_down, rates.data_up * 40.0 / 1500.0, 1e-3); // eq. 4
    }

    #[test]
    fn ratio_is_the_papers_closed_form() {
        // Eq. 7 with r_c = 0.1 and r_s = 40/1500; Fig. 7 converges to 73 % and 27 %.
        let demand = AckDemand::new(40, 1500, 1.0);
        let rates = AQ.full_rates(demand, demand).unwrap();
        let (rc, rs) = (0.1, 40.0 / 1500.0);
        near(rates.ratio(), (rc - rs) / ((1.0 - rc * rs) * rs), 1e-9);
        near(rates.data_share(), 0.73, 0.005);
    }

    #[test]
    fn delayed_acks_halve_the_demand() {
        near(AckDemand::new(40, 1500, 2.0).ratio(), 20.0 / 1500.0, 1e-12);
    }

    #[test]
    fn equation_11_bounds_the_links_that_can_be_filled() {
        let demand = AckDemand::new(40, 1500, 1.0);
        let at = |up: f64| Capacities { up, down: 10e6 }.full_rates(demand, demand);
        assert_eq!(at(256e3), Err(OutOfReach::AcksOverloadUplink)); // Fig. 5's collapse
        assert!(at(267e3).is_ok()); // "no smaller than 0.027"
        near(AQ.least_uplink(demand), 266_667.0, 1.0);
        // Fig. 6: 360-byte segments are 400-byte packets, just at the edge of 1/10.
        assert!(AQ.full_rates(AckDemand::new(40, 400, 1.0), demand).is_err());
        assert!(AQ.full_rates(AckDemand::new(40, 401, 1.0), demand).is_ok());
    }

    #[test]
    fn no_capacity_is_out_of_reach() {
        let demand = AckDemand::new(40, 1500, 1.0);
        for (up, down) in [(0.0, 1e6), (1e6, 0.0), (-1.0, 1e6), (f64::NAN, 1e6)] {
            assert_eq!(
                Capacities { up, down }.full_rates(demand, demand),
                Err(OutOfReach::NoCapacity)
            );
        }
    }

    #[test]
    fn acks_as_large_as_data_fill_no_equal_links() {
        let equal = Capacities { up: 1e6, down: 1e6 };
        let demand = AckDemand::new(1500, 1500, 1.0);
        assert!(equal.full_rates(demand, demand).is_err());
    }

    #[test]
    fn normalized_asymmetry_is_the_published_one() {
        // DCBQ, sec. 2: 10 Mbit/s over 100 kbit/s, 1000 and 40 bytes: k = 4.
        near(
            Capacities { up: 1e5, down: 1e7 }.normalized_asymmetry(AckDemand::new(40, 1000, 1.0)),
            4.0,
            1e-9,
        );
        // SAD, Table 1: 8 Mbit/s over 64 kbit/s: k = 5.
        near(
            Capacities {
                up: 64e3,
                down: 8e6,
            }
            .normalized_asymmetry(AckDemand::new(40, 1000, 1.0)),
            5.0,
            1e-9,
        );
    }

    /// SAD's link: 8 Mbit/s down, packets of 1000 bytes, ACKs of 40.
    const fn amp(up: f64) -> Amp {
        Amp {
            capacities: Capacities { up, down: 8e6 },
            ack_size: 40,
            packet_size: 1000,
            packets_per_ack: 1.0,
            reverse_share: 0.0,
            forward_share: 1.0,
        }
    }

    #[test]
    fn amp_gives_the_papers_example() {
        // SAD, sec. 2: 64 kbit/s carry 200 ACKs/s; 3.2 Mbit/s in slow start, 1.6 Mbit/s else.
        near(amp(64e3).acks(), 200.0, 1e-9);
        near(amp(64e3).throughput(), 1.6e6, 1e-3);
        let slow_start = Amp {
            packets_per_ack: 2.0,
            ..amp(64e3)
        };
        near(slow_start.throughput(), 3.2e6, 1e-3);
        near(amp(784e3).throughput(), 8e6, 1e-3); // F
    }

    #[test]
    fn amps_k_is_that_of_table_1() {
        for (up, k) in [
            (64e3, 5.0),
            (128e3, 2.5),
            (256e3, 1.25),
            (640e3, 0.5),
            (784e3, 0.41),
        ] {
            near(amp(up).asymmetry(&Overhead::default()), k, 0.005);
        }
    }

    #[test]
    fn atm_changes_k_by_16_percent_as_in_table_6() {
        for (up, plain, atm) in [(64e3, 4.88, 5.64), (128e3, 2.42, 2.8), (256e3, 1.21, 1.4)] {
            let amp = Amp {
                packet_size: 1024,
                ..amp(up)
            };
            let change = amp.asymmetry(&Overhead::AAL5) / amp.asymmetry(&Overhead::default()) - 1.0;
            near(amp.asymmetry(&Overhead::default()), plain, 0.03);
            near(amp.asymmetry(&Overhead::AAL5), atm, 0.05);
            near(change, 0.16, 0.005);
            // With LLC an ACK no longer fits one cell: 2 cells of 23 instead of 1 of 22.
            near(
                amp.asymmetry(&Overhead::AAL5_LLC) / amp.asymmetry(&Overhead::AAL5),
                2.0 * 22.0 / 22.0,
                0.1,
            );
        }
        assert_eq!(Overhead::AAL5.charge_len(40), 53);
        assert_eq!(Overhead::AAL5_LLC.charge_len(40), 106);
        assert_eq!(Overhead::AAL5.charge_len(1024), 22 * 53);
    }

    #[test]
    fn amps_bounds_are_those_of_the_table_of_section_2() {
        let amp = Amp {
            packets_per_ack: 1.5,
            reverse_share: 0.75,
            forward_share: 0.99,
            ..amp(256e3)
        };
        // g C_r / P = 0.75 * 256000 / 8000, (1 - g) C_r / P_ack = 64000 / 320.
        near(amp.reverse_bound().packets, 24.0, 1e-9);
        near(amp.reverse_bound().acks, 200.0, 1e-9);
        // min((1 - g) C_r M / P_ack, f C_f / P) = min(300, 990); ACKs min(24750, 24).
        near(amp.forward_bound().packets, 300.0, 1e-9);
        near(amp.forward_bound().acks, 24.0, 1e-9);
    }

    #[test]
    fn aq_delays_data_no_longer_than_droptail() {
        // Eq. 17: with the buffer split in the ratio of the rates the delays are equal.
        let demand = AckDemand::new(40, 1500, 1.0);
        let rates = AQ.full_rates(demand, demand).unwrap();
        let buffer = 75_000.0;
        near(
            worst_delay(buffer * rates.data_share(), rates.data_up),
            worst_delay(buffer, 1e6),
            1e-9,
        );
    }
}
