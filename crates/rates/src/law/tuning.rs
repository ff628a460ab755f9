//! Constants of the law.

/// A time that depends linearly on another time.
pub(super) struct Linear {
    pub(super) ms: f64,
    /// Factor of the other time.
    pub(super) per: f64,
}

impl Linear {
    pub(super) fn at(&self, time: f64) -> f64 {
        self.ms + self.per * time
    }
}

/// Declares the constants, each with its value.
macro_rules! tuning {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)+) => {
        /// Constants of the law. "Per second" is per second of time; shares are of the capacity unless the text says otherwise.
        pub(super) struct Tuning {
            $($(#[$doc])* pub(super) $name: $type,)+
        }

        /// The values in use. `docs/notes/rates.md` lists the lines on which they were chosen.
        pub(super) const TUNING: Tuning = Tuning { $($name: $value,)+ };
    };
}

tuning! {
    /// Samples in the last intervals that are enough for the minimum of the queue. Count.
    enough_samples: u32 = 8;
    /// Queue above which the line is full; depends on the transmission time of a full packet. ms.
    full: Linear = Linear { ms: 7.0, per: 0.5 };
    /// Queue below which the line is clear; depends on the same time. ms.
    clear: Linear = Linear { ms: 3.0, per: 0.25 };
    /// Multiple of the noise (mean change of the queue) that is added to both thresholds. Factor.
    threshold_noises: f64 = 3.0;
    /// Averaging time of the noise. ms.
    noise_memory_ms: f64 = 2000.0;
    /// Maximum change of the queue that counts as noise. ms.
    max_noise_ms: f64 = 5.0;
    /// Maximum time over which the capacity is measured. ms.
    capacity_window_ms: f64 = 120.0;
    /// Minimum time over which the capacity is measured. ms.
    min_capacity_window_ms: f64 = 30.0;
    /// Time without a sample after which the law is blind. ms.
    blind_after_ms: f64 = 250.0;
    /// Multiple of the candidate's queue added to `blind_after_ms`, because answers wait in that queue. Factor.
    blind_queues: f64 = 2.0;
    /// Maximum of that addition. ms.
    max_blind_queues_ms: f64 = 2000.0;

    /// Time in which a standing queue drains, up and down. Receivers' delayed ACKs add noise to the uplink's. ms.
    drain_ms: [f64; 2] = [100.0, 200.0];
    /// Value of `drain_ms` on a steady line. ms.
    steady_drain_ms: [f64; 2] = [100.0, 40.0];
    /// Minimum cut. Share.
    min_cut: f64 = 0.035;
    /// Maximum cut for draining in time. Share.
    max_cut: f64 = 0.4;
    /// Change of the queue that proves a queue; depends on the noise. ms.
    change: Linear = Linear { ms: 4.0, per: 2.0 };
    /// Weight of a new measurement of the capacity. Share.
    capacity_gain: f64 = 0.5;
    /// Time without such a change after which the cut grows. ms.
    unchanged_after_ms: f64 = 150.0;
    /// Growth of the cut after that time. Share per ms.
    unchanged_cut_per_ms: f64 = 0.0015;
    /// Maximum of the cut grown this way. Share.
    max_unchanged_cut: f64 = 0.35;
    /// Rate into the line at which a queue certainly drains. Share.
    draining_share: f64 = 0.8;
    /// Missing part of the expected drain that proves a longer path. ms.
    undrained_ms: f64 = 20.0;
    /// Time without a fall of the queue after which a candidate's test failed; depends on the queue. ms.
    stalled: Linear = Linear { ms: 220.0, per: 2.0 };
    /// Queue below which it counts as fallen; depends on its maximum. ms.
    fallen: Linear = Linear { ms: -5.0, per: 0.9 };
    /// Minimum cut of a candidate, so that a fall of the queue is visible. Share.
    test_cut: f64 = 0.2;
    /// Maximum queue at which senders have not slowed down yet. ms.
    early_ms: f64 = 40.0;
    /// Share of the last known capacity below which a line counts as slower.
    slower_share: f64 = 0.85;
    /// Minimum rate after a failed test, as a share of the previous rate.
    failed_share: f64 = 0.5;
    /// Fall of the queue that proves jitter; depends on the drain expected from the cut. ms.
    jitter: Linear = Linear { ms: 4.0, per: 1.2 };
    /// Maximum of the predicted queue; depends on the measured one. ms.
    max_predicted: Linear = Linear { ms: 20.0, per: 1.5 };

    /// Weight of an interval in the mean of the shaper's backlog. Share.
    busy_gain: f64 = 0.1;
    /// Initial growth of the rate. Share per second.
    growth: f64 = 0.02;
    /// Duration of the initial growth. ms.
    pause_ms: f64 = 100.0;
    /// Increase of the growth after that. Share per second, per second.
    acceleration: f64 = 0.5;
    /// Maximum growth. Share per second.
    max_growth: f64 = 0.7;
    /// Time of searching whose effect is not yet in the round trips. ms.
    unanswered_ms: f64 = 150.0;
    /// Growth towards the last used rate, without a backlog. Share per second.
    return_growth: f64 = 0.3;
    /// Rate after the queue is gone. Share.
    resume_share: f64 = 0.98;
    /// Reduction of `resume_share` on a steady line. Share per ms of a full packet.
    steady_resume_per_ms: f64 = 0.003;
    /// Consecutive queues at one capacity after which the line is steady. Count.
    steady_after: f64 = 4.0;
    /// Maximum difference between two capacities that count as one. Share.
    steady_within: f64 = 0.1;
    /// Addition to `pause_ms` on a steady line; depends on the transmission time of a full packet. ms.
    steady_pause: Linear = Linear { ms: 1000.0, per: 400.0 };
    /// Maximum transmission time of a full packet in these rules. ms.
    max_packet_ms: f64 = 15.0;

    /// Sustained rate above which the line may have a queue, as a share of its capacity; page loads stay below it.
    loaded_share: f64 = 0.45;
    /// Lower bound of the rate, as a share of the best second.
    delivered_share: f64 = 0.25;
}
