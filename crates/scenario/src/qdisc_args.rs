//! The parameters of disciplines as typed.

use crate::QdiscName;
use crate::qdisc_words::{
    AckQueueName, BeyondLimitName, ClassifierName, ControllerName, CreditName, DataPerAckArg,
    ServiceName, Share, UtilityArg,
};
use asymq_core::classify::Classifier;
use asymq_core::disciplines::{AckHold, Buffer, Composition, ControllerKind, Entry, ServiceKind};
use asymq_core::parts::aq::{AqParams, DataPerAck};
use asymq_core::parts::service::CreditPer;
use asymq_core::units::{Bytes, Duration, Limit, Rate};
use clap::Args;
use serde::{Deserialize, Serialize};

/// Declares the arguments once: each optional, a flag, a key, and mergeable.
macro_rules! qdisc_args {
    ($($(#[$doc:meta])* $name:ident: $type:ty, $value:literal;)*) => {
        /// The parameters of disciplines, all optional; each is ignored by disciplines that lack it.
        #[derive(Clone, Debug, Default, PartialEq, Args, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case", default)]
        pub struct QdiscArgs {
            $(
                $(#[$doc])*
                #[arg(long, value_name = $value, help_heading = "Discipline")]
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $name: Option<$type>,
            )*
        }

        impl QdiscArgs {
            /// These parameters, and `other`'s where these are absent.
            #[must_use]
            pub fn or(self, other: Self) -> Self {
                Self { $($name: self.$name.or(other.$name),)* }
            }
        }
    };
}

qdisc_args! {
    /// Which packets are ACKs: pure-ack, or size<=40 as in the AQ paper.
    classifier: ClassifierName, "RULE";
    /// How ACKs are held, instead of the discipline's own way [real: sad with vaq and afvq].
    ack_queue: AckQueueName, "NAME";
    /// Who is served next, instead of the discipline's own way.
    service: ServiceName, "NAME";
    /// What moves the weights, instead of the discipline's own way.
    controller: ControllerName, "NAME";
    /// Data's share of the link under wrr and cbq (paper 004's g) [default: 0.5].
    weights: Share, "SHARE";
    /// Whether a class may take what the other leaves [default: true for wrr, false for cbq, acq, dcbq].
    borrow: bool, "true|false";
    /// The ACK queue's limit [default: the buffer; vaq: 10p; afvq at an empty data queue: down/up].
    ack_limit: Limit, "LIMIT";
    /// The data queue's limit [default: the buffer; vaq: 100p].
    data_limit: Limit, "LIMIT";
    /// Bytes of an ACK on the link (AQ's S_A) [default: 40 simulated, 52 real].
    ack_size: Bytes, "SIZE";
    /// Bytes of a full data packet on the link (AQ's S_D) [default: MSS + headers].
    data_size: Bytes, "SIZE";
    /// Data packets per ACK: a number, or auto to measure [default: 1 simulated, auto real].
    data_per_ack: DataPerAckArg, "N|auto";
    /// How often the weights are moved [default: 200ms for aq, 10s for acq, 5s for dcbq].
    interval: Duration, "TIME";
    /// Step of acq and dcbq in (kbit/s)^2 [default: 50 and 10].
    gamma: f64, "NUMBER";
    /// What acq and dcbq maximize: utilization, priority:W or proportional.
    utility: UtilityArg, "NAME";
    /// What earns vaq's credit: byte (the text) or segment (the paper's figures) [default: byte].
    credit: CreditName, "NAME";
    /// What AQ does where its eq. 11 fails [default: equal-shares].
    beyond_limit: BeyondLimitName, "RULE";
    /// The rate of its own link that AQ is told, right or wrong [default: the link's].
    told_rate: Rate, "RATE";
    /// Most bytes that thinning may leave between two ACKs of a flow [default: 93440b].
    most_stretch: Bytes, "SIZE";
    /// Most time that filtering may leave between two ACKs of a flow [default: 50ms].
    most_gap: Duration, "TIME";
}

impl QdiscArgs {
    /// Adds what a discipline needs on real packets and its paper does not give it, where nothing
    /// was chosen: `vaq`'s ten and `afvq`'s few places for ACKs drop the newest for want of room,
    /// and kernel downloads then stand still for half a minute. A slot for each flow's newest ACK,
    /// and thirty of them, end that.
    #[must_use]
    pub fn on_real_packets(mut self, name: QdiscName) -> Self {
        if matches!(name, QdiscName::Vaq | QdiscName::Afvq) {
            self.ack_queue.get_or_insert(AckQueueName::Sad);
            self.ack_limit.get_or_insert(Limit::Packets(30));
        }
        self
    }

    pub(crate) fn classifier(&self) -> Classifier {
        self.classifier.map_or(Classifier::default(), Into::into)
    }

    pub(crate) fn data_share(&self) -> f64 {
        self.weights.map_or(0.5, Share::fraction)
    }

    pub(crate) fn data_size(&self) -> u32 {
        self.data_size
            .map_or(1500, |size| size.0.clamp(1, 65_535) as u32)
    }

    /// Data packets per ACK where a discipline cannot measure them.
    pub(crate) fn given_data_per_ack(&self) -> f64 {
        match self.data_per_ack {
            Some(DataPerAckArg(DataPerAck::Given(packets))) => packets,
            _ => 1.0,
        }
    }

    pub(crate) fn credit(&self) -> CreditPer {
        match self.credit {
            Some(CreditName::Segment) => CreditPer::Segment(self.data_size()),
            Some(CreditName::Byte) | None => CreditPer::Byte,
        }
    }

    pub(crate) fn aq_params(&self, link: Rate, opposite: Rate) -> AqParams {
        let default = AqParams::new(self.told_rate.unwrap_or(link), opposite);
        AqParams {
            ack_size: self
                .ack_size
                .map_or(default.ack_size, |size| size.0.clamp(1, 65_535) as u32),
            data_size: self.data_size(),
            data_per_ack: self.data_per_ack.map_or(default.data_per_ack, |arg| arg.0),
            interval: self.interval.unwrap_or(default.interval),
            beyond_limit: self.beyond_limit.map_or(default.beyond_limit, Into::into),
            ..default
        }
    }

    /// Whether every part is the discipline's own.
    pub(crate) fn chooses_no_part(&self) -> bool {
        self.ack_queue.is_none() && self.service.is_none() && self.controller.is_none()
    }

    /// Puts the parts that were chosen one by one in the place of the discipline's own.
    pub(crate) fn choose_parts(&self, mut parts: Composition, entry: Entry) -> Composition {
        if let Some(name) = self.ack_queue {
            parts.ack = match name {
                AckQueueName::Fifo => AckHold::Fifo,
                AckQueueName::Af => entry.af().ack,
                AckQueueName::Sad => entry.sad().ack,
            };
        }
        if let Some(name) = self.service {
            let share = self.data_share();
            let from = match name {
                ServiceName::Shared => entry.fifo(),
                ServiceName::AcksFirst => entry.acks_first(),
                ServiceName::Prr => entry.prr(),
                ServiceName::Wrr => entry.wrr(share),
                ServiceName::Cbq => entry.cbq(share),
                ServiceName::Vaq => entry.vaq(self.credit()),
            };
            (parts.service, parts.buffer) = (from.service, from.buffer);
        }
        if let Some(name) = self.controller {
            let (link, opposite) = (entry.link, entry.opposite);
            let per_ack = self.given_data_per_ack();
            let from = match name {
                ControllerName::None => entry.fifo(),
                ControllerName::Aq => entry.aq(self.aq_params(link, opposite)),
                ControllerName::Acq => entry.acq(),
                ControllerName::Dcbq => entry.dcbq(self.data_size().into(), per_ack),
                ControllerName::Afvq => entry.afvq(per_ack),
            };
            parts.controller = from.controller;
            if name == ControllerName::Aq {
                parts.buffer = from.buffer;
            }
        }
        self.tune(&mut parts);
        parts
    }

    /// Sets the numbers that were given.
    fn tune(&self, parts: &mut Composition) {
        if let ControllerKind::Gradient(params) = &mut parts.controller {
            params.interval = self.interval.unwrap_or(params.interval);
            params.gamma = self.gamma.unwrap_or(params.gamma);
            params.utility = self.utility.map_or(params.utility, |arg| arg.0);
        }
        if let AckHold::Thinned(_, bounds) = &mut parts.ack {
            bounds.most_gap = self.most_gap.unwrap_or(bounds.most_gap);
            if let Some(stretch) = self.most_stretch {
                bounds.most_stretch = stretch.0.min(1 << 30) as u32;
            }
        }
        if let Buffer::Separate { ack, data } = &mut parts.buffer {
            *ack = self.ack_limit.unwrap_or(*ack);
            *data = self.data_limit.unwrap_or(*data);
        }
        if let (ControllerKind::AckLimit(most), Some(Limit::Packets(given))) =
            (&mut parts.controller, self.ack_limit)
        {
            *most = given;
        }
        parts.service = match (parts.service, self.borrow) {
            (ServiceKind::Weighted(share), Some(false)) => ServiceKind::Paced(share),
            (ServiceKind::Paced(share), Some(true)) => ServiceKind::Weighted(share),
            (service, _) => service,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::config::Config;
    use asymq_core::parts::{Thinning, ThinningBounds};
    use clap::ValueEnum;

    fn config(name: QdiscName, change: impl FnOnce(&mut QdiscArgs)) -> Config {
        let mut args = QdiscArgs::default();
        change(&mut args);
        let (up, down) = ("1mbit".parse().unwrap(), "10mbit".parse().unwrap());
        name.config(&args, up, down, Limit::Packets(50))
    }

    fn parts(name: QdiscName, change: impl FnOnce(&mut QdiscArgs)) -> Composition {
        match config(name, change) {
            Config::Machine(parts) => parts,
            other => panic!("not a machine: {other:?}"),
        }
    }

    #[test]
    fn parts_can_be_chosen_one_by_one() {
        let chosen = parts(QdiscName::Droptail, |args| {
            args.ack_queue = Some(AckQueueName::Sad);
            args.service = Some(ServiceName::Wrr);
            args.weights = Some("0.3".parse().unwrap());
            args.controller = Some(ControllerName::Acq);
        });
        assert_eq!(
            chosen.ack,
            AckHold::Thinned(Thinning::Slot, ThinningBounds::default())
        );
        assert_eq!(chosen.service, ServiceKind::Weighted(0.3));
        assert_eq!(chosen.controller, parts(QdiscName::Acq, |_| {}).controller);
    }

    #[test]
    fn a_discipline_rebuilt_from_its_parts_is_the_same() {
        let rebuilt = |name, service, controller| {
            parts(name, |args| {
                args.service = Some(service);
                args.controller = Some(controller);
            })
        };
        for (name, service, controller) in [
            (QdiscName::Aq, ServiceName::Wrr, ControllerName::Aq),
            (
                QdiscName::Afvq,
                ServiceName::AcksFirst,
                ControllerName::Afvq,
            ),
            (QdiscName::Acq, ServiceName::Cbq, ControllerName::Acq),
            (QdiscName::Dcbq, ServiceName::Cbq, ControllerName::Dcbq),
            (QdiscName::Vaq, ServiceName::Vaq, ControllerName::None),
            (QdiscName::Prr, ServiceName::Prr, ControllerName::None),
        ] {
            let own = parts(name, |_| {});
            assert_eq!(rebuilt(name, service, controller), own, "{name}");
            assert_eq!(
                rebuilt(QdiscName::Droptail, service, controller),
                own,
                "{name}"
            );
        }
    }

    #[test]
    fn borrowing_turns_cbq_into_wrr_and_back() {
        let borrow = |name, truth| parts(name, |args| args.borrow = Some(truth)).service;
        assert_eq!(borrow(QdiscName::Cbq, true), ServiceKind::Weighted(0.5));
        assert_eq!(borrow(QdiscName::Wrr, false), ServiceKind::Paced(0.5));
        assert_eq!(
            borrow(QdiscName::Vaq, true),
            parts(QdiscName::Vaq, |_| {}).service
        );
    }

    #[test]
    fn on_real_packets_only_what_was_not_chosen_is_added() {
        let plain = QdiscArgs::default();
        assert_eq!(plain.clone().on_real_packets(QdiscName::Aq), plain);
        let chosen = QdiscArgs {
            ack_queue: Some(AckQueueName::Fifo),
            ..plain
        };
        let vaq = chosen.on_real_packets(QdiscName::Vaq);
        assert_eq!(vaq.ack_queue, Some(AckQueueName::Fifo));
        assert_eq!(vaq.ack_limit, Some(Limit::Packets(30)));
    }

    #[test]
    fn every_name_describes_a_discipline() {
        for name in QdiscName::value_variants() {
            let own = config(*name, |_| {});
            assert!(
                own != Config::DropTail {
                    limit: Limit::Packets(50)
                } || *name == QdiscName::Droptail
            );
        }
    }
}
