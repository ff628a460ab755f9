//! The report: the texts of a user's sweep and of the papers' page, which must work without JavaScript.

use asymq_scenario::Run;
use asymq_sweep::experiment::{self, Experiment};
use asymq_sweep::metrics;
use asymq_sweep::outcome;
use asymq_sweep::outcome::Outcome;
use asymq_sweep::report::Origin;
use asymq_sweep::report::{self, Collection};
use asymq_sweep::store::{Recording, Results, Stored, key};
use std::path::Path;

const SWEEP: &str = r#"
title = "Does a larger uplink help?"
assumptions = ["The RTTs are ours. At 1 Mbit/s the download is { aq:down@1mbit }."]

[scenario]
runs = 3

[[sweep]]
key = "up"
values = ["1mbit", "2mbit", "4mbit"]

[[series]]
id = "aq"
title = "AQ"
set.qdisc = "aq"
paper.down = { "1mbit" = 0.98 }

[[series]]
id = "droptail"
title = "DropTail"
set.qdisc = "droptail"

[[measure]]
id = "down"
title = "download"
of = "down.utilization"

[[measure]]
id = "rate"
title = "download rate"
unit = "Mbit/s"
of = "down.throughput / 1000000"

[[chart]]
measures = ["down", "rate"]

[[chart]]
over = "time"
panels = [
  { title = "download", of = "down.data", paper = { aq = 0.97 } },
  { title = "download again", of = "down.data", measure = "down" },
]
"#;

const CLAIMS: &str = r#"
[[claim]]
id = "ahead"
says = "AQ's download is ahead."
holds = ["aq:down > droptail:down"]

[[claim]]
id = "full"
says = "AQ's download is twice full."
holds = ["aq:down = 2 within 0.01 of 2"]
because = "It is { aq:down@1mbit }."
shown-by = ["aq:down < 1.5"]
"#;

/// Results without a simulator: AQ at 0.9 and DropTail at 0.5, with variation over the seeds.
fn outcome(name: &str, claims: &str) -> Outcome {
    outcome_of(name, &(SWEEP.to_owned() + claims))
}

fn outcome_of(name: &str, text: &str) -> Outcome {
    let experiment = experiment::read_text(
        name,
        Path::new("sweep.toml"),
        text,
        &asymq_args::Defaults::paper(),
    )
    .unwrap();
    let mut results = Results::default();
    let levels = [0.9, 0.5];
    for (series, level) in experiment.series.iter().zip(levels) {
        for scenario in series.cells.iter().map(|cell| &cell.scenario) {
            for seed in scenario.seeds() {
                let mut run = Run {
                    seed,
                    ..Run::default()
                };
                run.summary.down.utilization = level + 0.001 * seed as f64;
                run.summary.down.data = level;
                results
                    .insert(Stored {
                        key: key(scenario, seed),
                        metrics: metrics::of_run(&run, scenario),
                        recording: Some(Recording {
                            interval_s: 1.0,
                            up: vec![1.0; 10],
                            down: vec![level; 10],
                            data_up: vec![0.7; 10],
                            data_down: vec![level; 10],
                        }),
                        flows: Vec::new(),
                    })
                    .unwrap();
            }
        }
    }
    outcome::judge(&[experiment], &results).unwrap().remove(0)
}

static PAPERS: Collection = Collection {
    title: "The papers, reproduced",
    command: "asymq reproduce all",
    groups: &[("aq", "Asymmetric Queueing", "Podlesny, Williamson")],
};

fn origin(quick: bool) -> Origin {
    Origin {
        collection: &PAPERS,
        ..Origin::of_this_build(quick)
    }
}

fn page(outcome: Outcome, quick: bool) -> String {
    report::page(&[outcome], &origin(quick), &["runs.csv".into()]).unwrap()
}

/// Returns the text that a reader sees, without style, drawings, files and tags.
fn words(page: &str) -> String {
    let mut page = page.to_owned();
    for (from, to) in [
        ("<style", "</style>"),
        ("<svg", "</svg>"),
        ("<pre", "</pre>"),
        ("<", ">"),
    ] {
        while let Some(start) = page.find(from) {
            let end = page[start..].find(to).unwrap() + start + to.len();
            page.replace_range(start..end, " ");
        }
    }
    let page = page.replace("&gt;", ">");
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_users_sweep_has_its_title_and_numbers_and_no_talk_of_papers() {
    let outcome = outcome("own/uplink", "");
    let page = page(outcome, false);
    assert!(page.contains("<title>Does a larger uplink help?</title>"));
    let words = words(&page).to_lowercase();
    for absent in ["paper", "claim", "verdict", "reproduced"] {
        assert!(!words.contains(absent), "{absent}: {words}");
    }
    assert!(words.contains("0.902 ± 0.002"), "{words}");
    assert!(page.contains("href=\"runs.csv\""));
    assert!(
        !page.contains("details class=\"numbers\""),
        "they are folded"
    );
}

#[test]
fn a_summary_carries_no_markup_of_an_experiment_s_author() {
    // TOML's escapes: `\\` is a backslash, `\n` a line feed.
    const HOSTILE: &str = r"x <script>a\\<b>c|d [e](javascript:f) ![g](h) [i]: j\n\n<k>";
    let text = SWEEP.to_owned() + CLAIMS;
    let text = text.replace("AQ's download", HOSTILE);
    let text = text.replace("title = \"", &format!("title = \"{HOSTILE}"));
    let label = format!("key = \"up\"\nlabel = \"{HOSTILE}\"");
    let text = text.replace("key = \"up\"", &label);
    let text = text.replace("\"4mbit\"", "{ name = \"<l>|\", up = \"4mbit\" }");
    let text = format!("search = \"{HOSTILE}\"\n{text}");
    for name in ["own/uplink", "aq/uplink"] {
        let summary = report::summary(&[outcome_of(name, &text)], &origin(false));
        let free = summary.replace(r"\\", "");
        let of_author = |begin: &str| free.replace(&format!("\\{begin}"), "").contains(begin);
        for begin in ["<script>", "<b>", "<k>", "<l>", "](", "]:"] {
            assert!(!of_author(begin), "{begin} in {summary}");
        }
        let cells = |line: &str| line.replace(r"\|", "").matches('|').count();
        let mut tables = summary.split("\n\n").filter(|part| part.starts_with('|'));
        let same = |table: &str| {
            table
                .lines()
                .all(|line| cells(line) == cells(table.lines().next().unwrap()))
        };
        assert!(tables.all(same), "{summary}");
        let search = "\nResult of the search for settings (each number of a claim counts as a part of the claim): x ";
        assert!(summary.contains(search), "{summary}");
    }
}

#[test]
fn a_users_summary_has_the_numbers_under_its_title() {
    let summary = report::summary(&[outcome("own/uplink", "")], &origin(false));
    assert!(
        summary.starts_with("# Does a larger uplink help?\n"),
        "{summary}"
    );
    assert!(
        summary.contains("| AQ | 1mbit | 0.902 ± 0.002 |"),
        "{summary}"
    );
    assert!(!summary.to_lowercase().contains("reproduced"), "{summary}");
}

#[test]
fn both_sides_of_a_comparison_are_shown_where_it_holds() {
    let page = page(outcome("aq/uplink", CLAIMS), false);
    let words = words(&page);
    assert!(
        words.contains("AQ, download: 0.902 ± 0.011 > 0.502 ± 0.011 at 1mbit"),
        "{words}"
    );
    assert!(
        words.contains("AQ, download: 0.902 ± 0.011 not = 2.000 (± 0.010)"),
        "{words}"
    );
    assert!(
        page.contains("circle class=\"other\""),
        "the right side is drawn"
    );
    let summary = report::summary(&[outcome("aq/uplink", CLAIMS)], &origin(false));
    assert!(
        summary.contains("0.902 ± 0.011 > 0.502 ± 0.011 at 1mbit"),
        "{summary}"
    );
}

#[test]
fn a_report_defines_its_words_and_the_verdicts_that_it_has() {
    let text = words(&page(outcome("aq/uplink", CLAIMS), false));
    let summary = report::summary(&[outcome("aq/uplink", CLAIMS)], &origin(false));
    for word in [
        "a ± b = c (± d)",
        "within a of b, within a as printed b",
        "settled",
        "made-up",
        "not reproduced",
    ] {
        assert!(
            summary.contains(&format!("\n- *{word}*: ")),
            "{word}: {summary}"
        );
        assert!(text.contains(word), "{word}: {text}");
    }
    assert!(!summary.contains("*vacuous*"), "{summary}");
}

#[test]
fn a_preview_gives_no_sentence_that_its_numbers_may_contradict() {
    let full = words(&page(outcome("aq/uplink", CLAIMS), false));
    assert!(full.contains("It is 0.902."), "{full}");
    assert!(
        full.contains("At 1 Mbit/s the download is 0.902."),
        "{full}"
    );
    let preview = words(&page(outcome("aq/uplink", CLAIMS), true));
    assert!(!preview.contains("It is 0.902."), "{preview}");
    assert!(!preview.contains("the download is"), "{preview}");
    assert!(preview.contains("The RTTs are ours."), "{preview}");
}

#[test]
fn filter_and_contents_need_no_script() {
    let page = page(outcome("aq/uplink", CLAIMS), false);
    assert!(!page.contains("<script"));
    for verdict in ["good", "bad"] {
        assert!(
            page.contains(&format!("id=\"show-{verdict}\"")),
            "{verdict}"
        );
        assert!(page.contains(&format!("body:has(#show-{verdict}:checked)")));
        assert!(page.contains(&format!("li class=\"claim is-{verdict}\"")));
    }
    assert!(
        !page.contains("id=\"show-half\""),
        "a button that would show nothing"
    );
    // Every link has a target.
    for link in page.split("href=\"#").skip(1) {
        let target = link.split('"').next().unwrap();
        assert!(page.contains(&format!("id=\"{target}\"")), "{target}");
    }
}

#[test]
fn each_panel_has_an_axis_of_its_own_with_its_unit() {
    let outcome = outcome("own/uplink", "");
    let experiment: &Experiment = &outcome.experiment;
    let labels: Vec<&str> = experiment.charts[0]
        .panels
        .iter()
        .map(|panel| panel.y_label.as_str())
        .collect();
    assert_eq!(labels, ["", "Mbit/s"]);
    let page = page(outcome, false);
    // The first panel ends at 1, the second at the capacity of 10 Mbit/s.
    let panels: Vec<&str> = page.split("class=\"panel\"").skip(1).collect();
    assert_eq!(panels.len(), 4);
    let has_tick = |panel: &str, tick: &str| panel.contains(&format!("\n{tick}\n</text>"));
    assert!(has_tick(panels[0], "0.8") && !has_tick(panels[0], "8"));
    assert!(has_tick(panels[1], "8") && !has_tick(panels[1], "0.8"));
}

#[test]
fn published_values_are_marked_in_charts_over_the_sweep_and_over_time() {
    let page = page(outcome("own/uplink", ""), false);
    let panels: Vec<&str> = page.split("class=\"panel\"").skip(1).collect();
    let diamonds = |panel: &str| panel.matches("<polygon").count();
    let bands = |panel: &str| panel.matches("opacity=\"0.14\"").count();
    assert_eq!(diamonds(panels[0]) - bands(panels[0]), 1, "over the sweep");
    assert_eq!(diamonds(panels[2]) - bands(panels[2]), 1, "over time");
    assert_eq!(diamonds(panels[3]) - bands(panels[3]), 1, "of the measure");
}
