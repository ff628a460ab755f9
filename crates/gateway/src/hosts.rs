//! Hosts and flows with the most traffic, as the page shows them.

use crate::flows::{FlowSnapshot, FlowTraffic, Traffic};
use asymq_core::units::Duration;
use serde_json::{Value, json};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// Maximum number of hosts in the table, and of flows per host.
const HOSTS: usize = 32;
const FLOWS: usize = 10;

/// Traffic in both directions: rates in bit/s, sojourn times of sent packets in ms.
fn directions(traffic: &[Traffic; 2], interval: f64) -> [Value; 2] {
    let ms = |time: Duration| (time.as_secs_f64() * 1e5).round() / 100.0;
    traffic.map(|of| {
        json!({
            "rate": (of.bytes as f64 * 8.0 / interval).round(),
            "packets": of.packets,
            "backlog_packets": of.backlog_packets,
            "backlog_bytes": of.backlog_bytes,
            "sojourn_mean_ms": ms(of.sojourn / of.packets.max(1)),
            "sojourn_max_ms": ms(of.longest_sojourn),
        })
    })
}

/// Row of a host. The address is `null` in the row for packets that are not IP, and in the row for all other hosts.
fn host(
    address: Option<IpAddr>,
    traffic: &[Traffic; 2],
    flows: usize,
    largest: Vec<Value>,
    interval: f64,
) -> Value {
    let [up, down] = directions(traffic, interval);
    json!({"address": address, "up": up, "down": down, "flows": flows, "largest": largest})
}

fn flow(flow: &FlowTraffic, interval: f64) -> Value {
    let ends = flow.ends.as_ref();
    let port = |of: usize| ends.map_or(0, |ends| ends.ports[of]);
    let [up, down] = directions(&flow.traffic, interval);
    json!({
        "protocol": ends.map_or(0, |ends| ends.protocol),
        "port": port(0),
        "to": ends.map(|ends| ends.hosts[1]),
        "to_port": port(1),
        "up": up,
        "down": down,
    })
}

/// Returns the table of a snapshot as JSON; the table is empty without traffic.
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
    let rows = hosts.into_iter().map(|(address, traffic, mut flows)| {
        flows.sort_by_key(|flow| Reverse(bytes(&flow.traffic)));
        let largest = flows.iter().take(FLOWS).map(|of| flow(of, interval));
        host(address, &traffic, flows.len(), largest.collect(), interval)
    });
    let others = (others != <[Traffic; 2]>::default()).then(|| {
        let flows = rest.iter().map(|(_, _, flows)| flows.len()).sum();
        host(None, &others, flows, Vec::new(), interval)
    });
    let rows: Vec<Value> = rows.collect();
    json!({"format": 1, "interval": interval, "hosts": rows, "others": others}).to_string()
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
