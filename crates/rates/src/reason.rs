//! Why a rate moved, for what is shown.

/// Reason for the latest change of a rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reason {
    /// Nothing was measured yet.
    #[default]
    Start,
    /// A queue waits in the line: the rate is below the capacity until it is gone.
    Queue,
    /// The queue is gone, and the shaper has a backlog: the rate grows.
    Search,
    /// The shaper has no backlog: nothing is learnt.
    Idle,
    /// No packet that could be read has come.
    Blind,
    /// The delay grew without a queue: the path became longer.
    Path,
    /// The lower bound by what was delivered holds the rate.
    Delivered,
}

impl Reason {
    /// All of them.
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
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Queue => "queue",
            Self::Search => "search",
            Self::Idle => "idle",
            Self::Blind => "blind",
            Self::Path => "path",
            Self::Delivered => "delivered",
        }
    }
}

impl Reason {
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
