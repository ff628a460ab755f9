//! Constants of the law.

/// A time that depends linearly on another time.
pub(super) struct Linear {
    pub(super) ms: f64,
    /// Factor by which the other time is multiplied.
    pub(super) per: f64,
}

impl Linear {
    pub(super) fn at(&self, time: f64) -> f64 {
        self.ms + self.per * time
    }
}

macro_rules! tuning {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)+) => {
        /// Constants of the law. Shares are shares of the capacity, except where noted.
        pub(super) struct Tuning {
            $($(#[$doc])* pub(super) $name: $type,)+
        }

        /// Current values. `docs/notes/rates.md` lists the lines on which they were chosen.
        pub(super) const TUNING: Tuning = Tuning { $($name: $value,)+ };
    };
}

tuning! {
    /// Number of samples that suffice to determine the minimum of the queue.
    enough_samples: u32 = 8;
    /// Queue in ms above which the line is full; depends on the transmission time of a full packet.
    full: Linear = Linear { ms: 7.0, per: 0.5 };
    /// Reduction of `full` on a steady line, in ms. A queue found earlier needs a shorter cut.
    steady_full_ms: f64 = 1.5;
    /// Queue in ms below which the line is clear; depends on the transmission time of a full packet.
    clear: Linear = Linear { ms: 3.0, per: 0.25 };
    /// Multiple of the noise (mean change of the queue) that is added to the thresholds `full` and `clear`.
    threshold_noises: f64 = 3.0;
    /// Averaging time of the noise in ms.
    noise_memory_ms: f64 = 2000.0;
    /// Maximum change of the queue in ms that counts as noise.
    max_noise_ms: f64 = 5.0;
    /// Maximum time in ms over which the capacity is measured.
    capacity_window_ms: f64 = 120.0;
    /// Minimum time in ms over which the capacity is measured.
    min_capacity_window_ms: f64 = 30.0;
    /// Time in ms without a sample after which the law is blind.
    blind_after_ms: f64 = 250.0;
    /// Multiple of the candidate's queue that is added to `blind_after_ms`, because answers wait in that queue.
    blind_queues: f64 = 2.0;
    /// Maximum time in ms that `blind_queues` adds to `blind_after_ms`.
    max_blind_queues_ms: f64 = 2000.0;

    /// Time in ms in which a standing queue should drain, up and down. Delayed ACKs of receivers add noise to the
    /// uplink's queue.
    drain_ms: [f64; 2] = [100.0, 200.0];
    /// Value of `drain_ms` on a line with a steady rate.
    steady_drain_ms: [f64; 2] = [100.0, 40.0];
    /// Minimum cut of the rate, as a share of the capacity.
    min_cut: f64 = 0.035;
    /// Maximum cut of the rate, as a share of the capacity.
    max_cut: f64 = 0.4;
    /// Change of the queueing delay in ms above which a queue counts as real; depends on the noise.
    change: Linear = Linear { ms: 4.0, per: 2.0 };
    /// Weight of a new measurement in the capacity.
    capacity_gain: f64 = 0.5;
    /// Time in ms after which the cut grows if the queue has not changed by `change`.
    unchanged_after_ms: f64 = 150.0;
    /// Growth of the cut after `unchanged_after_ms`, as a share of the capacity per ms.
    unchanged_cut_per_ms: f64 = 0.0015;
    /// Maximum of the cut that grows at `unchanged_cut_per_ms`, as a share of the capacity.
    max_unchanged_cut: f64 = 0.35;
    /// Share of the capacity; if the rate into the line is below it, a queue certainly drains.
    draining_share: f64 = 0.8;
    /// If a queue shrinks by this many ms less than expected, the path became longer.
    undrained_ms: f64 = 20.0;
    /// Time in ms without a fall of the queue after which a candidate's test has failed; depends on the queue.
    stalled: Linear = Linear { ms: 220.0, per: 2.0 };
    /// Queue in ms below which the queue counts as fallen; depends on the queue's maximum.
    fallen: Linear = Linear { ms: -5.0, per: 0.9 };
    /// Minimum cut of a candidate, as a share of the capacity; a smaller cut would not visibly shorten the queue.
    test_cut: f64 = 0.2;
    /// Maximum queue in ms at which senders have certainly not reduced their rates yet.
    early_ms: f64 = 40.0;
    /// Share of the last known capacity below which the line counts as slower.
    slower_share: f64 = 0.85;
    /// Minimum rate after a failed test, as a share of the rate before the queue.
    failed_share: f64 = 0.5;
    /// Fall of the queue in ms that proves jitter; depends on the drain expected from the cut.
    jitter: Linear = Linear { ms: 4.0, per: 1.2 };
    /// Maximum of the predicted queue in ms; depends on the measured queue.
    max_predicted: Linear = Linear { ms: 20.0, per: 1.5 };

    /// Weight of an interval in the smoothed share of intervals with a backlog at the shaper.
    busy_gain: f64 = 0.1;
    /// Initial growth of the rate per second, as a share of the rate.
    growth: f64 = 0.02;
    /// Duration of the initial growth in ms.
    pause_ms: f64 = 100.0;
    /// Increase of `growth` per second, after `pause_ms`.
    acceleration: f64 = 0.5;
    /// Maximum growth of the rate per second, as a share of the rate.
    max_growth: f64 = 0.7;
    /// Duration in ms of the latest part of the search, whose effect round trips do not show yet.
    unanswered_ms: f64 = 150.0;
    /// Growth per second, as a share of the rate, towards the rate at the last backlog while there is no backlog.
    return_growth: f64 = 0.3;
    /// Rate after the queue has drained, as a share of the capacity.
    resume_share: f64 = 0.98;
    /// On a steady line: reduction of `resume_share` for each ms that a full packet's transmission takes.
    steady_resume_per_ms: f64 = 0.003;
    /// Number of consecutive queues at one capacity after which the line counts as steady.
    steady_after: f64 = 4.0;
    /// Maximum relative difference of two capacities that count as equal.
    steady_within: f64 = 0.1;
    /// Addition to `pause_ms` on a steady line in ms; depends on the transmission time of a full packet.
    steady_pause: Linear = Linear { ms: 1000.0, per: 400.0 };
    /// Maximum steadiness: 1 after `steady_after` queues, and 1 more after each further `steady_after`.
    max_steady: f64 = 3.0;
    /// Addition to `pause_ms` in ms, for each 1 of steadiness above 1.
    long_steady_pause_ms: f64 = 2000.0;
    /// Rate without a queue, as a share of the capacity after the last queue, that ends the long pause.
    faster_share: f64 = 1.02;
    /// Addition to `resume_share` for each 1 of steadiness above 1, up and down. Bursts of answers queue in the modem
    /// on the way down, and need more room there.
    long_steady_resume: [f64; 2] = [0.0085, -0.0065];
    /// Addition to the divisor of `growth` for each 1 of steadiness above 1, up and down.
    long_steady_slower: [f64; 2] = [1.0, 0.0];
    /// Maximum transmission time of a full packet in the rules for steady lines, in ms.
    max_packet_ms: f64 = 15.0;

    /// Sustained rate, as a share of the capacity, above which the line may have a queue. Page loads use less.
    loaded_share: f64 = 0.45;
    /// Lower bound of the rate, as a share of the best recent second.
    delivered_share: f64 = 0.25;
}
