//! The disciplines by name.

use crate::QdiscArgs;
use asymq_core::config::Config;
use asymq_core::disciplines::{Composition, Entry};
use asymq_core::units::{Limit, Rate};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The disciplines by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[value(rename_all = "kebab-case")]
pub enum QdiscName {
    /// One FIFO, arrivals over the limit are dropped.
    Droptail,
    /// RED on data in one FIFO.
    Red,
    /// ACK congestion control: RED on data and ACKs alike.
    Acc,
    /// A queue per flow, deficit round robin.
    Fq,
    /// ACK filtering in one FIFO.
    Af,
    /// ACKs first, strictly.
    AcksFirst,
    /// One packet of each class in turn.
    Prr,
    /// ACKs and data share the link by bytes, each taking what the other leaves.
    Wrr,
    /// ACKs and data share the link by bytes, without borrowing.
    Cbq,
    /// Asymmetric Queueing: ACKs and data share link and buffer in a computed ratio.
    Aq,
    /// ACKs first, in a queue that shrinks as data queues up.
    Afvq,
    /// Shares that climb the gradient of the user's utility.
    Acq,
    /// The same, with the download measured by the number of ACKs.
    Dcbq,
    /// DCBQ where receivers delay their ACKs: each stands for two packets.
    EDcbq,
    /// Data spends credit that passing ACKs earn.
    Vaq,
    /// The smart ACK dropper: one slot per flow, served first.
    Sad,
    /// ACK filtering in one FIFO, ACKs regenerated beyond the link.
    #[value(name = "fifo+af/ar")]
    #[serde(rename = "fifo+af/ar")]
    FifoAfAr,
    /// CBQ with ACK filtering, ACKs regenerated beyond the link.
    #[value(name = "cbq+af/ar")]
    #[serde(rename = "cbq+af/ar")]
    CbqAfAr,
    /// ACQ with ACK filtering, ACKs regenerated beyond the link.
    #[value(name = "acq+af/ar")]
    #[serde(rename = "acq+af/ar")]
    AcqAfAr,
    /// CBQ with the smart ACK dropper, ACKs regenerated beyond the link.
    #[value(name = "sad+ar+cbq")]
    #[serde(rename = "sad+ar+cbq")]
    SadArCbq,
}

impl fmt::Display for QdiscName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.to_possible_value().expect("no variant is hidden");
        f.pad(value.get_name())
    }
}

impl QdiscName {
    /// The name as the papers spell it.
    pub fn title(self) -> String {
        match self {
            Self::Droptail => "DropTail".into(),
            Self::AcksFirst => "ACKs-first".into(),
            other => other.to_string().to_uppercase(),
        }
    }

    /// Whether ACKs are regenerated beyond the link.
    pub const fn regenerates(self) -> bool {
        matches!(
            self,
            Self::FifoAfAr | Self::CbqAfAr | Self::AcqAfAr | Self::SadArCbq
        )
    }

    /// The discipline with these parameters, before a link of rate `link` whose opposite direction
    /// has rate `opposite`.
    pub fn config(self, args: &QdiscArgs, link: Rate, opposite: Rate, limit: Limit) -> Config {
        let entry = Entry {
            link,
            opposite,
            limit,
            classifier: args.classifier(),
        };
        let share = args.data_share();
        let parts: Composition = match self {
            Self::Fq => return Config::FairQueue { limit },
            Self::Droptail if args.chooses_no_part() => return Config::DropTail { limit },
            Self::Droptail => entry.fifo(),
            Self::Red => entry.red_on_data(),
            Self::Acc => entry.acc(),
            Self::Af | Self::FifoAfAr => entry.af(),
            Self::AcksFirst => entry.acks_first(),
            Self::Prr => entry.prr(),
            Self::Wrr => entry.wrr(share),
            Self::Cbq => entry.cbq(share),
            Self::Aq => entry.aq(args.aq_params(link, opposite)),
            Self::Afvq => entry.afvq(args.given_data_per_ack()),
            Self::Acq => entry.acq(),
            Self::Dcbq => entry.dcbq(args.data_size().into(), args.given_data_per_ack()),
            Self::EDcbq => entry.dcbq(args.data_size().into(), 2.0),
            Self::Vaq => entry.vaq(args.credit()),
            Self::Sad => entry.sad(),
            Self::CbqAfAr => entry.cbq_af(share),
            Self::AcqAfAr => entry.acq_af(),
            Self::SadArCbq => entry.sad_cbq(share),
        };
        Config::Machine(args.choose_parts(parts, entry))
    }
}
