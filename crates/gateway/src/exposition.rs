use crate::snapshot::{DirectionSnapshot, OF_CLASSES, OF_DIRECTIONS, Snapshot};
use asymq_core::decide::ack::Unfiltered;
use asymq_core::{Fate, Reason};
use std::fmt::Write;

/// Metrics per class and reason.
const OF_FATES: [(Fate, &str, &str); 2] = [
    (
        Fate::Dropped,
        "dropped_packets_total",
        "Packets dropped: senders detect the loss, and TCP retransmits.",
    ),
    (
        Fate::Filtered,
        "filtered_packets_total",
        "ACKs filtered: a later one acknowledges at least as much.",
    ),
];

const KEPT: &str = "ACKs that the ACK filter kept although a later ACK of their flow was queued, by the rule that kept them.";

/// Returns the snapshot in Prometheus' text format, in base units.
pub fn exposition(snapshot: &Snapshot) -> String {
    let mut page = Page(String::new());
    let directions = [("up", &snapshot.up), ("down", &snapshot.down)];
    let classes = || {
        let of = |(direction, of): (&'static str, &DirectionSnapshot)| {
            let classes = of.classes().map(|(class, of)| (class, *of));
            classes.map(|(class, of)| ([("direction", direction), ("class", class.name())], of))
        };
        directions.into_iter().flat_map(of)
    };
    for (name, help, value) in OF_DIRECTIONS {
        page.metric(name, help);
        for (direction, of) in directions {
            page.sample(name, &[("direction", direction)], value(of));
        }
    }
    for (name, help, value) in OF_CLASSES {
        page.metric(name, help);
        for (labels, of) in classes() {
            page.sample(name, &labels, value(&of));
        }
    }
    for (fate, name, help) in OF_FATES {
        page.metric(name, help);
        for ([direction, class], of) in classes() {
            for reason in Reason::ALL.iter().filter(|reason| reason.fate() == fate) {
                let labels = [direction, class, ("reason", reason.name())];
                page.sample(name, &labels, of.reasons[*reason as usize] as f64);
            }
        }
    }
    page.metric("unfiltered_acks_total", KEPT);
    for (direction, of) in directions {
        for (variable, count) in &of.control {
            if let Some(unfiltered) = Unfiltered::counted_by(variable) {
                let labels = [("direction", direction), ("reason", unfiltered.name())];
                page.sample("unfiltered_acks_total", &labels, *count);
            }
        }
    }
    let help = "Sojourn time (time in the queue) of the packets sent in the last interval.";
    page.metric("sojourn_seconds", help);
    for ([direction, class], of) in classes() {
        for (quantile, millis) in [
            ("0.5", of.sojourn_p50_ms),
            ("0.95", of.sojourn_p95_ms),
            ("0.99", of.sojourn_p99_ms),
        ] {
            let labels = [direction, class, ("quantile", quantile)];
            page.sample("sojourn_seconds", &labels, millis / 1e3);
        }
    }
    let help = "Time from the arrival of a TCP segment from home to the departure of its answer, over the last interval.";
    page.metric("round_trip_seconds", help);
    for (class, of) in snapshot.up.classes() {
        for (quantile, millis) in [
            ("0.5", of.round_trip_p50_ms),
            ("0.99", of.round_trip_p99_ms),
        ] {
            let labels = [("class", class.name()), ("quantile", quantile)];
            page.sample("round_trip_seconds", &labels, millis / 1e3);
        }
    }
    page.metric("changes_total", "Changes of the settings.");
    page.sample("changes_total", &[], snapshot.changes as f64);
    let help = "Current values of the discipline's control variables, by name.";
    page.metric("control", help);
    for (direction, of) in directions {
        let is_counted = |(name, _): &(&&str, _)| Unfiltered::counted_by(name).is_none();
        for (name, value) in of.control.iter().filter(is_counted) {
            page.sample(
                "control",
                &[("direction", direction), ("name", name)],
                *value,
            );
        }
    }
    page.metric("lost_frames_total", "Frames lost at an interface.");
    for (port, losses) in [("lan", &snapshot.losses.lan), ("wan", &snapshot.losses.wan)] {
        for (reason, count) in losses.by_name() {
            let labels = [("port", port), ("reason", reason)];
            page.sample("lost_frames_total", &labels, count as f64);
        }
    }
    page.0
}

struct Page(String);

impl Page {
    fn metric(&mut self, name: &str, help: &str) {
        let kind = match name.ends_with("_total") {
            true => "counter",
            false => "gauge",
        };
        // Writing to a string never fails.
        let _ = writeln!(
            self.0,
            "# HELP asymq_{name} {help}\n# TYPE asymq_{name} {kind}"
        );
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: f64) {
        let labels = labels.iter().map(|(label, of)| format!("{label}=\"{of}\""));
        let labels = match labels.collect::<Vec<_>>().join(",") {
            none if none.is_empty() => none,
            labels => format!("{{{labels}}}"),
        };
        let _ = writeln!(self.0, "asymq_{name}{labels} {value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn every_reason_that_a_packet_can_leave_for_is_a_sample() {
        let page = exposition(&Snapshot::default());
        for reason in Reason::ALL {
            let label = format!("reason=\"{}\"", reason.name());
            assert_eq!(page.matches(&label).count(), 6, "{label}");
        }
    }

    #[test]
    fn acks_that_were_kept_are_counted_by_their_reason() {
        let mut snapshot = Snapshot::default();
        for unfiltered in Unfiltered::ALL {
            snapshot.up.control.insert(unfiltered.variable(), 7.0);
        }
        let page = exposition(&snapshot);
        for reason in ["losses", "marks", "stretch", "other"] {
            let sample =
                format!("asymq_unfiltered_acks_total{{direction=\"up\",reason=\"{reason}\"}} 7\n");
            assert!(page.contains(&sample), "{page}");
        }
        assert!(!page.contains("unfiltered_marks"), "{page}");
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
                None => assert_eq!(line.split(['{', ' ']).next(), Some(metric), "{line}"),
            }
        }
    }
}
