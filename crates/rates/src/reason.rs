//! Reasons for changes of a rate, for displays.

asymq_core::named! {
    /// Reason for the latest change of a rate.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Reason in "auto_" {
        /// No measurement yet.
        #[default]
        Start = "start",
        /// The line has a queue; the rate is below the capacity until the queue has drained.
        Queue = "queue",
        /// The queue has drained and the shaper has a backlog, so the rate grows.
        Search = "search",
        /// Neither the shaper nor the line has a queue.
        Idle = "idle",
        /// No packet that shows a delay has arrived recently.
        Blind = "blind",
        /// The delay increased without a queue in this direction: the path became longer, or the other
        /// direction has a queue.
        Path = "path",
        /// The rate is at its lower bound: a share of recent deliveries.
        Delivered = "delivered",
    }
}
