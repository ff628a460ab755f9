//! Snapshots for Prometheus, in the text exposition format.

use crate::snapshot::{ClassSnapshot, DirectionSnapshot, Snapshot};
use asymq_core::Fate;
use std::fmt::{Display, Write};

/// The snapshot in Prometheus' text format, in base units.
pub fn exposition(snapshot: &Snapshot) -> String {
    let mut page = Page(String::new());
    let directions = [("up", &snapshot.up), ("down", &snapshot.down)];

    let of_directions: [Metric<DirectionSnapshot>; 3] = [
        gauge(
            "capacity_bytes_per_second",
            "Configured capacity of the link.",
            |of| of.capacity as f64 / 8.0,
        ),
        counter("regenerated_acks_total", "ACKs regenerated.", |of| {
            of.regenerated as f64
        }),
        gauge(
            "data_bytes_per_ack",
            "Bytes of TCP data sent in the other direction for every ACK sent, over the last interval.",
            |of| of.data_bytes_per_ack,
        ),
    ];
    for (name, kind, help, value) in of_directions {
        page.metric(name, kind, help);
        for (direction, of) in directions {
            page.sample(name, &[("direction", direction)], value(of));
        }
    }

    let of_classes: [Metric<ClassSnapshot>; 5] = [
        counter("packets_total", "Packets sent.", |of| of.packets as f64),
        counter("bytes_total", "Bytes sent, as charged to the link.", |of| {
            of.bytes as f64
        }),
        gauge("backlog_packets", "Packets that wait.", |of| {
            of.backlog_packets.into()
        }),
        gauge("backlog_bytes", "Bytes that wait.", |of| {
            of.backlog_bytes as f64
        }),
        counter(
            "marked_packets_total",
            "Packets sent with a congestion mark that the discipline set.",
            |of| of.marked as f64,
        ),
    ];
    for (name, kind, help, value) in of_classes {
        page.metric(name, kind, help);
        for (direction, of) in directions {
            for (class, of) in of.classes() {
                let labels = [("direction", direction), ("class", class.name())];
                page.sample(name, &labels, value(of));
            }
        }
    }

    let fates = [
        (
            Fate::Dropped,
            "Packets dropped: senders have to send them again, or feel their loss.",
        ),
        (
            Fate::Filtered,
            "ACKs filtered: a later one says all that they say.",
        ),
    ];
    for (fate, help) in fates {
        let name = format!("{}_packets_total", fate.name());
        page.metric(&name, "counter", help);
        for (direction, of) in directions {
            for (class, of) in of.classes() {
                for (reason, count) in of.reasons.iter().filter(|(of, _)| of.fate() == fate) {
                    let labels = [
                        ("direction", direction),
                        ("class", class.name()),
                        ("reason", reason.name()),
                    ];
                    page.sample(&name, &labels, count);
                }
            }
        }
    }

    page.metric(
        "sojourn_seconds",
        "gauge",
        "Time in the queue of what left it in the last interval.",
    );
    for (direction, of) in directions {
        for (class, of) in of.classes() {
            let quantiles = [
                ("0.5", of.sojourn_p50_ms),
                ("0.95", of.sojourn_p95_ms),
                ("0.99", of.sojourn_p99_ms),
            ];
            for (quantile, millis) in quantiles {
                let labels = [
                    ("direction", direction),
                    ("class", class.name()),
                    ("quantile", quantile),
                ];
                page.sample("sojourn_seconds", &labels, millis / 1e3);
            }
        }
    }

    page.metric("control", "gauge", "Control variables of the discipline.");
    for (direction, of) in directions {
        for (name, value) in &of.control {
            page.sample(
                "control",
                &[("direction", direction), ("name", name)],
                value,
            );
        }
    }

    let lost = "Frames lost at an interface.";
    page.metric("lost_frames_total", "counter", lost);
    for (port, losses) in [("lan", &snapshot.losses.lan), ("wan", &snapshot.losses.wan)] {
        for (reason, count) in losses.by_name() {
            page.sample(
                "lost_frames_total",
                &[("port", port), ("reason", reason)],
                count,
            );
        }
    }
    page.0
}

/// Name, type, help, and the value of a part of the snapshot.
type Metric<T> = (&'static str, &'static str, &'static str, fn(&T) -> f64);

fn counter<T>(name: &'static str, help: &'static str, value: fn(&T) -> f64) -> Metric<T> {
    (name, "counter", help, value)
}

fn gauge<T>(name: &'static str, help: &'static str, value: fn(&T) -> f64) -> Metric<T> {
    (name, "gauge", help, value)
}

struct Page(String);

impl Page {
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(
            self.0,
            "# HELP asymq_{name} {help}\n# TYPE asymq_{name} {kind}"
        );
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{value}\""))
            .collect();
        let _ = writeln!(self.0, "asymq_{name}{{{}}} {value}", labels.join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_core::Reason;
    #[test]
    fn every_reason_that_a_packet_can_leave_for_is_a_sample() {
        let page = exposition(&Snapshot::default());
        for reason in Reason::ALL {
            let label = format!("reason=\"{}\"", reason.name());
            assert_eq!(page.matches(&label).count(), 6, "{label}");
        }
    }

    #[test]
    fn every_sample_follows_the_type_of_its_metric() {
        let mut snapshot = Snapshot::default();
        snapshot.down.control.insert("data_share", 0.5);
        let page = exposition(&snapshot);
        let mut metric = "";
        for line in page.lines() {
            match line.strip_prefix("# TYPE ") {
                Some(line) => metric = line.split(' ').next().unwrap(),
                None if line.starts_with('#') => {}
                None => assert_eq!(line.split('{').next(), Some(metric), "{line}"),
            }
        }
    }
}
