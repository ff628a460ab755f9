//! Numbers on netlink are an ABI: no number may ever change.

use asymq_core::catalog::{Catalog, Config, Kind, Params, Role, Standard, known_parameters};
use asymq_core::{Direction, Rate};
use asymq_laws::golden::trace;
use asymq_wire::statistics::{self, Unit};
use asymq_wire::{
    ATTRIBUTES, COUNT, Device, FIRST_PARAMETER, Numbers, PARAMETERS, Width, config, decode,
    decode_statistics, derive, describe, encode, given, id, merge, names, numbers_of, range, rules,
    shown, words,
};
use std::fmt::Write;

const ROLES: [Role; 6] = [
    Role::Qdisc,
    Role::AckQueue,
    Role::DataQueue,
    Role::Aqm,
    Role::Service,
    Role::Controller,
];

const DEVICE: Device = Device {
    queue_len: 1000,
    direction: Direction::Up,
    learnt: None,
};

fn read(command: &str) -> Result<Params, String> {
    let line: Vec<&str> = command.split_whitespace().collect();
    Ok(merge(Params::new(), words(&line)?))
}

fn resolved(command: &str) -> Result<(Numbers, Numbers), String> {
    let given = read(command)?;
    Ok((describe(&given, &DEVICE)?, numbers_of(&given)?))
}

/// Lists every number, with the keywords of each parameter.
fn list() -> String {
    let mut list = String::new();
    for attribute in ATTRIBUTES {
        writeln!(
            list,
            "{} {} {:?}",
            attribute.id, attribute.name, attribute.width
        )
        .unwrap();
    }
    for (place, (name, width)) in PARAMETERS.iter().enumerate() {
        write!(list, "{} {name} {width:?}", 32 + place).unwrap();
        let parameter = known_parameters(&Standard);
        let parameter = parameter.iter().find(|known| known.name == *name);
        if let Some(Kind::Words(words)) = parameter.map(|known| known.kind) {
            write!(list, " {}", words.join(" ")).unwrap();
        }
        list.push('\n');
    }
    for role in ROLES {
        for (place, name) in names(role).iter().enumerate() {
            writeln!(list, "{} {place} {name}", role.key()).unwrap();
        }
    }
    for (place, (name, statistics)) in (statistics::id::FIRST_LIST..).zip(statistics::LISTS) {
        writeln!(list, "statistics {place} '{name}'").unwrap();
        for (place, (statistic, unit)) in (statistics::FIRST..).zip(*statistics) {
            writeln!(list, "statistics '{name}' {place} {statistic} {unit:?}").unwrap();
        }
    }
    list
}

/// Names and numbers may only be added; keywords of a parameter only at the end of its line.
#[test]
fn no_number_moves() {
    let golden = include_str!("ids");
    let list = list();
    for line in golden.lines() {
        let stays = |now: &str| now == line || now.starts_with(&format!("{line} "));
        assert!(
            list.lines().any(stays),
            "an ABI has changed: no more '{line}'"
        );
    }
    let added: Vec<_> = list
        .lines()
        .filter(|line| !golden.lines().any(|known| known == *line))
        .collect();
    if std::env::var_os("ASYMQ_DOCS").is_some_and(|value| value == "write") {
        let all: String = golden
            .lines()
            .chain(added)
            .map(|line| format!("{line}\n"))
            .collect();
        std::fs::write("tests/ids", all).unwrap();
        return;
    }
    assert!(added.is_empty(), "add to kernel/wire/tests/ids: {added:#?}");
}

/// Name in the style of C constants.
fn constant(name: &str) -> String {
    format!("TCA_ASYMQ_{}", name.to_uppercase().replace('-', "_"))
}

/// All attributes with minimum and maximum, without the nest of given values.
fn bounded() -> Vec<(u16, &'static str, Width, (i128, i128))> {
    let own = ATTRIBUTES.iter().map(|own| {
        let of_role = ROLES.into_iter().find(|role| role.key() == own.name);
        let range = match (own.name, of_role) {
            (_, Some(role)) => (0, names(role).len() as i128 - 1),
            ("up" | "down", _) => (8_000, 100_000_000_000),
            ("shaped" | "nat", _) => (0, 1),
            ("overhead", _) => (-64, 256),
            ("mpu", _) => (0, 256),
            ("framing" | "basis", _) => (0, 2),
            ("version", _) => (0, u32::MAX.into()),
            _ => (1, u64::MAX.into()),
        };
        (own.id, own.name, own.width, range)
    });
    let parameters = PARAMETERS
        .iter()
        .zip(FIRST_PARAMETER..)
        .map(|((name, width), id)| {
            let (min, max) = range(name);
            let most = match width {
                Width::U32 => u64::from(u32::MAX),
                _ => u64::MAX,
            };
            (id, *name, *width, (min.into(), max.min(most).into()))
        });
    own.chain(parameters).collect()
}

/// Writes the constants of the lists of statistics.
fn statistics_header(page: &mut String) {
    let constant = |name: &str| name.to_uppercase().replace(['-', '.'], "_");
    page.push_str("/* Lists in TCA_STATS_APP, and the entries beside them. */\nenum {\n");
    writeln!(page, "\tASYMQ_STATS_VERSION = {},", statistics::id::VERSION).unwrap();
    writeln!(page, "\tASYMQ_STATS_FAILED = {},", statistics::id::FAILED).unwrap();
    for (number, (name, _)) in (statistics::id::FIRST_LIST..).zip(statistics::LISTS) {
        let name = if name.is_empty() { "total" } else { name };
        writeln!(page, "\tASYMQ_STATS_{} = {number},", constant(name)).unwrap();
    }
    page.push_str("};\n\n");
    let mut done = vec![];
    for (name, list) in statistics::LISTS {
        let name = match *name {
            "" => "total",
            "ack" | "data" | "other" => "class",
            name => name,
        };
        if done.contains(&name) {
            continue;
        }
        done.push(name);
        writeln!(
            page,
            "enum {{\n\tASYMQ_{}_PAD = {},",
            constant(name),
            statistics::PAD
        )
        .unwrap();
        for (number, (statistic, unit)) in (statistics::FIRST..).zip(*list) {
            let unit = match unit {
                Unit::Count => "",
                Unit::Share => "\t/* steps of 2^-30 */",
                Unit::Time => "\t/* ns */",
                Unit::Real => "\t/* the bits of a double */",
                Unit::Rate => "\t/* bit/s */",
            };
            writeln!(
                page,
                "\tASYMQ_{}_{} = {number},{unit}",
                constant(name),
                constant(statistic)
            )
            .unwrap();
        }
        page.push_str("};\n\n");
    }
}

fn header() -> String {
    let mut page = String::from(
        "/* SPDX-License-Identifier: MIT OR GPL-2.0 */\n\
         /* Made from kernel/wire by ASYMQ_DOCS=write cargo test -p asymq-wire; do not edit. */\n\
         #ifndef ASYMQ_PARAMETERS_H\n#define ASYMQ_PARAMETERS_H\n\n\
         /* Attributes of a qdisc; docs/kernel/module.md lists their units. */\nenum {\n",
    );
    let all = bounded();
    for (id, name, ..) in &all {
        writeln!(page, "\t{} = {id},", constant(name)).unwrap();
        if *name == "version" {
            writeln!(page, "\tTCA_ASYMQ_GIVEN = {},", id::GIVEN).unwrap();
        }
        if *name == "up-max" {
            writeln!(page, "\tTCA_ASYMQ_PAD = {},", id::PAD).unwrap();
        }
    }
    writeln!(
        page,
        "}};\n\n/* Last attribute plus one. */\n#define ASYMQ_ATTRIBUTES {COUNT}\n"
    )
    .unwrap();
    page.push_str("/* each(WIDTH, ATTRIBUTE, LEAST, MOST): non-negative values, then those that may be negative. */\n");
    for (list, signed) in [("UNSIGNED", false), ("SIGNED", true)] {
        write!(page, "#define ASYMQ_{list}(each)").unwrap();
        for (_, name, width, (min, max)) in &all {
            if (*width == Width::S32) == signed {
                let suffix = if signed { "" } else { "ULL" };
                let width = format!("{width:?}");
                write!(
                    page,
                    " \\\n\teach({width}, {}, {min}{suffix}, {max}{suffix})",
                    constant(name)
                )
                .unwrap();
            }
        }
        page.push_str("\n\n");
    }
    statistics_header(&mut page);
    page.push_str("#endif\n");
    page
}

/// Name as the kernel's YNL spells it.
fn spec_name(name: &str) -> String {
    name.replace(['_', '.'], "-")
}

/// Start of the description: the message for a qdisc.
const SPEC: &str = include_str!("head.yaml");

/// Description of the attributes for YNL, in the kernel's format.
fn spec() -> String {
    let mut page = String::from(SPEC);
    let known = known_parameters(&Standard);
    let parameter = |name: &str| known.iter().find(|known| known.name == name);
    let words = |name: &str| {
        let of_role = ROLES.into_iter().find(|role| role.key() == name);
        of_role.map(names).or_else(|| match parameter(name)?.kind {
            Kind::Words(words) => Some(words),
            _ => None,
        })
    };
    page.push_str("definitions:\n");
    page.push_str(include_str!("tcmsg.yaml"));
    for (_, name, ..) in bounded() {
        if let Some(words) = words(name) {
            writeln!(
                page,
                "  -\n    name: {}-words\n    type: enum\n    entries:",
                spec_name(name)
            )
            .unwrap();
            for word in words {
                writeln!(page, "      - '{word}'").unwrap();
            }
        }
    }
    page.push_str(include_str!("attributes.yaml"));
    for (set, with_nest) in [("asymq-given", false), ("asymq-options", true)] {
        writeln!(page, "  -\n    name: {set}\n    attributes:").unwrap();
        for (id, name, width, (min, _)) in bounded() {
            let spec = spec_name(name);
            let kind = format!("{width:?}").to_lowercase();
            writeln!(
                page,
                "      -\n        name: {spec}\n        type: {kind}\n        value: {id}"
            )
            .unwrap();
            let help = parameter(name).map_or("", |known| known.help);
            if !help.is_empty() {
                writeln!(page, "        doc: {help:?}").unwrap();
            }
            if words(name).is_some() {
                writeln!(page, "        enum: {spec}-words").unwrap();
            } else if min > 0 {
                writeln!(page, "        checks:\n          min: {min}").unwrap();
            }
            if name == "version" && with_nest {
                writeln!(page, "      -\n        name: given\n        type: nest\n        value: {}\n        doc: The attributes that a user gave.\n        nested-attributes: asymq-given", id::GIVEN).unwrap();
            }
            if name == "up-max" {
                writeln!(
                    page,
                    "      -\n        name: pad\n        type: pad\n        value: {}",
                    id::PAD
                )
                .unwrap();
            }
        }
    }
    writeln!(page, "  -\n    name: asymq-statistics\n    attributes:").unwrap();
    let own = [
        ("version", statistics::id::VERSION),
        ("failed", statistics::id::FAILED),
    ];
    for (name, number) in own {
        writeln!(
            page,
            "      -\n        name: {name}\n        type: u32\n        value: {number}"
        )
        .unwrap();
    }
    let set = |name: &str| match name {
        "" => "total".to_owned(),
        "ack" | "data" | "other" => "class".to_owned(),
        name => name.to_owned(),
    };
    for (number, (name, _)) in (statistics::id::FIRST_LIST..).zip(statistics::LISTS) {
        let shown = if name.is_empty() { "total" } else { name };
        writeln!(page, "      -\n        name: {shown}\n        type: nest\n        value: {number}\n        nested-attributes: asymq-{}", set(name)).unwrap();
    }
    let mut done = vec![];
    for (name, list) in statistics::LISTS {
        if done.contains(&set(name)) {
            continue;
        }
        done.push(set(name));
        writeln!(page, "  -\n    name: asymq-{}\n    attributes:\n      -\n        name: pad\n        type: pad\n        value: {}", set(name), statistics::PAD).unwrap();
        for (number, (statistic, unit)) in (statistics::FIRST..).zip(*list) {
            let unit = match unit {
                Unit::Count => "",
                Unit::Share => "in steps of 2^-30",
                Unit::Time => "ns",
                Unit::Real => "the bits of a double",
                Unit::Rate => "bit/s",
            };
            writeln!(
                page,
                "      -\n        name: {}\n        type: u64\n        value: {number}",
                spec_name(statistic)
            )
            .unwrap();
            if !unit.is_empty() {
                writeln!(page, "        doc: {unit}").unwrap();
            }
        }
    }
    page.push_str(include_str!("operations.yaml"));
    page
}

#[test]
fn the_description_for_ynl_has_these_numbers() {
    is_written("../module/asymq.yaml", &spec());
}

#[test]
fn the_header_has_these_numbers() {
    is_written("../module/parameters.h", &header());
}

/// Compares a file with the text generated from the catalog.
fn is_written(path: &str, text: &str) {
    if std::env::var_os("ASYMQ_DOCS").is_some_and(|value| value == "write") {
        std::fs::write(path, text).unwrap();
    }
    let found = std::fs::read_to_string(path).unwrap();
    assert!(
        found == text,
        "{path}: run ASYMQ_DOCS=write cargo test -p asymq-wire"
    );
}

/// Disciplines that the qdisc offers.
fn offered() -> impl Iterator<Item = &'static str> {
    names(Role::Qdisc).iter().copied()
}

#[test]
fn every_number_names_something_of_the_catalog() {
    for role in ROLES {
        for name in names(role) {
            assert!(Standard.entry(role, name).is_some(), "{name}");
        }
    }
    let known = known_parameters(&Standard);
    for (name, _) in PARAMETERS {
        assert!(known.iter().any(|known| known.name == *name), "{name}");
    }
}

/// The kernel builds exactly the discipline that the arguments describe.
#[test]
fn numbers_are_the_words() {
    for name in offered() {
        let command = format!("{name} up 1mbit down 10mbit docsis");
        let given = read(&command).unwrap();
        let numbers = describe(&given, &DEVICE).unwrap();
        let (back, _) = decode(&encode(&numbers, &Numbers::default())).unwrap();
        assert!(back == numbers, "{command}: attributes lose something");
        let built = config(&numbers).unwrap_or_else(|error| panic!("{command}: {error:?}"));
        let by_words = by_words(&given);
        assert_eq!(built.qdisc, by_words.qdisc);
        assert_eq!(
            (built.link, built.reverse, built.limit),
            (by_words.link, by_words.reverse, by_words.limit)
        );
        assert_eq!(
            built.params.to_params(),
            by_words.params.to_params(),
            "{command}"
        );
        let [built, by_words] = [built, by_words].map(|config| trace(&Standard, &config));
        assert!(built == by_words, "{command}");
    }
}

fn by_words(given: &Params) -> Config {
    let numbers = describe(given, &DEVICE).unwrap();
    let own = ["qdisc", "up", "down", "buffer", "shaped", "nat", "overhead"];
    let all = shown(&numbers).into_iter();
    let (first, rest): (Vec<_>, Vec<_>) = all.partition(|(name, _)| own.contains(&name.as_str()));
    let value = |name: &str| {
        first
            .iter()
            .find(|(known, _)| known == name)
            .unwrap()
            .1
            .clone()
    };
    let place = asymq_core::catalog::Place {
        link: value("up").parse().unwrap(),
        reverse: Some(value("down").parse().unwrap()),
        limit: value("buffer").parse().unwrap(),
    };
    let rest: Params = rest.into_iter().collect();
    asymq_core::catalog::resolve(&Standard, &value("qdisc"), &rest, &Params::new(), place).unwrap()
}

/// A change of a rate or of the buffer alone gives the values that `tc` gives for the whole command.
#[test]
fn derived_values_follow_a_changed_rate_or_buffer() {
    let changes = [
        ("up 2mbit", id::UP),
        ("up 30mbit", id::UP),
        ("up 1gbit", id::UP),
        ("down 70mbit", id::DOWN),
        ("buffer 77p", id::BUFFER),
    ];
    let own = [
        "",
        "configured-rate 3mbit",
        "ack-limit 9p",
        "cake-rtt 1s",
        "buffer 60p",
    ];
    for name in offered() {
        for own in own {
            for (change, id) in changes {
                let before = format!("{name} up 1mbit down 10mbit {own}");
                let (mut numbers, mut given) = resolved(&before).unwrap();
                assert!(
                    rules(&numbers, &given).is_some(),
                    "{before}: too many rules"
                );
                let (whole, _) = resolved(&format!("{before} {change}")).unwrap();
                for numbers in [&mut numbers, &mut given] {
                    numbers.set(id, whole.get(id).unwrap());
                }
                derive(&mut numbers, &given).unwrap();
                let wrong = (0..COUNT as u16).filter(|id| numbers.get(*id) != whole.get(*id));
                assert_eq!(wrong.collect::<Vec<_>>(), [], "{before}, then {change}");
            }
        }
    }
}

/// Printed options are accepted as input, with the same meaning.
#[test]
fn printed_options_are_accepted_again() {
    for command in [
        "",
        "up 1000kbit",
        "up auto",
        "up auto:1mbit..20mbit",
        "aq up 1mbit down 10mbit data-per-ack 2.5 docsis",
        "dcbq up 1mbit down 10mbit data-per-ack auto utility priority:0.5",
        "cbq up 1mbit data-share 0.7339 made-up 50ms",
        "cbq up 1mbit data-share 0.000000001",
        "cake up 10mbit diffserv besteffort isolation hosts ack-filter ack-filter memlimit 1mb",
        "dualpi2 up 1mbit alpha 0.25 beta 8388607",
        "sad up 1mbit classifier size<=52 max-stretch none raw overhead -14 mpu 64 atm",
        "vaq up 1mbit down 10mbit max-credit none credit segment buffer 64kb unshaped nat",
    ] {
        let (numbers, given_numbers) = resolved(command).unwrap();
        let words = shown(&numbers);
        let again: Params = words.iter().cloned().collect();
        let second = describe(&again, &DEVICE).unwrap();
        assert_eq!(words, shown(&second), "{command}");
        assert!(numbers == second, "{command}");
        let given_again = given(&given_numbers);
        assert!(
            describe(&given_again, &DEVICE).unwrap() == numbers,
            "{command}: {given_again:?}"
        );
    }
}

#[test]
fn a_share_is_printed_as_written() {
    for share in ["0.1", "0.3", "0.7339", "0.5", "0.999999999"] {
        let (numbers, _) = resolved(&format!("cbq up 1mbit data-share {share}")).unwrap();
        let found = shown(&numbers)
            .into_iter()
            .find(|(name, _)| name == "data-share");
        assert_eq!(found.unwrap().1, share);
    }
}

#[test]
fn the_usual_discipline_is_that_of_no_words() {
    for (queue_len, packets) in [(1000, 1000), (7, 50), (100_000, 10_000)] {
        let device = Device {
            queue_len,
            ..DEVICE
        };
        let said = describe(&Params::new(), &device).unwrap();
        assert!(said == usual(packets), "{:?}", shown(&said));
    }
}

fn usual(packets: u32) -> Numbers {
    let mut numbers = Numbers::default();
    numbers.set_usual(packets);
    numbers
}

#[test]
fn errors_give_a_valid_form() {
    for (command, error) in [
        ("up", "up: value required; write `up 1mbit`"),
        (
            "sad up 1mbit down",
            "down: value required; write `down 1mbit`",
        ),
        ("up 1mbit down", "down: value required; write `down 1mbit`"),
        (
            "up 1mbit sad",
            "sad: write the discipline first, like `sad up 1mbit`",
        ),
        (
            "aq up 1mbit down 10mbit data-share 1.5",
            "data-share 1.5: out of range; use data's share, above 0 and below 1, such as 0.7",
        ),
        (
            "sad up 1mbit interval nonsense",
            "interval nonsense: no number; write it like 20ms",
        ),
        ("sad up fast", "up fast: no number; write it like 1mbit"),
        ("sad up 1bit", "up 1bit: out of range; use 8kbit to 100gbit"),
        (
            "sad no-such 1",
            "no-such 1: unknown parameter; --help lists all",
        ),
        (
            "fqcodel",
            "qdisc fqcodel: unknown; did you mean `fq_codel` or `codel`?",
        ),
        (
            "aq upp 1mbit",
            "upp 1mbit: unknown parameter; did you mean `up`?",
        ),
        ("aq down 10mbit", "up: required with `aq`; write `up 1mbit`"),
        ("sad shaped", "up: required with `shaped`; write `up 1mbit`"),
    ] {
        let found = resolved(command).map(|_| ()).unwrap_err();
        assert_eq!(found, error, "{command}");
    }
}

#[test]
fn numbers_out_of_range_are_refused() {
    let (numbers, _) = resolved("aq up 1mbit down 10mbit").unwrap();
    for (id, value) in numbers
        .iter()
        .filter(|(id, _)| *id != id::SHAPED && *id != id::NAT)
    {
        let mut without = numbers.clone();
        without.remove(id);
        let is_built = config(&without).and_then(|config| {
            Standard
                .build::<asymq_laws::Numbered>(&config)
                .map_err(|_| asymq_wire::WireError::Missing(id))
        });
        let optional =
            [id::OVERHEAD, id::MPU, id::FRAMING, id::BASIS].contains(&id) || value == u64::MAX - 1;
        assert!(
            optional || is_built.is_err(),
            "without {id}, which was {value}"
        );
    }
    for (id, value) in [
        (id::QDISC, 31),
        (id::QDISC, u64::MAX),
        (id::UP, 0),
        (id::UP, 7999),
        (id::DOWN, 0),
        (id::BUFFER, 0),
        (id::BUFFER, 1 << 63),
        (id::SERVICE, 7),
        (33, 3),
    ] {
        let mut wrong = numbers.clone();
        wrong.set(id, value);
        assert!(config(&wrong).is_err(), "{id} {value}");
    }
    let mut foreign = numbers.clone();
    foreign.set(u16::try_from(COUNT - 1).unwrap(), 1);
    assert_eq!(
        config(&foreign).err(),
        Some(asymq_wire::WireError::Foreign(COUNT as u16 - 1))
    );
}

/// Every control variable has a number, with the right unit.
#[test]
fn every_control_variable_has_a_number() {
    for name in offered() {
        let (numbers, _) = resolved(&format!("{name} up 1mbit down 10mbit")).unwrap();
        let qdisc = Standard
            .build::<asymq_laws::Numbered>(&config(&numbers).unwrap())
            .unwrap();
        qdisc.probe(&mut |name, reading| {
            let number = statistics::of_variable(name);
            let number = number
                .unwrap_or_else(|| panic!("{name}: append it to kernel/wire/src/statistics.rs"));
            let (_, unit) = statistics::CONTROL[usize::from(number - statistics::FIRST)];
            assert_eq!(statistics::of_reading(reading).1, unit, "{name}");
        });
    }
    for reason in asymq_core::Reason::ALL {
        assert!(
            statistics::of_reason(*reason).is_some(),
            "{}",
            reason.name()
        );
    }
    for reason in asymq_rates::Reason::ALL {
        assert!(
            statistics::of_variable(reason.variable()).is_some(),
            "{}",
            reason.variable()
        );
    }
    for (place, class) in asymq_core::TrafficClass::ALL.into_iter().enumerate() {
        assert_eq!(
            statistics::list(statistics::of_class(class)).unwrap().0,
            class.name()
        );
        assert_eq!(usize::from(statistics::of_class(class)), 5 + place);
    }
}

#[test]
fn statistics_have_names() {
    let attribute = |kind: u16, payload: &[u8]| {
        let mut bytes = vec![];
        bytes.extend((4 + payload.len() as u16).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    };
    let sojourn = attribute(statistics::class::SOJOURN, &7u64.to_ne_bytes());
    let bytes = [
        attribute(statistics::id::VERSION, &1u32.to_ne_bytes()),
        attribute(
            statistics::OF_TOTAL | 0x8000,
            &attribute(2, &3u64.to_ne_bytes()),
        ),
        attribute(
            6 | 0x8000,
            &[attribute(statistics::PAD, &[]), sojourn].concat(),
        ),
        attribute(999, &[1]),
    ]
    .concat();
    let mut told = vec![];
    decode_statistics(&bytes, |name, unit, value| {
        told.push((name.to_owned(), unit, value))
    })
    .unwrap();
    let expected = [
        ("dropped".to_owned(), Unit::Count, 3),
        ("data.sojourn.p50".to_owned(), Unit::Time, 7),
    ];
    assert_eq!(told, expected);
    assert!(
        decode_statistics(&bytes[8..], |_, _, _| ()).is_err(),
        "without a version"
    );
}

#[test]
fn other_versions_are_refused() {
    let (numbers, given) = resolved("sad up 1mbit").unwrap();
    let mut bytes = encode(&numbers, &given);
    assert!(decode(&bytes).is_ok());
    bytes[4] += 1;
    assert!(decode(&bytes).is_err());
    // A message of a module that exchanged text.
    let mut words = vec![13, 0, 1, 0];
    words.extend(b"up 1mbit\0\0\0\0");
    assert!(decode(&words).is_err());
    assert!(decode(&[]).is_err());
    for end in 0..bytes.len() {
        drop(decode(&bytes[..end]));
    }
}

#[test]
fn ranges_are_those_of_words() {
    assert_eq!(range("data-share"), (1, (1 << 30) - 1));
    assert_eq!(range("borrow"), (0, 1));
    assert_eq!(range("quantum"), (256, 1 << 20));
    assert_eq!(range("diffserv"), (0, 4));
    assert_eq!(range("interval"), (0, u64::MAX));
    assert!(Rate::from_bits_per_sec(1).is_some());
}
