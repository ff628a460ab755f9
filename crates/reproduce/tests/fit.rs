//! The search for settings that a text leaves open.

use asymq_args::Defaults;
use asymq_core::units::Duration;
use asymq_reproduce::fit::{Effort, Found, Number, Rung, Search, halves};
use asymq_reproduce::{Files, PAPERS};
use std::path::Path;

/// A paper whose claims hold with a window of 20 packets and no other.
const FIGURE: &str = r#"
title = "Fig. 1: a window"

[scenario]
readings = "papers"
up = "1mbit"
down = "10mbit"
flows-up = 0
flows-down = 1
rtt = "100ms"
window = "60p"
duration = "20s"
warmup = "5s"
runs = 5

[[series]]
id = "droptail"
set.qdisc = "droptail"

[[series]]
id = "wide"
variant = true
set = { qdisc = "droptail", window = "60p" }

[[measure]]
id = "down"
title = "download"
of = "down.data"
"#;

fn files(folder: &Path) -> Files {
    let claim = |id: usize| {
        format!(
            "\n[[claim]]\nid = \"c{id}\"\nsays = \"A fifth.\"\nholds = [\"droptail:down = 0.23 within 0.02 of 0.2\"]\n"
        )
    };
    let variant =
        "\n[[claim]]\nid = \"variant\"\nsays = \"More.\"\nholds = [\"wide:down > 0.5\"]\n";
    let claims: String = (0..8).map(claim).chain([variant.into()]).collect();
    let free = "[[free]]\nname = \"window\"\nkey = \"window\"\nvalues = [\"5p\", \"20p\", \"60p\"]\n\
                open = \"No window.\"\nprior = \"Any.\"\n";
    std::fs::create_dir_all(folder.join("aq")).unwrap();
    std::fs::write(
        folder.join("aq/figure-01.toml"),
        FIGURE.to_owned() + &claims,
    )
    .unwrap();
    std::fs::write(folder.join("aq/free.toml"), free).unwrap();
    Files::of(folder).unwrap()
}

fn search(files: &Files, out: &Path) -> Found {
    let rung = |skip| Rung {
        runs: 1,
        skip,
        longest: Duration::from_secs(20),
    };
    let search = Search {
        files,
        paper: "aq",
        defaults: &Defaults::paper(),
        folder: out,
        threads: 1,
        effort: Effort {
            settings: 3,
            random: 3,
            rungs: vec![rung(0)],
            descent: 1,
            judge: rung(100),
        },
    };
    search.run(asymq_sim::STANDARD, &|_, _, _| {}).unwrap()
}

#[test]
fn a_search_finds_the_setting_of_the_claims_and_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let files = files(folder.path());
    let out = folder.path().join("out");
    let found = search(&files, &out);
    assert_eq!(found.settings["window"], "20p");
    let account = &found.account;
    assert_eq!((account.used, account.held_out), (5, 4));
    let hits = account.found;
    assert_eq!(
        hits.used + hits.held_out,
        9,
        "the variant keeps its own window"
    );
    assert!(hits.held_out > account.file.held_out);

    let log = std::fs::read_to_string(out.join("evaluations.jsonl")).unwrap();
    let torn = &log[..log.len() - 10];
    std::fs::write(out.join("evaluations.jsonl"), torn).unwrap();
    assert_eq!(search(&files, &out), found);
    let again = std::fs::read_to_string(out.join("evaluations.jsonl")).unwrap();
    assert_eq!(again.lines().count(), log.lines().count() + 1);
    assert_eq!(search(&files, &out), found);
    let third = std::fs::read_to_string(out.join("evaluations.jsonl")).unwrap();
    assert_eq!(third, again);
}

#[test]
fn half_of_the_numbers_is_held_out_whatever_their_order() {
    let numbers = || {
        let number = |index| Number {
            claim: "a/one".into(),
            index,
        };
        (0..5).map(number).collect::<Vec<_>>()
    };
    let (used, held) = halves(numbers());
    assert_eq!((used.len(), held.len()), (3, 2));
    let reversed = numbers().into_iter().rev().collect();
    assert_eq!(halves(reversed), (used, held));
}

#[test]
fn every_paper_lists_what_its_text_leaves_open() {
    let files = Files::built_in();
    for (paper, ..) in PAPERS {
        let free = files.free(paper).unwrap();
        assert!((2..=6).contains(&free.len()), "{paper}");
        for one in &free {
            let reasons = [&one.open, &one.prior];
            assert!(reasons.iter().all(|reason| !reason.is_empty()), "{paper}");
        }
    }
}
