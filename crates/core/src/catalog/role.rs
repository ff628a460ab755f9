//! Roles of disciplines and parts.

crate::named! {
    /// Role of an entry. Its name is also the name of the flag and the key that select the part.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Role {
        /// A discipline: a choice of parts.
        Qdisc = "qdisc",
        /// The queue of ACKs.
        AckQueue = "ack-queue",
        /// The queue of data.
        DataQueue = "data-queue",
        /// The rule that drops or marks arrivals early.
        Aqm = "aqm",
        /// The rule that chooses the next queue.
        Service = "service",
        /// The rule that adapts settings of the other parts to measurements.
        Controller = "controller",
    }
}

impl Role {
    /// The roles of parts, in the order in which they are resolved.
    pub const PARTS: [Self; 5] = {
        let [_, parts @ ..] = Self::ALL;
        parts
    };

    /// Name of the flag and key that select the part.
    pub const fn key(self) -> &'static str {
        self.name()
    }

    /// Name of the part or discipline that a description without this role uses.
    pub const fn default_part(self) -> &'static str {
        match self {
            Self::Qdisc => "droptail",
            Self::AckQueue | Self::DataQueue => "fifo",
            Self::Aqm | Self::Controller => "none",
            Self::Service => "shared",
        }
    }

    /// Returns the role of a part with this key.
    pub fn of_part(key: &str) -> Option<Self> {
        Self::PARTS.into_iter().find(|role| role.key() == key)
    }

    /// Description of the role in `--help`.
    pub const fn help(self) -> &'static str {
        match self {
            Self::Qdisc => "Queue discipline",
            Self::AckQueue => "Queue for ACKs, in place of the discipline's own",
            Self::DataQueue => "Queue for data, in place of the discipline's own",
            Self::Aqm => "Rule that drops or marks arrivals, in place of the discipline's own",
            Self::Service => "Rule that picks the next queue, in place of the discipline's own",
            Self::Controller => "Rule that adjusts settings, in place of the discipline's own",
        }
    }
}
