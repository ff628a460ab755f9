//! `docs/reference/disciplines.md` is the catalog in words. After a change of the catalog:
//! `ASYMQ_DOCS=write cargo test -p asymq-core --test documentation`.

use asymq_core::catalog::{
    Catalog, Config, Entry, Params, Place, Readings, Role, Standard, known_parameters, resolve,
    resolve_by,
};
use asymq_core::units::Limit;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
# Disciplines and parts

Made from the catalog in `crates/core/src/catalog`; do not edit by hand. [mechanisms.md](../notes/mechanisms.md) says how the
papers were read, [papers.md](../notes/papers.md) has the references.

A discipline is a choice of parts. `--ack-queue sad`, `--service wrr` and so on replace one part; the others stay the
discipline's own. A parameter that a discipline lacks is ignored; the result shows what ran.

Defaults in the tables are the papers', to the letter: those of `--readings papers`, which `asymq reproduce` runs. Elsewhere
the values of [the last section](#ours-not-the-papers) go first, which are ours.
";

fn resolved(name: &str) -> Config {
    let place = Place {
        link: "1mbit".parse().unwrap(),
        reverse: Some("10mbit".parse().unwrap()),
        limit: Limit::Packets(50),
    };
    resolve(&Standard, name, &Params::new(), &Params::new(), place).unwrap()
}

fn disciplines(page: &mut String) {
    page.push_str("\n## Disciplines\n\n| name | what it does | ACK queue | data queue | AQM | service | controller | buffer | source |\n");
    page.push_str("| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
    for entry in Standard.of_role(Role::Qdisc) {
        let config = resolved(entry.name);
        let part = |name: &str| match config.params.get(name) {
            None | Some("none") => "–".to_owned(),
            Some(part) => format!("`{part}`"),
        };
        let parts: Vec<String> = Role::PARTS.iter().map(|role| part(role.key())).collect();
        let regenerated = if entry.regenerates {
            "; `regenerate` 1"
        } else {
            ""
        };
        writeln!(
            page,
            "| `{}` | {}{regenerated} | {} | {} | {} |",
            entry.name,
            entry.summary,
            parts.join(" | "),
            config.params.get("buffer-split").unwrap_or("–"),
            source(entry)
        )
        .unwrap();
    }
}

fn source(entry: &Entry) -> &str {
    match entry.source {
        "" => "asymq",
        source => source,
    }
}

fn parts(page: &mut String) {
    for role in Role::PARTS {
        write!(page, "\n## `--{}`\n\n{}.\n\n", role.key(), role.help()).unwrap();
        page.push_str(
            "| name | what it does | parameters [default] | source |\n| --- | --- | --- | --- |\n",
        );
        for entry in Standard.of_role(role) {
            let parameter = |p: &asymq_core::catalog::Parameter| {
                format!("`{}`: {} [{}]", p.name, p.help, p.default.words())
            };
            let parameters: Vec<String> = entry.parameters.iter().map(parameter).collect();
            let brings = entry.brings.iter();
            let brings =
                brings.map(|(name, value)| format!("sets `{name}` to {value} unless given"));
            let cell: Vec<String> = parameters.into_iter().chain(brings).collect();
            writeln!(
                page,
                "| `{}` | {} | {} | {} |",
                entry.name,
                entry.summary,
                cell.join("; ").replace('|', "\\|"),
                entry.source
            )
            .unwrap();
        }
    }
}

/// The papers' value of a parameter that an entry has another of: what it brings, or the default.
fn papers(entry: &Entry, parameter: &str) -> &'static str {
    let brought = entry.brings.iter().find(|(name, _)| *name == parameter);
    let known = known_parameters(&Standard);
    let own = entry.parameters.iter().chain(&known);
    let default = own
        .filter(|p| p.name == parameter)
        .map(|p| p.default.words());
    let brought = brought.map(|(_, value)| *value);
    brought.into_iter().chain(default).next().unwrap()
}

fn ours(page: &mut String) {
    page.push_str(
        "\n## Ours, not the papers'\n\nSafety bounds and readings that work better, used unless `--readings papers` or another value is given.\n\n\
         | of | parameter | papers | ours | why |\n| --- | --- | --- | --- | --- |\n",
    );
    for entry in Standard.entries() {
        for ours in entry.ours {
            let papers = papers(entry, ours.parameter);
            let (key, name) = (entry.role.key(), entry.name);
            writeln!(
                page,
                "| {key} `{name}` | `{}` | {papers} | {} | {} |",
                ours.parameter, ours.value, ours.why
            )
            .unwrap();
        }
    }
}

#[test]
fn the_page_of_disciplines_is_the_catalog() {
    let mut page = HEAD.to_owned();
    disciplines(&mut page);
    parts(&mut page);
    ours(&mut page);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/disciplines.md");
    if std::env::var("ASYMQ_DOCS").is_ok_and(|value| value == "write") {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        written == page,
        "docs/reference/disciplines.md is not the catalog; ASYMQ_DOCS=write writes it"
    );
}

#[test]
fn what_is_ours_differs_from_the_papers_and_is_run_unless_theirs_is_asked_for() {
    let none = Params::new();
    let place = || Place {
        link: "1mbit".parse().unwrap(),
        reverse: Some("10mbit".parse().unwrap()),
        limit: Limit::Packets(50),
    };
    for entry in Standard.entries() {
        for ours in entry.ours {
            assert_ne!(papers(entry, ours.parameter), ours.value);
            // A part is chosen in droptail, a discipline by its name.
            let (name, given) = match entry.role {
                Role::Qdisc => (entry.name, none.clone()),
                role => ("droptail", [(role.key(), entry.name)].into_iter().collect()),
            };
            let run = |readings| {
                let config = resolve_by(readings, &Standard, name, &given, &none, place());
                config
                    .unwrap()
                    .params
                    .get(ours.parameter)
                    .map(str::to_owned)
            };
            let papers = papers(entry, ours.parameter).to_owned();
            assert_eq!(run(Readings::Ours), Some(ours.value.to_owned()));
            assert_eq!(run(Readings::Papers), Some(papers), "{}", entry.name);
        }
    }
}
