//! Short transfers: creation, delivered bytes and completion times.

use super::Agent;
use super::applications::Web;
use super::conversation::{AccessLosses, Conversation};
use super::conversations::{flow, impair};
use crate::congestion::TcpModel;
use crate::links::{Dumbbell, access_rate};
use crate::packets::{Kind, Layout};
use crate::variant::Variant;
use asymq_core::Duration;
use asymq_core::measure::Histogram;
use asymq_scenario::Scenario;

/// Bytes delivered in order: as payload, and with headers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Delivered {
    pub(crate) payload: u64,
    pub(crate) wire: u64,
}

impl Delivered {
    /// Adds `segments` of a conversation.
    pub(crate) fn add(&mut self, layout: &Layout, segments: u64) {
        self.payload += segments * u64::from(layout.payload());
        self.wire += segments * u64::from(layout.charged(Kind::Data));
    }
}

/// Template for new short transfers, and totals of retired ones, whose indices were reused.
pub(crate) struct Transfers {
    scenario: Scenario,
    model: TcpModel,
    dumbbell: Dumbbell,
    /// Segments, by direction.
    delivered: [u64; 2],
    access_losses: [AccessLosses; 2],
    completions: Histogram,
    /// Completions up to this time in ns are not counted.
    from: u64,
}

impl Transfers {
    pub(crate) fn new(scenario: Scenario, model: TcpModel, dumbbell: Dumbbell) -> Self {
        Self {
            scenario,
            model,
            dumbbell,
            delivered: [0; 2],
            access_losses: Default::default(),
            completions: Histogram::default(),
            from: 0,
        }
    }

    /// Starts a transfer of a load at `now`, with the index of a completed transfer or a new index.
    pub(crate) fn start<V: Variant>(
        &self,
        now: u64,
        web: &mut Web,
        place: Result<&Layout, usize>,
    ) -> Conversation<V> {
        let Self {
            scenario,
            model,
            dumbbell,
            ..
        } = self;
        let phase = web.stream.draw();
        let segments = web.segments(scenario.payload());
        let Web { load, stream, .. } = web;
        let clock = || [stream.draw(), stream.draw()];
        let mut flow = flow(scenario, model, load.direction, now, phase, clock);
        flow.sender.limit_to(segments);
        let server = dumbbell.server(scenario.rtt.at(stream.draw()), dumbbell.links);
        let layout = match place {
            Ok(past) => past.next_generation(),
            Err(index) => Layout::of(index, scenario, 0),
        };
        let agent = Agent::Tcp(Box::new(flow));
        let delays = [dumbbell.home, server];
        let mut conversation = Conversation::new(agent, layout, access_rate(scenario), delays);
        let impairment = scenario.netem_access_up.or(scenario.netem_access_down);
        if impairment.is_some() {
            let seeds = [0; 2].map(|_| stream.draw().to_bits());
            impair(&mut conversation, scenario, seeds);
        }
        conversation
    }

    /// Clears completions up to `now`.
    pub(crate) fn clear_completions(&mut self, now: u64) {
        self.completions.clear();
        self.from = now;
    }

    /// Adds a completed transfer to the totals, before another one uses its index.
    pub(crate) fn retire<V: Variant>(&mut self, transfer: &Conversation<V>) {
        count(&mut self.delivered, transfer);
        for (direction, past) in self.access_losses.iter_mut().enumerate() {
            *past = past.plus(transfer.access_losses(direction));
        }
        record(&mut self.completions, transfer, self.from);
    }

    /// Segments delivered by retired transfers and by those in `present`, by direction.
    pub(crate) fn delivered<V: Variant>(&self, present: &[Conversation<V>]) -> [u64; 2] {
        let mut all = self.delivered;
        present
            .iter()
            .for_each(|transfer| count(&mut all, transfer));
        all
    }

    /// Layout of the first transfer; all transfers have packets of equal lengths.
    pub(crate) fn layout(&self) -> Layout {
        Layout::of(0, &self.scenario, 0)
    }

    /// Losses of retired transfers on the access links of a direction.
    pub(crate) const fn access_losses(&self, direction: usize) -> AccessLosses {
        self.access_losses[direction]
    }

    /// Completion times of retired transfers, and of completed transfers in `present`.
    pub(crate) fn completions<V: Variant>(&self, present: &[Conversation<V>]) -> Histogram {
        let mut all = self.completions.clone();
        for transfer in present {
            record(&mut all, transfer, self.from);
        }
        all
    }
}

/// Adds the segments that a transfer has delivered in order.
fn count<V: Variant>(delivered: &mut [u64; 2], transfer: &Conversation<V>) {
    if let Agent::Tcp(flow) = &transfer.agent {
        delivered[flow.direction as usize] += flow.receiver.data_in_order();
    }
}

/// Records a transfer's time from its start until all data was acknowledged. Ignores completions up to `from`.
fn record<V: Variant>(completions: &mut Histogram, transfer: &Conversation<V>, from: u64) {
    if let Agent::Tcp(flow) = &transfer.agent
        && let Some(at) = flow.sender.done_at().filter(|at| *at > from)
    {
        completions.record(Duration::from_nanos(at.saturating_sub(flow.start)));
    }
}
