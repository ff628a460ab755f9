//! Table of several disciplines over one scenario: in groups, with the best of each column.

use crate::heading::setting;
use crate::output::{Table, WIDTH, wrapped};
use crate::report::{SPREAD, runs, spread};
use asymq_args::Defaults;
use asymq_core::catalog::{Catalog, Group, Role};
use asymq_scenario::{Direction, Grade, Percentiles, Report, Summary};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Groups of a comparison, in the order of the table: key in JSON, and title.
const GROUPS: [(&str, &str); 4] = [
    ("today", "in common use"),
    ("papers", "the papers'"),
    ("asymq", "asymq"),
    ("others", "others"),
];

/// Key of the group that a report belongs to.
fn group(report: &Report, catalog: &dyn Catalog) -> &'static str {
    let entry = catalog.entry(Role::Qdisc, name(report));
    match entry.map(|entry| entry.group) {
        Some(Group::Own) => "asymq",
        Some(Group::Peer) => "today",
        Some(Group::Paper | Group::Variant) => "papers",
        Some(Group::Other) | None => "others",
    }
}

/// The groups of these reports, each with the names of its reports.
pub(crate) fn groups<'a>(
    reports: &'a [Report],
    catalog: &dyn Catalog,
) -> BTreeMap<&'static str, Vec<&'a str>> {
    let mut groups = BTreeMap::new();
    for report in reports {
        let names = groups
            .entry(group(report, catalog))
            .or_insert_with(Vec::new);
        names.push(name(report));
    }
    groups
}

fn name(report: &Report) -> &str {
    &report.scenario.uplink.qdisc
}

struct Column {
    key: &'static str,
    /// Heading of the column, in two lines.
    head: [&'static str; 2],
    value: fn(&Summary) -> Option<f64>,
    /// True if larger values are better, false if smaller values are better; `None` if neither.
    more: Option<bool>,
    decimals: usize,
    /// Text to show after the value.
    note: Option<fn(f64, &Summary) -> String>,
    /// Explanation to show below the table, if the column needs one.
    meaning: &'static str,
    /// The narrowest table that includes the column.
    from: Width,
}

/// Column sets of a table.
#[derive(Clone, Copy, PartialEq, PartialOrd)]
pub(crate) enum Width {
    /// The eight most important columns.
    Terminal,
    /// Additional columns, shown if fewer than eight columns have a value.
    Spare,
    /// Also the columns that apply only to some disciplines.
    All,
    /// All columns, each with its standard deviation.
    Wide,
}

impl Column {
    /// Creates a column for a share of the link; more is better.
    const fn share(
        key: &'static str,
        head: [&'static str; 2],
        value: fn(&Summary) -> Option<f64>,
    ) -> Self {
        Self {
            key,
            head,
            value,
            more: Some(true),
            decimals: 3,
            note: None,
            meaning: "",
            from: Width::Terminal,
        }
    }

    /// Creates a column for a time; less is better.
    const fn time(
        key: &'static str,
        head: [&'static str; 2],
        decimals: usize,
        value: fn(&Summary) -> Option<f64>,
    ) -> Self {
        Self {
            more: Some(false),
            decimals,
            ..Self::share(key, head, value)
        }
    }

    const fn graded(self) -> Self {
        Self {
            note: Some(|mean, _| format!("{:<2}", Grade::of_added_ms(mean).to_string())),
            ..self
        }
    }

    const fn from(self, from: Width) -> Self {
        Self { from, ..self }
    }

    const fn meaning(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }
}

/// Number of columns in a table for a terminal.
const EIGHT: usize = 8;

const COLUMNS: [Column; 14] = [
    Column::share("goodput_utility", ["", "utility"], |mean| {
        Some(mean.goodput_utility)
    }),
    Column::share("goodput_up", ["", "up"], |mean| Some(mean.up.delivered)),
    Column::share("goodput_down", ["", "down"], |mean| {
        Some(mean.down.delivered)
    }),
    Column::share("utility", ["sent", "utility"], |mean| Some(mean.utility)).from(Width::Wide),
    Column::share("up", ["sent", "up"], |mean| Some(mean.up.utilization)).from(Width::Wide),
    Column::share("down", ["sent", "down"], |mean| Some(mean.down.utilization)).from(Width::Wide),
    Column {
        decimals: 2,
        meaning: " min flow: the smallest flow's goodput as a share of its direction's mean, if all \
                  flows of the direction are long-lived.",
        ..Column::share("smallest_flow", ["min", "flow"], smallest)
    },
    Column {
        more: None,
        note: Some(|_, mean| format!("{:<7}", most_kept_by(mean))),
        from: Width::All,
        meaning: " unfilt. ACKs: share of the uplink's ACKs that a filter kept although a later \
                  one came while they waited, and the rules that kept most: losses (SACK, \
                  duplicate ACKs), marks (ECN, AccECN), stretch (limit for one ACK), unknown \
                  options, or others.",
        ..Column::share("unfiltered", ["unfilt.", "ACKs"], |mean| {
            (!mean.up.unfiltered.is_empty()).then(|| mean.up.unfiltered.values().sum())
        })
    },
    Column::time("longest_stall_s", ["longest", "stall"], 2, |mean| {
        Some(mean.up.longest_stall_s.max(mean.down.longest_stall_s))
    })
    .from(Width::Spare)
    .meaning(" longest stall: longest time in s in which a flow delivers nothing."),
    Column::time("start_s", ["start", "s"], 1, |mean| {
        mean.down.completion_s.or(mean.up.completion_s)
    })
    .meaning(
        " start: mean completion time of the listed flows with a size: of downloads, or of \
         uploads if there are no downloads.",
    ),
    Column::time("web_p95_ms", ["web", "p95 ms"], 0, |mean| {
        mean.web_ms.map(|web| web.p95)
    })
    .meaning(" web: 95th percentile of the completion time of short transfers."),
    Column::time("bulk_up_p50_ms", ["bulk", "up ms"], 0, |mean| {
        let classes = mean.up.sojourn_by_class_ms.as_ref();
        classes.and_then(|classes| Some(classes.data?.p50))
    })
    .meaning(" bulk: median queueing delay of data."),
    Column::time("probe_up_p99_ms", ["probe", "up ms"], 0, |mean| {
        p99(mean.up.probe_ms)
    })
    .graded()
    .meaning(
        " probe: 99th percentile of the queueing delay of a small UDP echo, with its grade \
         (A+ below 5 ms, A 30, B 60, C 200, D 400, F).",
    ),
    Column::time("probe_down_p99_ms", ["probe", "down ms"], 0, |mean| {
        p99(mean.down.probe_ms)
    })
    .graded()
    .from(Width::Spare),
];

const MEANING: &str = "* best in its column. up, down: goodput, which is data delivered in order, as a share of the \
     link. utility: sum of both, at most 2.";

/// Name of the rules that most often prevented the filter from dropping an ACK.
fn most_kept_by(summary: &Summary) -> &str {
    let kept = summary
        .up
        .unfiltered
        .iter()
        .filter(|(_, share)| **share > 0.0);
    let most = kept.max_by(|(_, one), (_, other)| one.total_cmp(other));
    most.map_or("", |(rules, _)| rules)
}

/// The smallest flow's goodput, as a share of its direction's mean. Excludes directions with one flow or finite flows.
fn smallest(summary: &Summary) -> Option<f64> {
    let goodput = &summary.goodput;
    let ends = |way| {
        let flows = summary
            .flows
            .iter()
            .filter(move |flow| flow.direction == way);
        flows.filter_map(|flow| flow.completion_s).next().is_some()
    };
    [
        (Direction::Up, &goodput.up, goodput.smallest_up),
        (Direction::Down, &goodput.down, goodput.smallest_down),
    ]
    .into_iter()
    .filter(|(way, flows, _)| flows.len() > 1 && !ends(*way))
    .filter_map(|(.., share)| share)
    .reduce(f64::min)
}

fn p99(delay: Option<Percentiles>) -> Option<f64> {
    delay.map(|delay| delay.p99)
}

impl Column {
    /// Reports whose value is the best, or is printed equal to the best.
    fn best<'a>(&self, reports: &'a [Report]) -> impl Iterator<Item = &'a Report> {
        let (value, sign) = (self.value, if self.more == Some(true) { 1.0 } else { -1.0 });
        let scale = 10f64.powi(self.decimals as i32);
        let shown = move |report: &Report| value(&report.mean).map(|v| (v * scale).round() * sign);
        let best = reports.iter().filter_map(shown).reduce(f64::max);
        let of_several = best.filter(|_| reports.len() > 1 && self.more.is_some());
        let is_best = move |report: &&Report| of_several.is_some() && shown(report) == of_several;
        reports.iter().filter(is_best)
    }

    /// Formats `12 A`, or `12 ± 1 A` if wide.
    fn cell(&self, report: &Report, wide: bool) -> String {
        let Some(mean) = (self.value)(&report.mean) else {
            return "-".into();
        };
        let sd = (self.value)(&report.sd).filter(|_| wide && report.runs.len() > 1);
        let mut cell = spread(mean, sd.unwrap_or_default(), self.decimals, sd.is_some());
        if let Some(note) = self.note {
            let _ = write!(cell, " {}", note(mean, &report.mean));
        }
        cell
    }
}

/// Best disciplines of each column; empty for a single discipline.
pub(crate) fn best(reports: &[Report]) -> BTreeMap<&'static str, Vec<&str>> {
    let columns = COLUMNS.iter().filter(|column| column.more.is_some());
    columns
        .map(|column| (column.key, column.best(reports).map(name).collect()))
        .collect()
}

fn columns(reports: &[Report], width: Width) -> Vec<&'static Column> {
    let has = |from: Width| {
        let values =
            move |column: &Column| reports.iter().any(|r| (column.value)(&r.mean).is_some());
        move |column: &&Column| from >= column.from && values(column)
    };
    if width > Width::Terminal {
        return COLUMNS.iter().filter(has(width)).collect();
    }
    let mut spare = EIGHT.saturating_sub(COLUMNS.iter().filter(has(width)).count());
    let with_spare = COLUMNS.iter().filter(has(Width::Spare));
    let shown = with_spare.filter(|column| {
        let fits = column.from == Width::Terminal || spare > 0;
        spare -= usize::from(fits && column.from == Width::Spare);
        fits
    });
    shown.collect()
}

/// Formats the table of several disciplines over one scenario.
pub(crate) fn table(
    reports: &[Report],
    catalog: &dyn Catalog,
    defaults: &Defaults,
    width: Width,
) -> String {
    let wide = width == Width::Wide;
    let Some(first) = reports.first() else {
        return String::new();
    };
    let columns = columns(reports, width);
    let mut table = Table::tight();
    for line in [0, 1] {
        let heads = columns.iter().map(|column| column.head[line]);
        table.row(std::iter::once("").chain(heads));
    }
    for (key, title) in GROUPS {
        let mut members = reports
            .iter()
            .filter(|r| group(r, catalog) == key)
            .peekable();
        if members.peek().is_some() && reports.len() > 1 {
            table.row([format!("{title}:")]);
        }
        for report in members {
            let cells = columns.iter().map(|column| {
                let is_best = column.best(reports).any(|best| std::ptr::eq(best, report));
                let mark = if is_best { '*' } else { ' ' };
                format!("{}{mark}", column.cell(report, wide))
            });
            table.row(std::iter::once(format!("  {}", name(report))).chain(cells));
        }
    }
    let mut setting = setting(&first.scenario, catalog, defaults);
    if is_both(reports) {
        let parts = setting.split("; ");
        let others = parts.filter(|part| !part.ends_with(" at the downlink"));
        setting = others.chain([BOTH]).collect::<Vec<_>>().join("; ");
    }
    let setting = wrapped(&setting, WIDTH);
    let shown = if wide { SPREAD } else { "means" };
    let runs = wrapped(&runs(&first.scenario, shown), WIDTH);
    let further = columns.iter().map(|column| column.meaning);
    let meaning: String = std::iter::once(MEANING).chain(further).collect();
    let meaning = wrapped(&meaning, WIDTH);
    format!("{setting}{runs}\n{table}\n{meaning}")
}

/// Text for a comparison that runs each discipline in both directions.
pub(crate) const BOTH: &str = "each discipline in both directions";

/// True if the reports cover several disciplines, each used in both directions.
pub(crate) fn is_both(reports: &[Report]) -> bool {
    let same = |report: &Report| report.scenario.downlink.qdisc == name(report);
    reports.len() > 1 && reports.iter().all(same)
}

/// One-line summary of a report, for its chart.
pub(crate) fn line(report: &Report) -> String {
    let mean = &report.mean;
    let mut text = format!("goodput utility {:.2} of 2", mean.goodput_utility);
    let waits = [(mean.up.probe_ms, "up"), (mean.down.probe_ms, "down")];
    for (number, (delay, way)) in (0..).zip(waits) {
        if let Some(Percentiles { p99, .. }) = delay {
            let before = ["; a call waits", ","][number.min(1)];
            let _ = write!(text, "{before} {p99:.0} ms {way}");
        }
    }
    if let Some(share) = smallest(mean) {
        let _ = write!(text, "; smallest flow {share:.2} of the mean");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use asymq_args::ScenarioArgs;
    use asymq_core::catalog::{Shown, Standard};
    use asymq_scenario::{FlowResult, Run, SojournByClass, Tool};

    fn report(qdisc: &str, change: impl Fn(&mut Summary)) -> Report {
        let args = ScenarioArgs {
            qdisc: Some(qdisc.into()),
            ..ScenarioArgs::default()
        };
        let tool = Tool::new("sim");
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
        let groups = groups(&reports, &Standard);
        assert_eq!(groups["today"], ["droptail", "cake"]);
        assert_eq!(groups["papers"], ["aq"]);
        let own = report("asymq", |_| {});
        assert_eq!(group(&own, &Standard), "asymq");
    }

    #[test]
    fn values_that_print_alike_are_both_best() {
        let reports = reports();
        let best = best(&reports);
        assert_eq!(best["goodput_utility"], ["aq", "cake"]);
        assert_eq!(best["probe_up_p99_ms"], ["cake"]);
        assert!(best["smallest_flow"].is_empty() && best["probe_down_p99_ms"].is_empty());
        let text = table(&reports, &Standard, &Defaults::paper(), Width::Terminal);
        for cell in ["1.900*", "12 A *", "1.500 ", "470 F\n"] {
            assert!(text.contains(cell), "{cell}: {text}");
        }
        assert!(!text.contains("bulk"), "a column that is not there: {text}");
    }

    /// The sojourn times of an uplink that sent data.
    fn of_data() -> SojournByClass {
        SojournByClass {
            data: Some(Percentiles::default()),
            ..SojournByClass::default()
        }
    }

    #[test]
    fn eight_disciplines_fit_a_terminal() {
        let reports: Vec<Report> = Standard
            .compared(Shown::Usual)
            .into_iter()
            .map(|name| {
                report(name, |summary| {
                    summary.goodput_utility = 1.9;
                    summary.up.longest_stall_s = 12.34;
                    summary.up.probe_ms = Some(Percentiles {
                        p99: 1022.0,
                        ..Percentiles::default()
                    });
                    summary.down.probe_ms = summary.up.probe_ms;
                    summary.up.sojourn_by_class_ms = Some(of_data());
                    summary.goodput.smallest_down = Some(0.99);
                    summary.goodput.down = vec![1.0, 1.0];
                    summary.web_ms = summary.down.probe_ms;
                })
            })
            .map(|mut report| {
                report.mean.down.completion_s = Some(120.5);
                report
            })
            .collect();
        assert_eq!(reports.len(), 8);
        let text = table(&reports, &Standard, &Defaults::paper(), Width::Terminal);
        let longest = text.lines().map(|line| line.chars().count()).max();
        assert!(longest <= Some(WIDTH), "{text}");
        for head in ["bulk", "start", "web"] {
            assert_eq!(text.matches(head).count(), 2, "{text}");
        }
    }

    /// A flow that completed after this time.
    fn flow(completion_s: Option<f64>) -> FlowResult {
        FlowResult {
            direction: Direction::Down,
            start_s: 0.0,
            base_rtt_ms: 0.0,
            goodput: 0.0,
            longest_stall_s: 0.0,
            completion_s,
            rtt_ms: None,
            lost: None,
            retransmissions: None,
            timeouts: None,
            spurious: None,
            sojourn_ms: None,
        }
    }

    #[test]
    fn starts_and_web_transfers_stand_before_the_longest_stall_and_the_probe_downwards() {
        let of = |more: bool| {
            let change = move |summary: &mut Summary| {
                summary.up.probe_ms = Some(Percentiles::default());
                summary.down.probe_ms = summary.up.probe_ms;
                summary.up.sojourn_by_class_ms = Some(of_data());
                summary.goodput.smallest_down = Some(0.99);
                summary.goodput.down = vec![1.0, 1.0];
                if more {
                    summary.web_ms = summary.up.probe_ms;
                    summary.flows = vec![flow(Some(20.0)), flow(Some(7.0)), flow(None)];
                }
            };
            let mut report = report("asymq", change);
            report.scenario.flows_up = 1;
            report.scenario.flows_down = 0;
            let sized = "down,size=1mb".parse().unwrap();
            report.scenario.flow = if more { vec![sized; 2] } else { Vec::new() };
            Report::new(report.tool, report.scenario, report.runs)
        };
        let heads = |report: &[Report], width| {
            let shown = columns(report, width).into_iter();
            shown.map(|column| column.key).collect::<Vec<_>>()
        };
        let (without, with) = ([of(false)], [of(true)]);
        let always = [
            "goodput_utility",
            "goodput_up",
            "goodput_down",
            "smallest_flow",
        ];
        let last = ["bulk_up_p50_ms", "probe_up_p99_ms"];
        assert_eq!(
            heads(&without, Width::Terminal),
            [
                &always[..],
                &["longest_stall_s"],
                &last,
                &["probe_down_p99_ms"]
            ]
            .concat()
        );
        // If flows end, the smallest share has no meaning.
        assert_eq!(
            heads(&with, Width::Terminal),
            [
                &always[..3],
                &["longest_stall_s", "start_s", "web_p95_ms"],
                &last
            ]
            .concat()
        );
        assert_eq!(heads(&with, Width::All).len(), 9);
        // An incomplete flow counts with the whole minute.
        assert_eq!(with[0].mean.down.completion_s, Some((7.0 + 60.0) / 2.0));
        assert_eq!(with[0].mean.up.completion_s, None);
        let text = table(&with, &Standard, &Defaults::paper(), Width::Terminal);
        assert!(
            text.contains("start: ") && !text.contains("min flow: "),
            "{text}"
        );
    }

    #[test]
    fn kept_acks_have_their_main_reason_and_no_best() {
        let kept = |marks| {
            move |summary: &mut Summary| {
                let shares = [("losses", 0.01), ("marks", marks)];
                summary.up.unfiltered = shares.map(|(rules, of)| (rules.into(), of)).into();
            }
        };
        let reports = [
            report("asymq", kept(0.2)),
            report("sad", kept(0.0)),
            report("cake", |_| {}),
        ];
        let text = |width| table(&reports, &Standard, &Defaults::paper(), width);
        for cell in ["0.210 marks  ", "0.010 losses ", "- "] {
            assert!(text(Width::All).contains(cell), "{}", text(Width::All));
        }
        assert!(!text(Width::Terminal).contains("marks"));
        assert!(!best(&reports).contains_key("unfiltered"));
    }

    #[test]
    fn a_single_discipline_has_no_best_values() {
        let reports = reports();
        assert!(best(&reports[..1])["goodput_utility"].is_empty());
    }
}
