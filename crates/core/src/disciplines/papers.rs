//! The papers' mechanisms, each a short composition to hold against its text.

use super::composition::{AckHold, Buffer, Composition, ControllerKind, RedOn, ServiceKind};
use crate::classify::Classifier;
use crate::parts::controller::aq::AqParams;
use crate::parts::controller::gradient::{DownloadMeter, Gradient, GradientParams, Utility};
use crate::parts::service::CreditPer;
use crate::parts::{RedParams, Thinning, ThinningBounds};
use crate::units::{Duration, Limit, Rate};

/// The link that a discipline stands at, and the buffer it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entry {
    /// Capacity of this link.
    pub link: Rate,
    /// Capacity of the opposite direction.
    pub opposite: Rate,
    /// The most that may wait, in each queue where a mechanism has two.
    pub limit: Limit,
    /// Which packets are ACKs.
    pub classifier: Classifier,
}

impl Entry {
    /// One FIFO for both classes: DropTail as a machine.
    pub const fn fifo(self) -> Composition {
        Composition {
            link: self.link,
            opposite: self.opposite,
            classifier: self.classifier,
            ack: AckHold::Fifo,
            red: RedOn::Nothing,
            service: ServiceKind::Shared,
            controller: ControllerKind::Fixed,
            buffer: Buffer::Shared(self.limit),
        }
    }

    /// A queue for ACKs and one for data.
    const fn two_queues(self, service: ServiceKind) -> Composition {
        Composition {
            service,
            buffer: Buffer::Separate {
                ack: self.limit,
                data: self.limit,
            },
            ..self.fifo()
        }
    }

    fn red(self) -> RedParams {
        let (packets, bytes) = match self.limit {
            Limit::Packets(packets) => (f64::from(packets), 1500),
            Limit::Bytes(bytes) => (bytes as f64 / 1500.0, 1500),
        };
        RedParams::for_limit(packets, self.link.tx_time(bytes))
    }

    /// AQ (paper 000): service and buffer in the ratio of eq. 7, recomputed every `T`.
    pub const fn aq(self, params: AqParams) -> Composition {
        Composition {
            controller: ControllerKind::Aq(params),
            buffer: Buffer::InRatio(self.limit),
            ..self.two_queues(ServiceKind::Weighted(0.5))
        }
    }

    /// ACKs first (RFC 3449 section 5.4.2; paper 003).
    pub const fn acks_first(self) -> Composition {
        self.two_queues(ServiceKind::AcksFirst)
    }

    /// AFVQ (paper 001): ACKs first, and an ACK queue whose limit falls as data queues up, from the
    /// ACKs that arrive while one data packet is transmitted. `docs/afvq.md` derives the rule.
    pub fn afvq(self, data_per_ack: f64) -> Composition {
        let ratio = self.opposite.bits_per_sec() as f64 / self.link.bits_per_sec() as f64;
        let acks_per_data_packet = ratio / data_per_ack.max(1.0) + 0.999;
        Composition {
            controller: ControllerKind::AckLimit((acks_per_data_packet as u32).max(1)),
            ..self.acks_first()
        }
    }

    /// PRR (paper 003): one packet of each class in turn.
    pub const fn prr(self) -> Composition {
        self.two_queues(ServiceKind::RoundRobin)
    }

    /// WRR (papers 002, 003) with data's share `g`; what one class leaves the other takes.
    pub const fn wrr(self, data_share: f64) -> Composition {
        self.two_queues(ServiceKind::Weighted(data_share))
    }

    /// CBQ (papers 002, 004) with data's share `g`; no borrowing.
    pub const fn cbq(self, data_share: f64) -> Composition {
        self.two_queues(ServiceKind::Paced(data_share))
    }

    /// ACQ (paper 002, section 3): CBQ whose share climbs the gradient of eq. 1; `T` = 10 s and
    /// `gamma` = 50 (kbit/s)^2 "in the rest of this paper".
    pub const fn acq(self) -> Composition {
        self.gradient(Duration::from_secs(10), 50.0, DownloadMeter::AckedBytes)
    }

    /// DCBQ (paper 003): the same with `T` = 5 s, `gamma` = 10, and a download that is measured by
    /// the number of ACKs, eq. 3. With delayed ACKs (E-DCBQ) one stands for two packets.
    pub const fn dcbq(self, data_size: f64, data_per_ack: f64) -> Composition {
        let meter = DownloadMeter::PerAck(data_size * data_per_ack);
        self.gradient(Duration::from_secs(5), 10.0, meter)
    }

    const fn gradient(self, interval: Duration, gamma: f64, meter: DownloadMeter) -> Composition {
        let params = GradientParams {
            up: self.link,
            down: self.opposite,
            interval,
            gamma,
            utility: Utility::Utilization,
            meter,
        };
        Composition {
            controller: ControllerKind::Gradient(params),
            ..self.cbq(Gradient::INITIAL_SHARE)
        }
    }

    /// VAQ (paper 002, section 4): credit, and queues of 10 ACKs and 100 data packets.
    pub const fn vaq(self, per: CreditPer) -> Composition {
        Composition {
            buffer: Buffer::Separate {
                ack: Limit::Packets(10),
                data: Limit::Packets(100),
            },
            ..self.two_queues(ServiceKind::Credit(per))
        }
    }

    /// AF in the shared FIFO (RFC 3449 section 5.2.1; paper 002's FIFO with AF).
    pub fn af(self) -> Composition {
        Composition {
            ack: AckHold::Thinned(Thinning::Filter, ThinningBounds::default()),
            ..self.fifo()
        }
    }

    /// SAD in a queue of its own (paper 004, section 3), served first: it holds one ACK per flow.
    pub fn sad(self) -> Composition {
        Composition {
            ack: AckHold::Thinned(Thinning::Slot, ThinningBounds::default()),
            ..self.acks_first()
        }
    }

    /// SAD under CBQ with data's share `g` (paper 004, section 4.2).
    pub fn sad_cbq(self, data_share: f64) -> Composition {
        Composition {
            ack: self.sad().ack,
            ..self.cbq(data_share)
        }
    }

    /// ACQ with AF in its ACK queue (paper 002, section 3.3.3).
    pub fn acq_af(self) -> Composition {
        Composition {
            ack: self.af().ack,
            ..self.acq()
        }
    }

    /// CBQ with AF in its ACK queue (paper 002, section 3.3.3).
    pub fn cbq_af(self, data_share: f64) -> Composition {
        Composition {
            ack: self.af().ack,
            ..self.cbq(data_share)
        }
    }

    /// RED on data in the shared FIFO.
    pub fn red_on_data(self) -> Composition {
        Composition {
            red: RedOn::Data(self.red()),
            ..self.fifo()
        }
    }

    /// ACC's gateway (RFC 3449 section 4.3): RED on data and ACKs alike.
    pub fn acc(self) -> Composition {
        Composition {
            red: RedOn::All(self.red()),
            ..self.fifo()
        }
    }
}
