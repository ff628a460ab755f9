//! A running gateway for a person's eye.

use crate::snapshot::{ClassSnapshot, DirectionSnapshot, QueueSnapshot, Snapshot};
use asymq_core::units::Limit;
use std::fmt::Write;

/// The snapshot as a table, some ten lines of at most 80 characters.
pub(crate) fn table(title: &str, snapshot: &Snapshot) -> String {
    let mut text = format!("{title}\n\n");
    let mut line = |cells: [&str; 6]| {
        let [name, cells @ ..] = cells;
        let _ = write!(text, "{name:<10}");
        for cell in cells {
            let _ = write!(text, "{cell:>14}");
        }
        text.push('\n');
    };
    line(["", "rate", "of the link", "ACKs", "data", "other"]);
    for (name, direction) in [("up", &snapshot.up), ("down", &snapshot.down)] {
        let cells = traffic(direction);
        line([name, &cells[0], &cells[1], &cells[2], &cells[3], &cells[4]]);
    }
    line([""; 6]);
    line(["queue", "waiting", "", "wait, median", "99 %", "dropped"]);
    let queues = [
        (["up ACKs", "up data"], &snapshot.queue, &snapshot.control),
        (
            ["down ACKs", "down data"],
            &snapshot.queue_down,
            &snapshot.control_down,
        ),
    ];
    for (names, of, control) in queues {
        // Nothing is said of a downlink that has no discipline.
        if names[0] == "up ACKs" || !control.is_empty() || *of != QueueSnapshot::default() {
            for (name, class) in names.iter().zip([&of.ack, &of.data]) {
                let cells = queue(class);
                line([name, &cells[0], &cells[1], &cells[2], &cells[3], &cells[4]]);
            }
        }
    }
    text.push('\n');
    for (name, direction) in [("up", &snapshot.up), ("down", &snapshot.down)] {
        let of = &direction.thinning;
        if of.filtered + of.made > 0 {
            let _ = writeln!(
                text,
                "ACKs {name}: {} seen, {} filtered, {} dropped, {} made, {} B of data each",
                of.seen,
                of.filtered,
                of.dropped,
                of.made,
                significant(of.data_bytes_per_ack)
            );
        }
    }
    for (direction, control) in [("", &snapshot.control), ("down: ", &snapshot.control_down)] {
        let control: Vec<String> = control
            .iter()
            .map(|(name, value)| format!("{name} {}", significant(*value)))
            .collect();
        if !control.is_empty() {
            let _ = writeln!(text, "{direction}{}", control.join("  "));
        }
    }
    for (port, losses) in [("lan", snapshot.losses.lan), ("wan", snapshot.losses.wan)] {
        let reasons = [
            ("came too fast", losses.ring_full),
            ("not understood", losses.not_understood),
            ("longer than the MTU", losses.too_long),
            ("not sent", losses.not_sent),
        ];
        let lost: Vec<String> = reasons
            .iter()
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| format!("{count} {reason}"))
            .collect();
        if !lost.is_empty() {
            let _ = writeln!(text, "lost at {port}: {}", lost.join(", "));
        }
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n") + "\n"
}

fn traffic(direction: &DirectionSnapshot) -> [String; 5] {
    let share = 100.0 * direction.rate / direction.capacity.max(1) as f64;
    [
        rate(direction.rate),
        format!("{share:.1} %"),
        rate(direction.ack.rate),
        rate(direction.data.rate),
        rate(direction.other.rate),
    ]
}

fn queue(class: &ClassSnapshot) -> [String; 5] {
    [
        Limit::Packets(class.backlog_packets).to_string(),
        scaled(class.backlog_bytes as f64, ["B", "kB", "MB"]),
        format!("{} ms", significant(class.sojourn_p50_ms)),
        format!("{} ms", significant(class.sojourn_p99_ms)),
        class.drops.to_string(),
    ]
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
    format!("{} {unit}", significant(value))
}

/// Three digits, more before the point.
fn significant(value: f64) -> String {
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
    use crate::snapshot::ThinningSnapshot;

    #[test]
    fn the_table_is_aligned_and_names_its_units() {
        let mut snapshot = Snapshot::default();
        snapshot.up.capacity = 1_000_000;
        snapshot.up.rate = 987_654.0;
        snapshot.up.ack.rate = 87_654.0;
        snapshot.up.data.rate = 900_000.0;
        snapshot.down.capacity = 10_000_000;
        snapshot.down.rate = 9_990_000.0;
        snapshot.queue.ack = ClassSnapshot {
            backlog_packets: 3,
            backlog_bytes: 198,
            drops: 12,
            sojourn_p50_ms: 4.25,
            sojourn_p99_ms: 61.04,
            ..ClassSnapshot::default()
        };
        snapshot.control.insert("data_share", 0.734);
        snapshot.losses.wan = Losses {
            too_long: 7,
            ..Losses::default()
        };
        let expected = "\
lan -> wan, aq

                    rate   of the link          ACKs          data         other
up            988 kbit/s        98.8 %   87.7 kbit/s    900 kbit/s       0 bit/s
down         9.99 Mbit/s        99.9 %       0 bit/s       0 bit/s       0 bit/s

queue            waiting                wait, median          99 %       dropped
up ACKs               3p         198 B       4.25 ms       61.0 ms            12
up data               0p           0 B          0 ms          0 ms             0

data_share 0.73
lost at wan: 7 longer than the MTU
";
        assert_eq!(table("lan -> wan, aq", &snapshot), expected);
    }

    #[test]
    fn thinning_and_a_shaped_downlink_are_shown_where_there_are_any() {
        let mut snapshot = Snapshot::default();
        let plain = table("", &snapshot);
        assert!(!plain.contains("down ACKs") && !plain.contains("seen"));
        snapshot.queue_down.data.backlog_packets = 7;
        snapshot.up.thinning = ThinningSnapshot {
            seen: 1_234_567,
            filtered: 123_456,
            data_bytes_per_ack: 12_345.6,
            ..ThinningSnapshot::default()
        };
        let text = table("", &snapshot);
        let line =
            "ACKs up: 1234567 seen, 123456 filtered, 0 dropped, 0 made, 12346 B of data each";
        assert!(text.lines().any(|found| found == line), "{text}");
        assert!(text.lines().all(|found| found.len() <= 80), "{text}");
        assert!(
            text.lines()
                .any(|found| found.starts_with("down data             7p")),
            "{text}"
        );
    }
}
