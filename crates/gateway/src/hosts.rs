//! Hosts and flows with the largest traffic, as the page shows them.

use crate::flows::{FlowSnapshot, FlowTraffic, Traffic};
use asymq_core::units::Duration;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Hosts of the table, and flows of each.
const HOSTS: usize = 32;
const FLOWS: usize = 10;

#[derive(Serialize)]
struct Table {
    format: u32,
    /// Seconds over which rates and delays are computed.
    interval: f64,
    hosts: Vec<HostRow>,
    /// All other hosts together.
    others: Option<HostRow>,
}

#[derive(Default, Serialize)]
struct HostRow {
    /// `null` for packets that are not IP, and for `others`.
    address: Option<IpAddr>,
    #[serde(flatten)]
    directions: Directions,
    flows: usize,
    largest: Vec<FlowRow>,
}

#[derive(Serialize)]
struct FlowRow {
    /// Protocol above IP (IANA number).
    protocol: u8,
    port: u16,
    /// Address of the far end.
    to: Option<IpAddr>,
    to_port: u16,
    #[serde(flatten)]
    directions: Directions,
}

#[derive(Default, Serialize)]
struct Directions {
    up: Rates,
    down: Rates,
}

#[derive(Default, Serialize)]
struct Rates {
    /// Sent, in bit/s.
    rate: f64,
    packets: u64,
    backlog_packets: u32,
    backlog_bytes: u64,
    /// Sojourn times in ms of sent packets.
    sojourn_mean_ms: f64,
    sojourn_max_ms: f64,
}

impl Directions {
    fn new(traffic: &[Traffic; 2], interval: f64) -> Self {
        let ms = |time: Duration| (time.as_secs_f64() * 1e5).round() / 100.0;
        let [up, down] = traffic.map(|of| Rates {
            rate: (of.bytes as f64 * 8.0 / interval).round(),
            packets: of.packets,
            backlog_packets: of.backlog_packets,
            backlog_bytes: of.backlog_bytes,
            sojourn_mean_ms: ms(of.sojourn / of.packets.max(1)),
            sojourn_max_ms: ms(of.longest_sojourn),
        });
        Self { up, down }
    }
}

/// The table of a snapshot as JSON; empty without one.
pub(crate) fn hosts_json(snapshot: &FlowSnapshot) -> String {
    let mut hosts: BTreeMap<Option<IpAddr>, Vec<&FlowTraffic>> = BTreeMap::new();
    for flow in &snapshot.flows {
        let address = flow.ends.map(|ends| ends.hosts[0]);
        hosts.entry(address).or_default().push(flow);
    }
    let mut hosts: Vec<_> = hosts
        .into_iter()
        .map(|(address, flows)| (address, sum(flows.iter().map(|flow| &flow.traffic)), flows))
        .collect();
    hosts.sort_by_key(|(_, traffic, _)| Reverse(bytes(traffic)));
    let rest = hosts.split_off(HOSTS.min(hosts.len()));
    let traffic = rest.iter().map(|(_, traffic, _)| traffic);
    let others = sum(traffic.chain([&snapshot.others]));
    let interval = snapshot.interval;
    let table = Table {
        format: 1,
        interval,
        hosts: hosts
            .into_iter()
            .map(|(address, traffic, flows)| HostRow {
                address,
                directions: Directions::new(&traffic, interval),
                flows: flows.len(),
                largest: largest(flows, interval),
            })
            .collect(),
        others: (others != <[Traffic; 2]>::default()).then(|| HostRow {
            directions: Directions::new(&others, interval),
            flows: rest.iter().map(|(_, _, flows)| flows.len()).sum(),
            ..HostRow::default()
        }),
    };
    serde_json::to_string(&table).unwrap_or_default()
}

fn largest(mut flows: Vec<&FlowTraffic>, interval: f64) -> Vec<FlowRow> {
    flows.sort_by_key(|flow| Reverse(bytes(&flow.traffic)));
    let row = |flow: &FlowTraffic| FlowRow {
        protocol: flow.ends.map_or(0, |ends| ends.protocol),
        port: flow.ends.map_or(0, |ends| ends.ports[0]),
        to: flow.ends.map(|ends| ends.hosts[1]),
        to_port: flow.ends.map_or(0, |ends| ends.ports[1]),
        directions: Directions::new(&flow.traffic, interval),
    };
    flows.into_iter().take(FLOWS).map(row).collect()
}

fn sum<'a>(parts: impl Iterator<Item = &'a [Traffic; 2]>) -> [Traffic; 2] {
    let mut sum = [Traffic::default(); 2];
    for part in parts {
        sum.iter_mut().zip(part).for_each(|(sum, of)| sum.add(of));
    }
    sum
}

fn bytes(traffic: &[Traffic; 2]) -> u64 {
    traffic.iter().map(|of| of.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flows::tests::{requested, send};
    use asymq_core::Direction;

    fn table(counters: &mut crate::flows::FlowCounters) -> serde_json::Value {
        let snapshot = counters.snapshot(2.0, |_, _| {}).unwrap();
        serde_json::from_str(&hosts_json(&snapshot)).unwrap()
    }

    #[test]
    fn the_largest_host_comes_first_with_the_sum_of_its_flows() {
        let mut counters = requested();
        send(&mut counters, Direction::Up, 2, 7, 500);
        for flow in 1..=12 {
            send(&mut counters, Direction::Up, 1, 100 + flow, 100);
        }
        send(&mut counters, Direction::Down, 1, 101, 1000);
        let table = table(&mut counters);
        assert_eq!(table["interval"], 2.0);
        assert!(table["others"].is_null());
        let [one, two] = [0, 1].map(|host| &table["hosts"][host]);
        assert_eq!(one["address"], "10.0.0.1");
        assert_eq!(one["up"]["rate"], 12.0 * 100.0 * 4.0);
        assert_eq!((&one["flows"], &two["flows"]), (&12.into(), &1.into()));
        let largest = one["largest"].as_array().unwrap();
        assert_eq!(largest.len(), FLOWS);
        assert_eq!(largest[0]["to"], "10.0.0.200");
        assert_eq!(
            (&largest[0]["port"], &largest[0]["to_port"]),
            (&1000.into(), &101.into())
        );
        assert_eq!(largest[0]["down"]["rate"], 4000.0);
        assert_eq!(two["up"]["sojourn_mean_ms"], 7.0);
    }

    #[test]
    fn hosts_beyond_the_table_are_one_row() {
        let mut counters = requested();
        for host in 0..100 {
            send(
                &mut counters,
                Direction::Up,
                host,
                1000 + u64::from(host),
                100 + u32::from(host),
            );
        }
        let table = table(&mut counters);
        assert_eq!(table["hosts"].as_array().unwrap().len(), HOSTS);
        assert_eq!(table["hosts"][0]["address"], "10.0.0.99");
        assert_eq!(table["others"]["flows"], 100 - HOSTS);
        assert_eq!(table["others"]["up"]["packets"], 100 - HOSTS);
    }
}
