//! Several disciplines over one scenario: in groups, with the best of each column.

use crate::heading::setting;
use crate::report::{runs, spread};
use crate::table::Table;
use asymq_args::Defaults;
use asymq_core::catalog::{Catalog, Group, Role};
use asymq_scenario::{Direction, Grade, Percentiles, Report, Summary};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Who stands together in a comparison, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Camp {
    /// What people run today.
    Today,
    /// The papers' mechanisms.
    Papers,
    /// asymq's own discipline.
    Own,
    /// Disciplines from elsewhere, and parts by themselves.
    Others,
}

impl Camp {
    const ALL: [Self; 4] = [Self::Today, Self::Papers, Self::Own, Self::Others];

    /// Where a discipline belongs.
    pub(crate) fn of(qdisc: &str, catalog: &dyn Catalog) -> Self {
        let group = catalog.entry(Role::Qdisc, qdisc).map(|entry| entry.group);
        match group {
            Some(Group::Own) => Self::Own,
            Some(Group::Peer) => Self::Today,
            Some(Group::Paper | Group::Variant) => Self::Papers,
            Some(Group::Other) | None => Self::Others,
        }
    }

    /// Its key in JSON.
    fn key(self) -> &'static str {
        match self {
            Self::Today => "today",
            Self::Papers => "papers",
            Self::Own => "asymq",
            Self::Others => "others",
        }
    }

    fn title(self) -> &'static str {
        match self {
            Self::Today => "what people run today",
            Self::Papers => "the papers'",
            Self::Own => "asymq",
            Self::Others => "others",
        }
    }
}

/// The names of each camp that is there.
pub(crate) fn camps<'a>(
    reports: &'a [Report],
    catalog: &dyn Catalog,
) -> BTreeMap<&'static str, Vec<&'a str>> {
    let mut camps = BTreeMap::new();
    for name in reports.iter().map(name) {
        let camp = Camp::of(name, catalog).key();
        camps.entry(camp).or_insert_with(Vec::new).push(name);
    }
    camps
}

fn name(report: &Report) -> &str {
    &report.scenario.uplink.qdisc
}

/// A column of the table.
struct Column {
    /// Its key in JSON.
    key: &'static str,
    head: &'static str,
    /// The value by which a column is judged, and whether more of it is better.
    value: fn(&Summary) -> Option<f64>,
    more: bool,
    /// What the table shows of a report.
    cell: fn(&Report) -> String,
}

const COLUMNS: [Column; 8] = [
    Column {
        key: "goodput_utility",
        head: "goodput utility",
        value: |summary| Some(summary.goodput_utility),
        more: true,
        cell: |report| {
            let several = report.runs.len() > 1;
            let of = |summary: &Summary| summary.goodput_utility;
            spread(of(&report.mean), of(&report.sd), 3, several)
        },
    },
    Column {
        key: "utility",
        head: "utility",
        value: |summary| Some(summary.utility),
        more: true,
        cell: |report| format!("{:.3}", report.mean.utility),
    },
    Column {
        key: "up",
        head: "up",
        value: |summary| Some(summary.up.utilization),
        more: true,
        cell: |report| format!("{:.3}", report.mean.up.utilization),
    },
    Column {
        key: "down",
        head: "down",
        value: |summary| Some(summary.down.utilization),
        more: true,
        cell: |report| format!("{:.3}", report.mean.down.utilization),
    },
    Column {
        key: "smallest_flow",
        head: "smallest flow",
        value: smallest,
        more: true,
        cell: |report| smallest(&report.mean).map_or("-".into(), |share| format!("{share:.2}")),
    },
    Column {
        key: "silence_s",
        head: "silence",
        value: |summary| Some(silence(summary)),
        more: false,
        cell: |report| format!("{:.2} s", silence(&report.mean)),
    },
    Column {
        key: "probe_up_p99_ms",
        head: "probe up p99",
        value: |summary| p99(&summary.up),
        more: false,
        cell: |report| delay(report.mean.up.probe_ms),
    },
    Column {
        key: "probe_down_p99_ms",
        head: "probe down p99",
        value: |summary| p99(&summary.down),
        more: false,
        cell: |report| delay(report.mean.down.probe_ms),
    },
];

/// The smallest flow's share of its direction's mean, where a direction has several flows.
fn smallest(summary: &Summary) -> Option<f64> {
    let goodput = &summary.goodput;
    [
        (&goodput.up, goodput.smallest_up),
        (&goodput.down, goodput.smallest_down),
    ]
    .into_iter()
    .filter(|(flows, _)| flows.len() > 1)
    .filter_map(|(_, share)| share)
    .reduce(f64::min)
}

fn silence(summary: &Summary) -> f64 {
    summary.up.silence_s.max(summary.down.silence_s)
}

fn p99(direction: &Direction) -> Option<f64> {
    direction.probe_ms.map(|delay| delay.p99)
}

/// `12.4 ms A`.
fn delay(delay: Option<Percentiles>) -> String {
    delay.map_or("-".into(), |delay| {
        format!("{:.1} ms {:<2}", delay.p99, Grade::of(delay))
    })
}

impl Column {
    /// The reports whose value is the best, or is shown as if it were.
    fn best<'a>(&self, reports: &'a [Report]) -> impl Iterator<Item = &'a Report> {
        let better = |a: &f64, b: &f64| match self.more {
            true => a.total_cmp(b),
            false => b.total_cmp(a),
        };
        let values = reports
            .iter()
            .filter_map(|report| (self.value)(&report.mean));
        let best = values.max_by(better).map(shown);
        let value = self.value;
        reports.iter().filter(move |report| {
            best.is_some() && reports.len() > 1 && value(&report.mean).map(shown) == best
        })
    }
}

/// A value as far as it is shown.
fn shown(value: f64) -> i64 {
    (value * 1000.0).round() as i64
}

/// The disciplines that are best by each column, among several.
pub(crate) fn best(reports: &[Report]) -> BTreeMap<&'static str, Vec<&str>> {
    let columns = COLUMNS.iter();
    columns
        .map(|column| (column.key, column.best(reports).map(name).collect()))
        .collect()
}

/// The table of several disciplines over one scenario.
pub(crate) fn table(reports: &[Report], catalog: &dyn Catalog, defaults: &Defaults) -> String {
    let Some(first) = reports.first() else {
        return String::new();
    };
    let mut text = format!(
        "{}\n{}\n\n",
        setting(&first.scenario, catalog, defaults),
        runs(&first.scenario)
    );
    let has = |column: &&Column| reports.iter().any(|r| (column.value)(&r.mean).is_some());
    let columns: Vec<&Column> = COLUMNS.iter().filter(has).collect();
    let mut table = Table::default();
    let heads = columns.iter().map(|column| format!("{} ", column.head));
    table.row(std::iter::once(String::new()).chain(heads));
    for camp in Camp::ALL {
        let of_camp = |report: &&Report| Camp::of(name(report), catalog) == camp;
        let mut members = reports.iter().filter(of_camp).peekable();
        if members.peek().is_some() && reports.len() > 1 {
            table.row([format!("{}:", camp.title())]);
        }
        for report in members {
            let cells = columns.iter().map(|column| {
                let mark = match column.best(reports).any(|best| std::ptr::eq(best, report)) {
                    true => '*',
                    false => ' ',
                };
                format!("{}{mark}", (column.cell)(report))
            });
            table.row(std::iter::once(format!("  {}", name(report))).chain(cells));
        }
    }
    let _ = write!(text, "{table}");
    text += "\n* best of its column. goodput utility: what is delivered in order, as a share of both links; 2 would be \
             perfect.\nutility: the papers', which counts what is sent twice. up, down: fraction of the link in use. \
             silence: the longest\ntime in which a flow delivers nothing. probe: queueing delay of a small UDP echo in \
             each direction, with its grade\n(A+ below 5 ms, A 30, B 60, C 200, D 400, F).\n";
    text
}

/// A report in a line, for beside its picture.
pub(crate) fn line(report: &Report) -> String {
    let mean = &report.mean;
    let mut text = format!("goodput utility {:.2}", mean.goodput_utility);
    if let Some(delay) = mean.up.probe_ms {
        let _ = write!(
            text,
            ", a call waits {:.0} ms upwards (grade {})",
            delay.p99,
            Grade::of(delay)
        );
    }
    if let Some(share) = smallest(mean) {
        let _ = write!(text, ", smallest flow {share:.2} of the mean");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_args::ScenarioArgs;
    use asymq_core::catalog::Standard;
    use asymq_scenario::{Run, Tool};

    fn report(qdisc: &str, change: impl Fn(&mut Summary)) -> Report {
        let args = ScenarioArgs {
            qdisc: Some(qdisc.into()),
            ..ScenarioArgs::default()
        };
        let tool = Tool {
            version: "0".into(),
            driver: "sim".into(),
            kernel: None,
        };
        let mut run = Run::default();
        change(&mut run.summary);
        let scenario = args.resolve(&Defaults::paper()).unwrap();
        Report::new(tool, scenario, vec![run])
    }

    fn reports() -> Vec<Report> {
        let of = |goodput, p99| {
            move |summary: &mut Summary| {
                summary.goodput_utility = goodput;
                summary.up.probe_ms = Some(Percentiles {
                    p99,
                    ..Percentiles::default()
                });
            }
        };
        vec![
            report("aq", of(1.9, 470.0)),
            report("droptail", of(1.5, 130.0)),
            report("cake", of(1.8999, 12.0)),
        ]
    }

    #[test]
    fn disciplines_stand_with_their_like() {
        let reports = reports();
        let camps = camps(&reports, &Standard);
        assert_eq!(camps["today"], ["droptail", "cake"]);
        assert_eq!(camps["papers"], ["aq"]);
        assert_eq!(Camp::of("asymq", &Standard), Camp::Own);
        assert_eq!(Camp::of("deadline-slots", &Standard), Camp::Others);
    }

    #[test]
    fn the_best_is_the_most_or_the_least_and_what_is_shown_alike() {
        let reports = reports();
        let best = best(&reports);
        assert_eq!(best["goodput_utility"], ["aq", "cake"]);
        assert_eq!(best["probe_up_p99_ms"], ["cake"]);
        assert!(best["smallest_flow"].is_empty() && best["probe_down_p99_ms"].is_empty());
        let text = table(&reports, &Standard, &Defaults::paper());
        assert!(
            text.contains("1.900*") && text.contains("12.0 ms A *"),
            "{text}"
        );
        assert!(
            text.contains("1.500 ") && text.contains("470.0 ms F\n"),
            "{text}"
        );
    }

    #[test]
    fn one_discipline_is_no_competition() {
        let reports = reports();
        assert!(best(&reports[..1])["goodput_utility"].is_empty());
    }
}
