//! Checks that `docs/reference/disciplines.md` matches the catalog. To write the page: `ASYMQ_DOCS=write cargo test -p
//! asymq-core --test all documentation::`.

use asymq_core::catalog::{Catalog, Config, Entry, Params, Place, Role, Standard, resolve};
use asymq_core::units::Limit;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "\
# Disciplines and parts

Generated from the catalog in `crates/core/src/catalog`. [mechanisms.md](../notes/mechanisms.md) explains our reading of the
papers. [papers.md](../notes/papers.md) is the bibliography.

A discipline is a combination of parts. A flag such as `--service wrr` replaces one part. asymq ignores a parameter that no part of
the discipline has. A result lists all parts and parameters of its run.

Some defaults are safer than the papers' values, or work better;
[mechanisms.md](../notes/mechanisms.md#to-the-letter-or-by-default) lists both.

The column *buffer* shows `--buffer-split`: one limit for ACKs and data (shared), a limit for each (separate), or one limit divided
in the ratio of their shares of the link (in-ratio). If no packet counts as an ACK (`--classifier none`), only the data's limit
matters. A setting of a discipline takes precedence over one of its parts.
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
        let part = |name: &str| match config.params.text(name).as_deref() {
            None | Some("none") => "–".to_owned(),
            Some(part) => format!("`{part}`"),
        };
        let parts: Vec<String> = Role::PARTS.iter().map(|role| part(role.key())).collect();
        let regenerated = if entry.regenerates {
            "; sets `regenerate` to 1"
        } else {
            ""
        };
        writeln!(
            page,
            "| `{}` | {}{regenerated} | {} | {} | {} |",
            entry.name,
            entry.summary,
            parts.join(" | "),
            config.params.text("buffer-split").unwrap_or("–".into()),
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
                let own = entry.brings.iter().find(|(name, _)| *name == p.name);
                let default = own.map_or(p.default, |(_, value)| value);
                format!("`{}`: {} [{default}]", p.name, p.help)
            };
            let parameters: Vec<String> = entry.parameters.iter().map(parameter).collect();
            let is_listed = |name: &str| entry.parameters.iter().any(|p| p.name == name);
            let brings = entry.brings.iter().filter(|(name, _)| !is_listed(name));
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

#[test]
fn the_page_of_disciplines_is_the_catalog() {
    let mut page = HEAD.to_owned();
    disciplines(&mut page);
    parts(&mut page);
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
