//! Conversations of a run: addresses, ports, round-trip and start times.

use asymq_core::units::Duration;
use asymq_scenario::{Direction, Scenario, Source};
use std::net::Ipv4Addr;

/// Home's address.
pub(crate) const HOME: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 1);
/// The servers' address, on the same Ethernet as home.
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);

pub(crate) const UPLOAD_PORT: u16 = 5001;
pub(crate) const DOWNLOAD_PORT: u16 = 5002;
/// Port of the probe's server.
pub(crate) const PROBE_PORT: u16 = 7;
pub(crate) const QUIC_PORT: u16 = 4433;
/// Servers' port for constant-rate UDP.
pub(crate) const BURST_PORT: u16 = 9;

// Ports at home identify conversations. A scenario has at most 1000 flows per direction.
const FIRST_UPLOAD: u16 = 20_000;
const FIRST_DOWNLOAD: u16 = 21_000;
const PROBE: u16 = 22_000;
const FIRST_BURST: u16 = 22_001;
const FIRST_QUIC_UPLOAD: u16 = 24_000;
const FIRST_QUIC_DOWNLOAD: u16 = 25_000;
const MAX_FLOWS: u16 = 1000;

pub(crate) struct Conversation {
    pub(crate) home_port: u16,
    /// Propagation delay, up plus down.
    pub(crate) rtt: Duration,
    pub(crate) start: Duration,
}

pub(crate) struct Plan {
    pub(crate) uploads: Vec<Conversation>,
    pub(crate) downloads: Vec<Conversation>,
    /// Uploads and downloads of QUIC.
    pub(crate) quic: [Vec<Conversation>; 2],
    pub(crate) probe: Conversation,
    /// Conversations of the scenario's UDP bursts, one for each.
    pub(crate) bursts: Vec<Conversation>,
    /// Seed of the path's random numbers.
    pub(crate) seed: u64,
}

impl Plan {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Self {
        let flow = |source, home_port| Conversation {
            home_port,
            rtt: scenario.flow_rtt(seed, source),
            start: scenario.flow_start(seed, source),
        };
        let other = |home_port| Conversation {
            home_port,
            rtt: scenario.rtt.min,
            start: Duration::ZERO,
        };
        let flows = |count, source: fn(u32) -> Source, first: u16| {
            let ports = (0..count).zip(first..);
            ports
                .map(|(number, port)| flow(source(number), port))
                .collect()
        };
        let quic = scenario
            .quic
            .as_ref()
            .map_or((0, 0), |quic| (quic.up, quic.down));
        Self {
            uploads: flows(scenario.flows_up, Source::Upload, FIRST_UPLOAD),
            downloads: flows(scenario.flows_down, Source::Download, FIRST_DOWNLOAD),
            quic: [
                flows(quic.0, Source::Upload, FIRST_QUIC_UPLOAD),
                flows(quic.1, Source::Download, FIRST_QUIC_DOWNLOAD),
            ],
            seed,
            probe: other(PROBE),
            bursts: scenario
                .udp
                .iter()
                .zip(FIRST_BURST..)
                .map(|(_, port)| other(port))
                .collect(),
        }
    }

    /// Index of the upload or download with this port at home.
    pub(crate) fn flow_of_port(home_port: u16, direction: Direction) -> Option<usize> {
        let first = direction.pick(FIRST_UPLOAD, FIRST_DOWNLOAD);
        home_port
            .checked_sub(first)
            .filter(|index| *index < MAX_FLOWS)
            .map(usize::from)
    }

    /// Round-trip time by port at home; zero for unused ports.
    pub(crate) fn rtt_by_port(&self) -> Vec<Duration> {
        let mut rtts = vec![Duration::ZERO; 1 << 16];
        let flows = self.uploads.iter().chain(&self.downloads);
        let flows = flows.chain(self.quic.iter().flatten());
        for talk in flows.chain([&self.probe]).chain(&self.bursts) {
            rtts[usize::from(talk.home_port)] = talk.rtt;
        }
        rtts
    }
}
