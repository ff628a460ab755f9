//! Live table of a running gateway.

use crate::snapshot::{ClassSnapshot, DirectionSnapshot, Snapshot};
use asymq_core::{Limit, TrafficClass};
use std::fmt::Write;

/// Formats the snapshot in about ten lines of at most 80 characters.
pub fn table(title: &str, snapshot: &Snapshot) -> String {
    let mut text = format!("{title}\n\n");
    let mut line = |name: &str, cells: [String; 5]| {
        let _ = write!(text, "{name:<10}");
        for cell in cells {
            let _ = write!(text, "{cell:>14}");
        }
        text.push('\n');
    };
    let directions = [("up", &snapshot.up), ("down", &snapshot.down)];
    let heads = ["rate", "of the link", "ACKs", "data", "other"];
    line("", heads.map(String::from));
    for (name, direction) in directions {
        line(name, traffic(direction));
    }
    line("", Default::default());
    let heads = ["backlog", "", "sojourn p50", "p99", "dropped"];
    line("queue", heads.map(String::from));
    for (name, direction) in directions {
        for (class, of) in direction.classes() {
            // The lines for ACKs and data of the uplink are always shown.
            if is_active(of) || name == "up" && class != TrafficClass::Other {
                line(&format!("{name} {}", class.name()), queue(of));
            }
        }
    }
    text.push('\n');
    for (name, direction) in directions {
        for counts in [losses_of_queue(direction), regeneration(direction)] {
            if !counts.is_empty() {
                text += &wrap(&format!("{name}:"), counts.split_inclusive(", "));
            }
        }
    }
    for (name, direction) in directions {
        let control = direction.control.iter();
        let control: Vec<String> = control
            .map(|(name, value)| format!("{name} {}", round(*value)))
            .collect();
        if !control.is_empty() {
            let control = control.iter().map(|pair| format!("{pair}  "));
            text += &wrap(&format!("{name}:"), control);
        }
    }
    for (port, losses) in [("lan", snapshot.losses.lan), ("wan", snapshot.losses.wan)] {
        let lost = join_counts(losses.by_name());
        if !lost.is_empty() {
            let lost = lost.replace('_', " ");
            text += &wrap(&format!("lost at {port}:"), lost.split_inclusive(", "));
        }
    }
    let sending = snapshot.sending;
    for (port, sending) in [("lan", sending.lan), ("wan", sending.wan)] {
        if let Some(sending) = sending {
            let _ = writeln!(text, "{port} sends by {sending}");
        }
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

/// Wraps `parts` after `head` at 80 characters. A line wrapped by the terminal would make the table scroll.
fn wrap(head: &str, parts: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let (mut text, mut line) = (String::new(), format!("{head} "));
    for part in parts {
        let part = part.as_ref();
        if line.len() + part.trim_end().len() > 80 {
            text = text + line.trim_end() + "\n";
            line = " ".repeat(head.len() + 1);
        }
        line += part;
    }
    text + line.trim_end() + "\n"
}

/// True if the table shows the queue of this class.
fn is_active(class: &ClassSnapshot) -> bool {
    let counts = u64::from(class.backlog_packets) + class.dropped + class.filtered + class.marked;
    counts > 0 || class.sojourn_p99_ms > 0.0
}

fn traffic(direction: &DirectionSnapshot) -> [String; 5] {
    let share = match direction.capacity {
        0 => "-".into(),
        capacity => format!("{:.1} %", 100.0 * direction.rate / capacity as f64),
    };
    [
        rate(direction.rate),
        share,
        rate(direction.ack.rate),
        rate(direction.data.rate),
        rate(direction.other.rate),
    ]
}

fn queue(class: &ClassSnapshot) -> [String; 5] {
    [
        Limit::Packets(class.backlog_packets).to_string(),
        scaled(class.backlog_bytes as f64, ["B", "kB", "MB"]),
        format!("{} ms", round(class.sojourn_p50_ms)),
        format!("{} ms", round(class.sojourn_p99_ms)),
        class.dropped.to_string(),
    ]
}

/// Lists the numbers of packets that were not sent, by reason, and the number of marked packets.
fn losses_of_queue(direction: &DirectionSnapshot) -> String {
    let classes = direction.classes();
    let reasons = asymq_core::Reason::ALL.iter().map(|reason| {
        let counts = classes
            .iter()
            .map(|(_, class)| class.reasons[*reason as usize]);
        (reason.name(), counts.sum())
    });
    let marked = classes.iter().map(|(_, class)| class.marked).sum();
    join_counts(reasons.chain([("marked", marked)]))
}

fn regeneration(direction: &DirectionSnapshot) -> String {
    if direction.regenerated + direction.ack.filtered == 0 {
        return String::new();
    }
    format!(
        "{} regenerated, {} B of data per ACK",
        direction.regenerated,
        round(direction.data_bytes_per_ack)
    )
}

/// Joins the counts that are not zero.
fn join_counts(counts: impl IntoIterator<Item = (&'static str, u64)>) -> String {
    let counts = counts.into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    counts.join(", ")
}

fn rate(bits_per_sec: f64) -> String {
    scaled(bits_per_sec, ["bit/s", "kbit/s", "Mbit/s"])
}

fn scaled(value: f64, units: [&str; 3]) -> String {
    let (value, unit) = match value {
        v if v < 1e3 => (v, units[0]),
        v if v < 1e6 => (v / 1e3, units[1]),
        v => (v / 1e6, units[2]),
    };
    format!("{} {unit}", round(value))
}

/// Formats with two decimals below 10 and one below 100, otherwise or for integers with none.
fn round(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        v if v < 10.0 && v.fract() != 0.0 => format!("{value:.2}"),
        v if v < 100.0 && v.fract() != 0.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::Losses;
    use asymq_core::Reason;

    #[test]
    fn the_table_is_aligned_and_names_its_units() {
        let mut snapshot = Snapshot::default();
        snapshot.up.capacity = 1_000_000;
        snapshot.up.rate = 987_654.0;
        snapshot.up.ack = ClassSnapshot {
            rate: 87_654.0,
            backlog_packets: 3,
            backlog_bytes: 198,
            dropped: 12,
            sojourn_p50_ms: 4.25,
            sojourn_p99_ms: 61.04,
            ..ClassSnapshot::default()
        };
        snapshot.up.data.rate = 900_000.0;
        snapshot.down.capacity = 10_000_000;
        snapshot.down.rate = 9_990_000.0;
        snapshot.up.control.insert("data_share", 0.734);
        snapshot.losses.wan = Losses {
            too_long: 7,
            ..Losses::default()
        };
        let expected = "\
lan -> wan, aq

                    rate   of the link          ACKs          data         other
up            988 kbit/s        98.8 %   87.7 kbit/s    900 kbit/s       0 bit/s
down         9.99 Mbit/s        99.9 %       0 bit/s       0 bit/s       0 bit/s

queue            backlog                 sojourn p50           p99       dropped
up ack                3p         198 B       4.25 ms       61.0 ms            12
up data               0p           0 B          0 ms          0 ms             0

up: data_share 0.73
lost at wan: 7 too long
";
        assert_eq!(table("lan -> wan, aq", &snapshot), expected);
    }

    #[test]
    fn filtering_regeneration_and_a_downlink_queue_are_shown_where_there_are_any() {
        let plain = table("", &Snapshot::default());
        assert!(!plain.contains("down ack") && !plain.contains("regenerated"));
        let mut snapshot = Snapshot::default();
        snapshot.down.data.backlog_packets = 7;
        snapshot.up.ack.filtered = 123_456;
        snapshot.up.data_bytes_per_ack = 12_345.6;
        let text = table("", &snapshot);
        let line = "up: 0 regenerated, 12346 B of data per ACK";
        assert!(text.lines().any(|found| found == line), "{text}");
        assert!(text.lines().all(|found| found.len() <= 80), "{text}");
        let row = "down data             7p";
        assert!(text.lines().any(|found| found.starts_with(row)), "{text}");
    }

    #[test]
    fn control_variables_fit_80_columns() {
        let mut snapshot = Snapshot::default();
        let names = ["ack_bytes", "ack_limit", "bulk_target", "downlink_used"];
        let more = [
            "unfiltered_losses",
            "unfiltered_marks",
            "unfiltered_options",
            "sparse_flows",
        ];
        for name in names.iter().chain(&more) {
            snapshot.up.control.insert(name, 19_200.0);
        }
        snapshot.up.data.reasons = [u64::MAX / 4; Reason::COUNT];
        let text = table("", &snapshot);
        assert!(text.lines().all(|found| found.len() <= 80), "{text}");
        for name in names.iter().chain(&more) {
            assert!(text.contains(&format!("{name} 19200")), "{text}");
        }
        let reasons = Reason::ALL.iter().map(|reason| reason.name());
        assert!(
            reasons.into_iter().all(|name| text.contains(name)),
            "{text}"
        );
    }

    #[test]
    fn every_reason_and_the_marks_are_counted_over_all_classes() {
        let mut snapshot = Snapshot::default();
        snapshot.up.data.reasons = [1; Reason::COUNT];
        snapshot.up.other.reasons = [1; Reason::COUNT];
        snapshot.up.data.marked = 5;
        let names = Reason::ALL
            .iter()
            .map(|reason| format!("2 {}", reason.name()));
        let names: Vec<String> = names.chain(["5 marked".into()]).collect();
        let line = format!("up: {}", names.join(", "));
        let text = table("", &snapshot);
        assert!(text.lines().any(|found| found == line), "{text}");
    }
}
