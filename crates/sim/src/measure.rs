//! From a world's counters to a run's numbers.

use crate::agent::Agent;
use crate::link::{Busy, Load};
use crate::tcp::Variant;
use crate::world::World;
use asymq_core::Duration;
use asymq_scenario::{Direction, Goodput, Percentiles, Scenario, Series, Summary, Toward};

/// Interval of the time series: what the paper plots (paper 000, section 4).
pub(crate) const INTERVAL: Duration = Duration::from_millis(200);

/// Counters at one instant.
pub(crate) struct Snapshot {
    at: u64,
    busy: [Busy; 2],
    dropped: [u64; 2],
    /// Data segments delivered in order, per conversation. Counted when they leave the bottleneck,
    /// which is as much ahead of the receiver at the start of an interval as at its end.
    in_order: Vec<u64>,
}

impl Snapshot {
    /// The counters of a world that has run up to `at`.
    pub(crate) fn take<V: Variant>(world: &World<'_, V>, at: u64) -> Self {
        let in_order = |agent: &Agent<V>| match agent {
            Agent::Tcp(flow) => flow.receiver.data_in_order(),
            Agent::Udp(_) | Agent::Echo(_) | Agent::Web(_) => 0,
        };
        Self {
            at,
            busy: [0, 1].map(|toward| world.links[toward].busy(at)),
            dropped: [0, 1].map(|toward| world.links[toward].dropped()),
            in_order: world
                .lasting()
                .iter()
                .map(|conversation| in_order(&conversation.agent))
                .collect(),
        }
    }
}

/// Forgets delays measured so far.
pub(crate) fn forget_delays<V: Variant>(world: &mut World<'_, V>) {
    for link in &mut world.links {
        link.forget_sojourns();
    }
    for conversation in &mut world.conversations {
        if let Agent::Echo(echo) = &mut conversation.agent {
            echo.delays.clear();
        }
    }
}

/// The numbers of the time from `start` to `end`, at which `world` is.
pub(crate) fn summary<V: Variant>(
    scenario: &Scenario,
    world: &World<'_, V>,
    start: &Snapshot,
    end: &Snapshot,
) -> Summary {
    let span = (end.at - start.at) as f64;
    let direction = |toward: usize| {
        let share = |load: Load| {
            let busy = end.busy[toward][load as usize] - start.busy[toward][load as usize];
            busy as f64 / span
        };
        let (data, ack) = (share(Load::Data), share(Load::Ack));
        Direction {
            utilization: data + ack + share(Load::Other),
            data,
            ack,
            drops: (end.dropped[toward] - start.dropped[toward]) as f64,
            sojourn_ms: world.links[toward].sojourns().percentiles_ms(),
        }
    };
    let (up, down) = (direction(0), direction(1));
    let mut goodput = Goodput::default();
    let mut sparse_ms: Option<Percentiles> = None;
    for (index, conversation) in world.lasting().iter().enumerate() {
        match &conversation.agent {
            Agent::Tcp(flow) => {
                let segments = end.in_order[index] - start.in_order[index];
                let bits = (segments * u64::from(scenario.payload()) * 8) as f64;
                match flow.toward {
                    Toward::Up => &mut goodput.up,
                    Toward::Down => &mut goodput.down,
                }
                .push(bits / (span / 1e9));
            }
            Agent::Udp(_) | Agent::Web(_) => {}
            Agent::Echo(echo) => sparse_ms = Some(echo.delays.percentiles_ms()),
        }
    }
    Summary {
        utility: up.data + down.data,
        up,
        down,
        goodput,
        sparse_ms,
    }
}

/// Records a time series.
pub(crate) struct Recorder {
    last: [Busy; 2],
    series: Series,
}

impl Recorder {
    /// An empty series.
    pub(crate) fn new() -> Self {
        Self {
            last: [Busy::default(); 2],
            series: Series {
                interval_s: INTERVAL.as_secs_f64(),
                ..Series::default()
            },
        }
    }

    /// Records the interval that ends at `now`, to which the world has run.
    pub(crate) fn record<V: Variant>(&mut self, world: &World<'_, V>, now: u64) {
        let [up, down] = [0, 1].map(|toward| {
            let busy = world.links[toward].busy(now);
            let last = std::mem::replace(&mut self.last[toward], busy);
            let share = |ns: u64| ns as f64 / INTERVAL.as_nanos() as f64;
            let total = busy.iter().sum::<u64>() - last.iter().sum::<u64>();
            let data = busy[Load::Data as usize] - last[Load::Data as usize];
            (share(total), share(data))
        });
        let series = &mut self.series;
        series.up.push(up.0);
        series.down.push(down.0);
        series.data_up.push(up.1);
        series.data_down.push(down.1);
        series.backlog_up.push(world.links[0].waiting());
        series.backlog_down.push(world.links[1].waiting());
    }

    /// The series.
    pub(crate) fn finish(self) -> Series {
        self.series
    }
}
