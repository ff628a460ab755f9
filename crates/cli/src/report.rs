//! Formats reports as tables.

use crate::heading::{setting, span, uplink};
use crate::output::{self, Table};
use asymq_args::Defaults;
use asymq_core::catalog::Catalog;
use asymq_scenario::{
    DirectionReport, Extent, FlowResult, Grade, Percentiles, Report, Scenario, Summary,
};
use std::fmt::Write;

/// Text that explains the cells formatted by [`spread`].
pub(crate) const SPREAD: &str = "mean ± standard deviation";

/// Formats the duration, number and seeds of the runs, and the statistic shown.
pub(crate) fn runs(scenario: &Scenario, shown: &str) -> String {
    let seeds = match scenario.runs {
        1 => format!("seed {}", scenario.seed),
        runs => format!("{runs} seeds from {}; {shown}", scenario.seed),
    };
    format!(
        "{} per run without the first {}, {seeds}",
        span(scenario.duration),
        span(scenario.warmup)
    )
}

/// Formats the report of one scenario. Adds a table of flows if it is requested, or if the scenario lists flows.
pub(crate) fn full(
    report: &Report,
    flows: bool,
    catalog: &dyn Catalog,
    defaults: &Defaults,
) -> String {
    let (scenario, mean, sd) = (&report.scenario, &report.mean, &report.sd);
    let several = report.runs.len() > 1;
    let uplink = uplink(scenario, catalog);
    let runs = runs(scenario, SPREAD);
    let mut text = output::wrapped(&setting(scenario, catalog, defaults), output::WIDTH)
        + &output::wrapped(&format!("{uplink} at the uplink; {runs}"), output::WIDTH)
        + "\n";

    let mut table = Table::new(["of the link", "all", "data", "ACKs", "sojourn p50", "p99"]);
    for (name, mean, sd) in [("up", &mean.up, &sd.up), ("down", &mean.down, &sd.down)] {
        let pair =
            |of: fn(&DirectionReport) -> f64, decimals| spread(of(mean), of(sd), decimals, several);
        let wait = |of: fn(Percentiles) -> f64| {
            let sojourn = mean.sojourn_ms.map(of);
            sojourn.map_or("-".to_owned(), |ms| format!("{ms:.1} ms"))
        };
        table.row([
            name.to_owned(),
            pair(|d| d.utilization, 3),
            pair(|d| d.data, 3),
            pair(|d| d.ack, 3),
            wait(|sojourn| sojourn.p50),
            wait(|sojourn| sojourn.p99),
        ]);
    }
    let pair = |of: fn(&Summary) -> f64| spread(of(mean), of(sd), 3, several);
    let _ = write!(
        text,
        "{table}\n{}\n{}\n",
        delivery_table(report, several),
        packet_table(report, several)
    );
    for (name, value, meaning) in [
        (
            "goodput utility",
            pair(|s| s.goodput_utility),
            "data delivered in order; at most 2",
        ),
        (
            "sent utility",
            pair(|s| s.utility),
            "data sent, as the papers count it",
        ),
        (
            "min utilization",
            pair(|s| s.least_utilization),
            "utilization of the less used direction",
        ),
    ] {
        let _ = writeln!(text, "{name:<17}  {value}   {meaning}");
    }
    let rates = &mean.goodput;
    for (name, flows) in [("up", &rates.up), ("down", &rates.down)] {
        if let Some(line) = goodput(flows) {
            let _ = writeln!(text, "goodput {name:<9}  {line}");
        }
    }
    for (name, delay, lost) in [
        ("both ways", mean.probe_ms, mean.probe_lost),
        ("up", mean.up.probe_ms, mean.up.probe_lost),
        ("down", mean.down.probe_ms, mean.down.probe_lost),
    ] {
        if let Some(delay) = delay {
            let lost = lost.filter(|share| *share > 0.0);
            let lost = lost.map_or_else(String::new, |share| {
                format!(", {:.1} % lost", 100.0 * share)
            });
            let _ = writeln!(
                text,
                "probe {name:<11}  queueing {:.1} ms, {:.1} ms (p50, p99), grade {}{lost}",
                delay.p50,
                delay.p99,
                Grade::of(delay)
            );
        }
    }
    if let Some(late) = mean.probe_late {
        let late = 100.0 * late;
        let _ = writeln!(text, "probe late         {late:.1} % above 50 ms");
    }
    if let Some(web) = mean.web_ms {
        let _ = writeln!(
            text,
            "web transfers      complete in {:.0} ms, {:.0} ms, {:.0} ms (p50, p95, p99)",
            web.p50, web.p95, web.p99
        );
    }
    if flows || !scenario.flow.is_empty() {
        let _ = write!(text, "\n{}", flow_table(scenario, &mean.flows, several));
    }
    text
}

/// Packets in each direction: those that the queue dropped, filtered or marked, those sent again, and ACKs.
fn packet_table(report: &Report, several: bool) -> Table {
    let (mean, sd) = (&report.mean, &report.sd);
    let mut table = Table::new([
        "packets",
        "dropped",
        "filtered",
        "marked",
        "resent",
        "timeouts",
        "ACKs/s",
        "bytes/ACK",
    ]);
    for (name, mean, sd) in [("up", &mean.up, &sd.up), ("down", &mean.down, &sd.down)] {
        table.row([
            name.to_owned(),
            spread(mean.dropped, sd.dropped, 0, several),
            spread(mean.filtered, sd.filtered, 0, several),
            spread(mean.marked, sd.marked, 0, several),
            counted(mean.retransmissions, 0),
            counted(mean.timeouts, 1),
            format!("{:.0}", mean.acks_per_s),
            counted(mean.bytes_per_ack, 0),
        ]);
    }
    table
}

/// Goodput and longest stall of the flows in each direction.
fn delivery_table(report: &Report, several: bool) -> Table {
    let (mean, sd) = (&report.mean, &report.sd);
    let mut table = Table::new(["of the flows", "goodput", "smallest", "Jain", "stall"]);
    let share = |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2}"));
    let of = &mean.goodput;
    for (name, direction, sd, smallest, jain) in [
        ("up", &mean.up, &sd.up, of.smallest_up, of.jain_up),
        ("down", &mean.down, &sd.down, of.smallest_down, of.jain_down),
    ] {
        table.row([
            name.to_owned(),
            spread(direction.delivered, sd.delivered, 3, several),
            share(smallest),
            share(jain),
            jain.map_or("-".to_owned(), |_| {
                format!("{:.2} s", direction.longest_stall_s)
            }),
        ]);
    }
    table
}

/// One row per flow, with means over the runs.
fn flow_table(scenario: &Scenario, flows: &[FlowResult], several: bool) -> String {
    let mut table = Table::tight();
    let heads = ["", "start", "goodput", "stall", "done", "RTT", "ms"];
    table.row(heads.into_iter().chain(["", "", "", "", "time-"]));
    let units = [
        "flow", "s", "kbit/s", "s", "s", "base", "min", "mean", "max",
    ];
    table.row(units.into_iter().chain(["lost", "resent", "outs"]));
    let common = (scenario.flows_up + scenario.flows_down) as usize;
    let ms = |value: f64| match value < 99.95 {
        true => format!("{value:.1}"),
        false => format!("{value:.0}"),
    };
    let count = |value| counted(value, usize::from(several));
    for (number, flow) in (1..).zip(flows) {
        let listed = match number > common {
            true => "*",
            false => "",
        };
        let rtt = |of: fn(&Extent) -> f64| {
            flow.rtt_ms
                .as_ref()
                .map_or("-".to_owned(), |rtt| ms(of(rtt)))
        };
        table.row([
            format!("{number} {}{listed}", flow.direction),
            format!("{:.2}", flow.start_s),
            format!("{:.1}", flow.goodput / 1e3),
            format!("{:.2}", flow.longest_stall_s),
            counted(flow.completion_s, 3),
            ms(flow.base_rtt_ms),
            rtt(|rtt| rtt.min),
            rtt(|rtt| rtt.mean),
            rtt(|rtt| rtt.max),
            count(flow.lost),
            count(flow.retransmissions),
            count(flow.timeouts),
        ]);
    }
    let words = "done: time from start until all is acknowledged. lost: lost packets.";
    let words = match flows.len() > common {
        true => format!("* listed. {words}"),
        false => words.to_owned(),
    };
    format!("{table}\n{}", output::wrapped(&words, output::WIDTH))
}

/// Formats a count; a dash if it was not measured.
fn counted(value: Option<f64>, decimals: usize) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
}

/// Formats a mean, with its standard deviation if there are several runs.
pub(crate) fn spread(mean: f64, sd: f64, decimals: usize, several: bool) -> String {
    if several {
        format!("{mean:.decimals$} ± {sd:.decimals$}")
    } else {
        format!("{mean:.decimals$}")
    }
}

/// Summarizes the flows' goodput in one line; `None` without flows.
fn goodput(flows: &[f64]) -> Option<String> {
    let total: f64 = flows.iter().sum();
    let min = flows.iter().copied().reduce(f64::min)?;
    let max = flows.iter().copied().fold(0.0, f64::max);
    if flows.len() == 1 {
        return Some(output::rate(total));
    }
    Some(format!(
        "{} by {} flows, {} to {} each",
        output::rate(total),
        flows.len(),
        output::rate(min),
        output::rate(max)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_without_flows_has_no_goodput_line() {
        assert_eq!(goodput(&[]), None);
        assert_eq!(goodput(&[1e6]).unwrap(), "1 Mbit/s");
    }
}
