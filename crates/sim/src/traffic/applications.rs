//! On/off applications, and sources of short transfers.

use asymq_core::units::Duration;
use asymq_scenario::{Draw, OnOff, Source, WebLoad, uniform};

/// Sequence of random numbers for one source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    seed: u64,
    drawn: u32,
}

impl Stream {
    /// Creates the sequence of a source for the run with this seed.
    pub(crate) fn new(seed: u64, source: Source) -> Self {
        Self {
            seed: uniform(seed, source, Draw::Traffic).to_bits(),
            drawn: 0,
        }
    }

    /// Returns the next number, from 0 to 1 (exclusive).
    pub(crate) fn draw(&mut self) -> f64 {
        self.drawn += 1;
        uniform(self.seed, Source::Sequence(self.drawn), Draw::Traffic)
    }
}

/// A source of short transfers.
pub(crate) struct Web {
    pub(crate) load: WebLoad,
    pub(crate) next: u64,
    pub(crate) stream: Stream,
}

impl Web {
    /// Creates a source; its first transfer starts after a random gap.
    pub(crate) fn new(load: WebLoad, stream: Stream) -> Self {
        let mut web = Self {
            load,
            next: 0,
            stream,
        };
        web.wait();
        web
    }

    /// Returns the time in s to the next arrival. The probability of a longer time is `1 - u`.
    fn gap(&self, u: f64) -> f64 {
        -libm::log(1.0 - u) / self.load.per_second
    }

    /// Returns the size of a transfer in bytes. The probability of a larger size is `1 - u`; 0 <= `u` < 1.
    fn size(&self, u: f64) -> f64 {
        let WebLoad {
            mean_size, shape, ..
        } = self.load;
        let least = mean_size.0 as f64 * (shape - 1.0) / shape;
        least * libm::pow(1.0 - u, -1.0 / shape)
    }

    /// Draws the time of the next transfer.
    pub(crate) fn wait(&mut self) {
        let u = self.stream.draw();
        let gap = self.gap(u);
        self.next = self.next.saturating_add((gap * 1e9) as u64 + 1);
    }

    /// Draws the size of a transfer in segments of `mss` bytes.
    pub(crate) fn segments(&mut self, mss: u32) -> u64 {
        let u = self.stream.draw();
        let bytes = self.size(u);
        // No run can carry more.
        ((bytes / f64::from(mss)) as u64 + 1).min(1 << 40)
    }
}

/// Schedule of an application's writes to its connection.
#[derive(Clone, Debug)]
pub(crate) struct Application {
    pace: Pace,
    next: u64,
    /// Number of segments not yet written; `None` for unlimited data.
    left: Option<u64>,
    stop: u64,
}

/// Times at which an application writes.
#[derive(Clone, Debug)]
pub(crate) enum Pace {
    /// All data at once, at the start.
    AtOnce,
    /// One segment after each interval of this length in ns.
    Steady(u64),
    /// One segment at a time during on periods.
    OnOff(OnOffApp),
}

/// Action of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// Writes this many segments, and acts again at this time.
    Write(u64, u64),
    /// Stops writing.
    Close,
}

impl Application {
    /// Creates an application that writes `segments` (`None` for unlimited data) from `start` until `stop`, in ns.
    pub(crate) fn new(pace: Pace, start: u64, segments: Option<u64>, stop: Option<u64>) -> Self {
        Self {
            pace,
            next: start,
            left: segments,
            stop: stop.unwrap_or(u64::MAX),
        }
    }

    /// True if the application has written everything, or has stopped.
    pub(crate) fn is_over(&self) -> bool {
        self.left == Some(0)
    }

    /// Returns the action at `now`, which must be the start or the time that the last call returned.
    pub(crate) fn act(&mut self, now: u64) -> Act {
        /// Number of segments that no run can carry.
        const ENDLESS: u64 = 1 << 40;
        if now >= self.stop {
            self.left = Some(0);
            return Act::Close;
        }
        let mut written = 0;
        if now >= self.next {
            (written, self.next) = match &mut self.pace {
                Pace::AtOnce => (self.left.unwrap_or(ENDLESS), u64::MAX),
                Pace::Steady(interval) => (1, now + *interval),
                Pace::OnOff(on_off) => (1, on_off.next(now)),
            };
            self.left = self.left.map(|left| left - written);
            if self.is_over() {
                // Everything is written: the stop time has no effect.
                (self.next, self.stop) = (u64::MAX, u64::MAX);
            }
        }
        Act::Write(written, self.next.min(self.stop))
    }
}

/// An on-off application: while it is on, it writes one segment at a time at its rate.
#[derive(Clone, Debug)]
pub(crate) struct OnOffApp {
    pattern: OnOff,
    interval: u64,
    off_at: u64,
    stream: Stream,
}

impl OnOffApp {
    /// Creates an application that turns on at `start` and writes segments of `mss` bytes.
    pub(crate) fn new(pattern: &OnOff, mss: u32, start: u64, stream: Stream) -> Self {
        let mut on_off = Self {
            pattern: pattern.clone(),
            interval: pattern.rate.tx_time(mss).as_nanos().max(1),
            off_at: start,
            stream,
        };
        on_off.turn_on(start);
        on_off
    }

    /// Returns the time of the next write after a write at `now`.
    pub(crate) fn next(&mut self, now: u64) -> u64 {
        let mut next = now + self.interval;
        while next >= self.off_at {
            // The rest of the interval passes in the next on period.
            let left = next - self.off_at;
            let off = period(self.pattern.off, self.stream.draw());
            let on_at = self.off_at.saturating_add(off);
            self.turn_on(on_at);
            next = on_at.saturating_add(left);
        }
        next
    }

    fn turn_on(&mut self, at: u64) {
        let on = period(self.pattern.on, self.stream.draw());
        self.off_at = at.saturating_add(on);
    }
}

/// Returns the length in ns of a period with this mean. The probability of a longer period is `1 - u`.
fn period(mean: Duration, u: f64) -> u64 {
    let nanos = -libm::log(1.0 - u) * mean.as_nanos() as f64;
    (nanos as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transfers_arrive_as_a_poisson_process_with_pareto_sizes() {
        let (mut arrivals, mut gaps_squared, mut above) = (0u32, 0.0, 0u32);
        for seed in 0..20 {
            // The minimum size is 30 000 / 2 = 15 000; a quarter of all sizes exceed twice that (shape 2).
            let load: WebLoad = "down:10:30000b:2".parse().unwrap();
            let mut web = Web::new(load, Stream::new(seed, Source::Web(3)));
            let mut last = 0;
            while web.next < 100_000_000_000 {
                let gap = (web.next - last) as f64 / 1e9;
                gaps_squared += gap * gap;
                last = web.next;
                arrivals += 1;
                above += u32::from(web.segments(1000) > 30);
                web.wait();
            }
        }
        // 20 times 100 s at 10 a second: 20 000, with a standard deviation of 141.
        assert!((19_500..20_500).contains(&arrivals), "{arrivals}");
        // Exponential: the mean square is twice the square of the mean, 0.02.
        let mean_square = gaps_squared / f64::from(arrivals);
        assert!((mean_square - 0.02).abs() < 0.002, "{mean_square}");
        let share = f64::from(above) / f64::from(arrivals);
        assert!((share - 0.25).abs() < 0.015, "{share}");
    }

    #[test]
    fn a_size_has_the_pareto_quantiles_of_its_mean_and_shape() {
        // Minimum 30 000 * 0.5 / 1.5 = 10 000; the median is 2^(1/1.5) times that.
        let load = "down:2:30000b:1.5".parse().unwrap();
        let web = Web::new(load, Stream::new(1, Source::Web(0)));
        assert!((web.size(0.0) - 10_000.0).abs() < 1e-6);
        assert!((web.size(0.5) - 10_000.0 * 2f64.powf(1.0 / 1.5)).abs() < 1e-6);
        // Exponential with mean 0.5 s.
        assert!((web.gap(0.5) - 0.5 * 2f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn an_application_writes_its_size_at_its_pace_until_its_stop() {
        let mut sized = Application::new(Pace::AtOnce, 5, Some(70), None);
        assert_eq!(sized.act(5), Act::Write(70, u64::MAX));
        let mut steady = Application::new(Pace::Steady(10), 5, Some(2), Some(1000));
        assert_eq!(steady.act(5), Act::Write(1, 15));
        assert_eq!(steady.act(15), Act::Write(1, u64::MAX));
        let mut stopped = Application::new(Pace::Steady(10), 5, None, Some(12));
        assert_eq!(stopped.act(5), Act::Write(1, 12));
        assert!(!stopped.is_over());
        assert_eq!(stopped.act(12), Act::Close);
        assert!(stopped.is_over());
        let mut endless = Application::new(Pace::AtOnce, 5, None, Some(12));
        assert!(matches!(endless.act(5), Act::Write(_, 12)));
        assert_eq!(endless.act(12), Act::Close);
    }

    #[test]
    fn an_application_writes_at_its_rate_for_the_part_of_the_time_that_it_is_on() {
        let pattern: OnOff = "800kbit:500ms:1500ms".parse().unwrap();
        let mut written = 0;
        for seed in 0..20 {
            let mut on_off = OnOffApp::new(&pattern, 1000, 0, Stream::new(seed, Source::Upload(0)));
            let mut now = 0;
            while now < 1000 * 1_000_000_000 {
                now = on_off.next(now);
                written += 1;
            }
        }
        // One segment each 10 ms for a quarter of 20 000 s; about 10 000 cycles give a deviation of 1 %.
        assert!((480_000..520_000).contains(&written), "{written}");
    }
}
