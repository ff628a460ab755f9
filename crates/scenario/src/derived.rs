//! Derived scenarios and flows: the settings of one listed flow, QUIC flows as listed flows.

use crate::ack_policy::AckPolicy;
use crate::draw::Source;
use crate::encapsulation::{Encapsulation, Tunnel};
use crate::flow::ListedFlow;
use crate::quic::{QuicFlows, QuicStack};
use crate::scenario::Scenario;
use crate::tcp::TcpEcn;
use asymq_core::Direction;
use asymq_core::units::{Duration, suggestion};

impl ListedFlow {
    /// Returns a copy of the scenario in which this flow's values replace the common values.
    pub fn own(&self, scenario: &Scenario) -> Scenario {
        let tcp = self.tcp.unwrap_or(scenario.tcp);
        let sack = match tcp == scenario.tcp {
            true => scenario.sack,
            false => tcp.has_sack_by_default(),
        };
        let is_linux = tcp.is_linux() && tcp != scenario.tcp;
        Scenario {
            rtt: self.rtt.unwrap_or(scenario.rtt),
            tcp,
            // QUIC's ACKs carry ranges, like TCP's ACKs with SACK.
            sack: self.sack.unwrap_or(sack) || self.encapsulation == Encapsulation::Quic,
            // Inherited from the scenario, if the flow's congestion control supports ECN.
            tcp_ecn: match tcp.ecn() {
                TcpEcn::Required => true,
                TcpEcn::Unspecified => false,
                TcpEcn::AsLoss => {
                    scenario.tcp_ecn && (tcp == scenario.tcp || !scenario.tcp.needs_ecn())
                }
            },
            accecn: scenario.accecn && tcp.ecn() != TcpEcn::Unspecified,
            ace_only: scenario.ace_only && tcp.ecn() != TcpEcn::Unspecified,
            hystart: scenario.hystart && tcp.has_hystart() || is_linux,
            byte_counting: scenario.byte_counting && tcp.counts_bytes() || is_linux,
            mss: match (self.mss, self.encapsulation.tunnel()) {
                (Some(mss), _) => mss.0.try_into().unwrap_or(u32::MAX),
                (None, Some(_)) => scenario.mss.min(Tunnel::MTU - scenario.header),
                (None, None) => scenario.mss,
            },
            ack_policy: match self.ack_policy.or(self.stack.map(QuicStack::policy)) {
                Some(policy) => policy,
                None if is_linux => AckPolicy::LINUX,
                None => scenario.ack_policy,
            },
            ..scenario.clone()
        }
    }

    /// Returns the flow's start time in the run with this seed.
    pub fn start(&self, own: &Scenario, seed: u64, source: Source) -> Duration {
        self.start.unwrap_or_else(|| own.flow_start(seed, source))
    }
}

impl QuicFlows {
    /// Returns these flows as listed flows for the simulator.
    ///
    /// # Errors
    /// The simulator has no stack of this name.
    pub fn listed(&self) -> Result<Vec<ListedFlow>, String> {
        let stack = QuicStack::named(&self.stack);
        if stack.is_none() {
            let known = QuicStack::ALL.iter().map(|stack| stack.name);
            let known = suggestion(&self.stack, known);
            return Err(format!("{}: not simulated{known}", self.stack));
        }
        let flow = |direction: Direction| {
            let mut flow: ListedFlow = direction.to_string().parse()?;
            flow.encapsulation = Encapsulation::Quic;
            (flow.stack, flow.tcp) = (stack, self.tcp);
            let policy = |every| AckPolicy::Every(every, Duration::from_millis(25));
            flow.ack_policy = self.ack_every.map(policy);
            Ok(flow)
        };
        let of = |direction, count: u32| std::iter::repeat_n(direction, count as usize);
        of(Direction::Up, self.up)
            .chain(of(Direction::Down, self.down))
            .map(flow)
            .collect()
    }
}
