//! Constants of the law.

/// A time that depends on another time.
pub(super) struct Linear {
    /// ms.
    pub(super) ms: f64,
    /// Factor of the other time.
    pub(super) per: f64,
}

impl Linear {
    /// The value at `time` ms.
    pub(super) fn at(&self, time: f64) -> f64 {
        self.ms + self.per * time
    }
}

/// Constants of the law. "Per second" is per second of time; shares are of the capacity unless the text says otherwise.
pub(super) struct Tuning {
    /// Samples in the last intervals that suffice for the minimum of the queue. Count.
    pub(super) enough_samples: u32,
    /// Queue from which the line is full, by the transmission time of a full packet. ms.
    pub(super) full: Linear,
    /// Queue below which the line is clear, likewise. ms.
    pub(super) clear: Linear,
    /// Mean changes of the queue (noise) on top of both thresholds. Factor.
    pub(super) threshold_noises: f64,
    /// Averaging time of the noise. ms.
    pub(super) noise_memory_ms: f64,
    /// Largest change of the queue that counts as noise. ms.
    pub(super) max_noise_ms: f64,
    /// Maximum time over which the capacity is measured. ms.
    pub(super) capacity_window_ms: f64,
    /// Minimum time over which the capacity is measured. ms.
    pub(super) min_capacity_window_ms: f64,
    /// Time without a sample after which the law is blind. ms.
    pub(super) blind_after_ms: f64,
    /// Queues of the candidate on top of `blind_after_ms`: its samples are answers, which wait in the queue. Factor.
    pub(super) blind_queues: f64,
    /// Maximum of that. ms.
    pub(super) max_blind_queues_ms: f64,

    /// Time in which a standing queue drains, up and down. ACKs of receivers add noise to the uplink's. ms.
    pub(super) drain_ms: [f64; 2],
    /// Like `drain_ms`, on a steady line. ms.
    pub(super) steady_drain_ms: [f64; 2],
    /// Minimum share left to the queue.
    pub(super) min_cut: f64,
    /// Maximum share left to the queue to drain it in time.
    pub(super) max_cut: f64,
    /// Change of the queue that proves a queue, by the noise. ms.
    pub(super) change: Linear,
    /// Weight of a new measurement of the capacity. Share.
    pub(super) capacity_gain: f64,
    /// Time without such a change after which the cut grows. ms.
    pub(super) unchanged_after_ms: f64,
    /// Growth of the cut then. Share per ms.
    pub(super) unchanged_cut_per_ms: f64,
    /// Maximum of this cut. Share.
    pub(super) max_unchanged_cut: f64,
    /// Rate into the line at which a queue certainly drains. Share.
    pub(super) draining_share: f64,
    /// Part of the expected drain whose absence shows a longer path. ms.
    pub(super) undrained_ms: f64,
    /// Time without a fall of the queue after which a candidate's test has failed, by the queue that answers wait in. ms.
    pub(super) stalled: Linear,
    /// Queue below which it has fallen, by its maximum. ms.
    pub(super) fallen: Linear,
    /// Minimum share that a candidate leaves to the queue, so that its fall shows.
    pub(super) test_cut: f64,
    /// Queue up to which senders have not slowed down yet. ms.
    pub(super) early_ms: f64,
    /// Share of the last known capacity below which a line became slower.
    pub(super) slower_share: f64,
    /// Minimum of the rate after a failed test, as a share of the rate before.
    pub(super) failed_share: f64,
    /// Fall of the queue that shows jitter, by the drain of the cut. ms.
    pub(super) jitter: Linear,
    /// Maximum of the predicted queue, by the measured one. ms.
    pub(super) max_predicted: Linear,

    /// Weight of an interval in the mean of the shaper's backlog. Share.
    pub(super) busy_gain: f64,
    /// Growth of the rate at first. Share per second.
    pub(super) growth: f64,
    /// Time of searching at this growth. ms.
    pub(super) pause_ms: f64,
    /// Increase of the growth after that. Share per second, per second.
    pub(super) acceleration: f64,
    /// Maximum growth. Share per second.
    pub(super) max_growth: f64,
    /// Time of searching that round trips have not shown yet. ms.
    pub(super) unanswered_ms: f64,
    /// Growth towards the last rate that was used, without a backlog. Share per second.
    pub(super) return_growth: f64,
    /// Rate once the queue is gone. Share.
    pub(super) resume_share: f64,
    /// Reduction of `resume_share` on a steady line. Share per ms of a full packet.
    pub(super) steady_resume_per_ms: f64,
    /// Consecutive queues at one capacity after which the line is steady. Count.
    pub(super) steady_after: f64,
    /// Largest difference of two capacities that count as one. Share.
    pub(super) steady_within: f64,
    /// Addition to `pause_ms` on a steady line, by the transmission time of a full packet. ms.
    pub(super) steady_pause: Linear,
    /// Maximum time of a full packet in these rules. ms.
    pub(super) max_packet_ms: f64,

    /// Sustained rate from which the line may have a queue, as a share of its capacity: bursts of pages are less.
    pub(super) loaded_share: f64,
    /// Lower bound of the rate, as a share of the best second.
    pub(super) delivered_share: f64,
}

/// The values in use. `docs/notes/rates.md` lists the lines on which they were chosen.
pub(super) const TUNING: Tuning = Tuning {
    enough_samples: 8,
    full: Linear { ms: 7.0, per: 0.5 },
    clear: Linear { ms: 3.0, per: 0.25 },
    threshold_noises: 3.0,
    noise_memory_ms: 2000.0,
    max_noise_ms: 5.0,
    capacity_window_ms: 120.0,
    min_capacity_window_ms: 30.0,
    blind_after_ms: 250.0,
    blind_queues: 2.0,
    max_blind_queues_ms: 2000.0,

    drain_ms: [100.0, 200.0],
    steady_drain_ms: [100.0, 40.0],
    min_cut: 0.035,
    max_cut: 0.4,
    change: Linear { ms: 4.0, per: 2.0 },
    capacity_gain: 0.5,
    unchanged_after_ms: 150.0,
    unchanged_cut_per_ms: 0.0015,
    max_unchanged_cut: 0.35,
    draining_share: 0.8,
    undrained_ms: 20.0,
    stalled: Linear {
        ms: 220.0,
        per: 2.0,
    },
    fallen: Linear { ms: -5.0, per: 0.9 },
    test_cut: 0.2,
    early_ms: 40.0,
    slower_share: 0.85,
    failed_share: 0.5,
    jitter: Linear { ms: 4.0, per: 1.2 },
    max_predicted: Linear { ms: 20.0, per: 1.5 },

    busy_gain: 0.1,
    growth: 0.02,
    pause_ms: 100.0,
    acceleration: 0.5,
    max_growth: 0.7,
    unanswered_ms: 150.0,
    return_growth: 0.3,
    resume_share: 0.98,
    steady_resume_per_ms: 0.003,
    steady_after: 4.0,
    steady_within: 0.1,
    steady_pause: Linear {
        ms: 200.0,
        per: 400.0,
    },
    max_packet_ms: 15.0,

    loaded_share: 0.45,
    delivered_share: 0.25,
};
