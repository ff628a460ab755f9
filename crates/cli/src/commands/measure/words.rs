//! Text output for a measured line.

use crate::output::{self, Table, rate, wrapped};
use asymq_measure::{Link, Load, LoadDirection, Measured, Progress, Range};
use asymq_scenario::count;

/// Formats the stage, its rates and its latest round trip.
pub(crate) fn progress(progress: &Progress) -> String {
    let rate = |name: &str, bits: f64| match bits > 0.0 {
        true => format!("  {name} {}", rate(bits)),
        false => String::new(),
    };
    let trip = progress.rtt_ms.map(|trip| format!("  {trip:.0} ms"));
    format!(
        "{}{}{}{}",
        progress.stage,
        rate("up", progress.up),
        rate("down", progress.down),
        trip.unwrap_or_default()
    )
}

/// Formats the table, the recommended flags and the uncertain points.
pub(crate) fn result(measured: &Measured) -> String {
    let mut table = Table::new([
        "load",
        "upload",
        "download",
        "added p50",
        "added p99",
        "grade",
        "RPM",
    ]);
    for (name, load) in measured.loads() {
        table.row(row(name, load));
    }
    let flows = count(measured.flows, "flow");
    let mut text = format!("{}, {flows} each way\n\n", measured.server);
    if let Some(idle) = measured.idle_ms {
        text += &format!(
            "Idle round trip {}, 99 % below {}.\n",
            milliseconds(idle.p50),
            milliseconds(idle.p99)
        );
    }
    text += &format!("{}\n{table}\n", capacities(&measured.link));
    let both = &measured.both;
    let percent = |share: Option<f64>| known(share.map(|share| format!("{:.0} %", 100.0 * share)));
    text += &wrapped(
        &format!(
            "Goodput utility with both at once: {} of 2 (upload {}, download {}).",
            known(both.goodput_utility.map(|utility| format!("{utility:.2}"))),
            percent(both.up.delivered),
            percent(both.down.delivered)
        ),
        80,
    );
    if let Some(keep) = &measured.advice.keep {
        text += &format!("\n{}", wrapped(keep, 80));
    }
    if let Some(command) = &measured.advice.command {
        text += &format!("\nUse: {command}\n");
    }
    text + &doubts(&measured.advice.unsure)
}

/// Formats the list of uncertain points.
pub(super) fn doubts(unsure: &[String]) -> String {
    let mut text = String::new();
    for unsure in unsure {
        if text.is_empty() {
            text += "\nLimits of this result:\n";
        }
        text += &wrapped(&format!("- {unsure}"), 80);
    }
    text
}

fn row(name: &str, load: &Load) -> [String; 7] {
    let total = |flows: &[f64], direction: &LoadDirection| match (flows, direction.delivered) {
        ([], Some(_)) => String::new(),
        ([], None) => known(None),
        (flows, _) => rate(flows.iter().sum()),
    };
    let delay = |of: Option<f64>| of.map(milliseconds).unwrap_or_default();
    [
        name.into(),
        total(&load.goodput.up, &load.up),
        total(&load.goodput.down, &load.down),
        delay(load.probe_ms.map(|delays| delays.p50)),
        delay(load.probe_ms.map(|delays| delays.p99)),
        load.probe_grade
            .map(|grade| grade.to_string())
            .unwrap_or_default(),
        load.rpm.map(|rpm| format!("{rpm:.0}")).unwrap_or_default(),
    ]
}

/// Returns the value, or `unknown` if it was not measured.
pub(super) fn known(value: Option<String>) -> String {
    value.unwrap_or_else(|| "unknown".into())
}

/// Formats `Capacity 987 kbit/s (975 to 999) up, unknown down (IP packets).`
pub(super) fn capacities(link: &Link) -> String {
    let [up, down] = [(link.up, link.up_range), (link.down, link.down_range)]
        .map(|(value, range)| capacity(value, range));
    format!("Capacity {up} up, {down} down (IP packets).\n")
}

/// Formats `987 kbit/s (975 to 999)`.
fn capacity(value: Option<f64>, range: Option<Range>) -> String {
    let range = range.map(|range| format!(" ({} to {})", rate(range.low), rate(range.high)));
    known(value.map(|value| rate(value) + &range.unwrap_or_default()))
}

pub(super) fn milliseconds(milliseconds: f64) -> String {
    output::time(milliseconds / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_scenario::{Goodput, Tool};

    /// A line without capacities, on which downloads reached these goodputs.
    fn measured(down: Vec<f64>) -> Measured {
        let both = Load {
            goodput: Goodput::new(Vec::new(), down),
            ..Load::default()
        };
        Measured {
            format: Measured::FORMAT,
            tool: Tool::new("measure"),
            server: "192.0.2.1:9802".into(),
            flows: 4,
            link: Link::default(),
            idle_ms: None,
            up: Load::default(),
            down: Load::default(),
            both,
            advice: Default::default(),
        }
    }

    #[test]
    fn a_quantity_without_counts_is_unknown_and_never_0() {
        let of = measured(vec![5e6]);
        let text = result(&of);
        for line in [
            "Capacity unknown up, unknown down (IP packets).",
            "both  unknown  5 Mbit/s",
            "Goodput utility with both at once: unknown of 2 (upload unknown, download",
        ] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains(" 0 "), "{text}");
        let json = serde_json::to_value(&of).unwrap();
        assert!(json["link"]["down"].is_null() && json["both"]["down"]["delivered"].is_null());
        assert!(json["both"]["goodput_utility"].is_null());
    }
}
