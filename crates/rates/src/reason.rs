//! Reasons for changes of a rate, for displays.

/// Reason for the latest change of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reason {
    /// No measurement yet.
    #[default]
    Start,
    /// The line has a queue: the rate is below the capacity until it is gone.
    Queue,
    /// The queue is gone, and the shaper has a backlog: the rate grows.
    Search,
    /// The shaper has no backlog, and the line no queue.
    Idle,
    /// No readable packet has arrived.
    Blind,
    /// The delay grew without a queue: the path became longer, or the queue is the other direction's.
    Path,
    /// The rate is at its lower bound, a share of the recent deliveries.
    Delivered,
}

impl Reason {
    /// All reasons.
    pub const ALL: [Self; 7] = [
        Self::Start,
        Self::Queue,
        Self::Search,
        Self::Idle,
        Self::Blind,
        Self::Path,
        Self::Delivered,
    ];

    /// Its name in tables, JSON and metrics.
    pub fn name(self) -> &'static str {
        let name = self.variable().strip_prefix("auto_");
        name.unwrap_or_default()
    }

    /// Its name as a control variable, which is 1 while it holds.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Start => "auto_start",
            Self::Queue => "auto_queue",
            Self::Search => "auto_search",
            Self::Idle => "auto_idle",
            Self::Blind => "auto_blind",
            Self::Path => "auto_path",
            Self::Delivered => "auto_delivered",
        }
    }
}
