//! Bad input: one clear line, exit code 2, nothing created.

use crate::asymq;
use asymq_scenario::Tcp;
use std::fs;

/// Arguments, and the error line that they must produce.
const REFUSALS: &[(&str, &str)] = &[
    (
        "sim --up 1mbitt",
        "--up 1mbitt: unknown unit 'mbitt'; use bit, kbit, mbit or gbit",
    ),
    (
        "sim --up 2Mbps",
        "--up 2Mbps: megabits are 2mbit, as speed tests print; megabytes are 16mbit",
    ),
    (
        "gateway --lan a --wan b --up 2MB/s",
        "--up 2MB/s: megabits are 2mbit, as speed tests print; megabytes are 16mbit",
    ),
    (
        "sim --udp up:2M:200b",
        "--udp up:2M:200b: 2M: megabits are 2mbit, as speed tests print; megabytes are 16mbit",
    ),
    (
        "sim --down 0mbit",
        "--down 0mbit: out of range; use 8kbit to 100gbit",
    ),
    (
        "sim --up 1bit",
        "--up 1bit: out of range; use 8kbit to 100gbit",
    ),
    (
        "gateway --lan a --wan b --up 2000gbit",
        "--up 2000gbit: out of range; use 8kbit to 100gbit",
    ),
    ("sim --rtt 0.1", "--rtt 0.1: no unit; use s, ms, us or ns"),
    ("sim --up", "--up: no value given"),
    ("sim --up 1mbit --up 2mbit", "--up: given twice"),
    (
        "sim --down 10",
        "--down 10: no unit; use bit, kbit, mbit or gbit",
    ),
    (
        "sim --down=-1mbit",
        "--down -1mbit: no number; write it like 1mbit",
    ),
    (
        "sim --rtt 300ms..20ms",
        "--rtt 300ms..20ms: out of range; use a round-trip time of up to 60s, or a range like 20ms..300ms, the \
         shorter time first",
    ),
    (
        "sim --buffer 0p",
        "--buffer 0p: out of range; use 1p to 1000000p, or 1b to 4gb",
    ),
    (
        "sim --flows-up many",
        "--flows-up many: not a whole number; write it like 5",
    ),
    (
        "sim --flows-up -1",
        "--flows-up -1: out of range; use 0 to 1000",
    ),
    (
        "sim --flows-up 1001",
        "--flows-up 1001: out of range; use 0 to 1000",
    ),
    ("sim --runs 0", "--runs 0: out of range; use 1 to 10000"),
    (
        "sim --mss 20b",
        "--mss 20b: out of range; use 88b to 65495b",
    ),
    (
        "sim --interval 0s",
        "--interval 0s: not above 0; write it like 200ms",
    ),
    (
        "sim --warmup 60s",
        "--warmup 60s: not less than the duration, 60s",
    ),
    (
        "sim --duration 0",
        "--duration 0ns: out of range; use more than 0s and at most 200000s",
    ),
    (
        "sim --tcp bbr",
        "--tcp bbr: not available in the simulator; use {simulated}",
    ),
    (
        "sim --tc cake",
        "--tc cake: not available in the simulator; leave it out, or use lab",
    ),
    ("sim --tcp vegas", "--tcp vegas: unknown; use {all}"),
    (
        "sim --tcp cubik",
        "--tcp cubik: unknown; did you mean `cubic`?",
    ),
    (
        "sim --quic chrom,down=5",
        "--quic chrom,up=0,down=5: chrom: not simulated; did you mean `chrome`?",
    ),
    (
        "sim --quic chrome,dwon=5",
        "--quic chrome,dwon=5: unknown key 'dwon'; did you mean `down`?",
    ),
    (
        "sim --flow down,sise=1mb",
        "--flow down,sise=1mb: unknown key 'sise'; did you mean `size`?",
    ),
    (
        "sim --flow down,tcp=cubix",
        "--flow down,tcp=cubix: tcp=cubix: unknown; did you mean `cubic`?",
    ),
    (
        "sim --udp left:1mbit",
        "--udp left:1mbit: unknown direction 'left'; write it like up:500kbit, down:3mbit:200b@60s..80s, up:1mbit/2..3 or up:3mbit:60b:syns",
    ),
    (
        "sim --data-per-ack 0",
        "--data-per-ack 0: out of range; use 1 to 64, or auto",
    ),
    (
        "sim --classifier acks",
        "--classifier acks: unknown; use pure-ack or none, or size<=N (20 to 1500)",
    ),
    (
        "sim --flow-up 3",
        "--flow-up: unknown argument; did you mean `--flows-up`?",
    ),
    ("sim --series", "missing: --json"),
    (
        "sim absent.toml",
        "absent.toml: cannot be read: No such file or directory (os error 2)",
    ),
    (
        "sim wrong.toml",
        "wrong.toml:2: rtt = 20: no unit; use s, ms, us or ns",
    ),
    (
        "sim short.toml --json",
        "short.toml:3: warmup = 9s: not less than the duration, 8s",
    ),
    (
        "compare wrong.toml",
        "wrong.toml:2: rtt = 20: no unit; use s, ms, us or ns",
    ),
    (
        "compare --qdisc aq",
        "--qdisc aq: compare runs several disciplines; select them with --only, or use sim or lab",
    ),
    (
        "lab --tcp newreno",
        "--tcp newreno: not available in the lab; use reno, cubic, linux or bbr",
    ),
    (
        "compare --real --qdisc aq",
        "--qdisc aq: compare runs several disciplines; select them with --only, or use sim or lab",
    ),
    (
        "gateway --lan lo --wan lo --up 1mbit --down 10mbit",
        "--wan lo: the same interface as --lan; a bridge needs two",
    ),
    (
        "gateway --lan lo --wan lo --up 1mbit",
        "--wan lo: the same interface as --lan; a bridge needs two",
    ),
    (
        "gateway --lan a --wan b --up 1mbit --qdisc aq",
        "--qdisc aq: needs the downlink's rate; add it (down 10mbit), or use asymq, which learns it",
    ),
    (
        "gateway --lan a --wan b --up 1mbit --qdisc-down fq_codel",
        "--qdisc-down fq_codel: shapes the downlink; add its rate, for example --down 10mbit",
    ),
    (
        "gateway --role headend --lan a --wan b --up 1mbit",
        "--role headend: spaces ACKs by the downlink; add its rate, for example --down 10mbit",
    ),
    (
        "gateway --lan lo --wan lo --up 1mbit --down 10mbit --overhead docsys",
        "--overhead docsys: unknown keyword 'docsys'; did you mean `docsis`?",
    ),
    (
        "model --data-size 1b",
        "--data-size 1b: out of range; use 41b to 65535b",
    ),
    (
        "model --data-per-ack x",
        "--data-per-ack x: not a number; write it like 2",
    ),
    ("simulate", "simulate: unknown command; did you mean `sim`?"),
    ("meas", "meas: unknown command; did you mean `measure`?"),
    (
        "gateway --wna eth0",
        "--wna: unknown argument; did you mean `--wan`?",
    ),
    (
        "gateway chekc",
        "chekc: unknown command; did you mean `check`?",
    ),
    (
        "sim --quic chrom",
        "--quic chrom: chrom: unknown stack; did you mean `chrome`?",
    ),
    (
        "sim --quic chrome,down=x",
        "--quic chrome,down=x: x: not a whole number; write it like 5",
    ),
    (
        "sim --up atuo",
        "--up atuo: not a range LOW..HIGH of rates; write auto, or auto:1mbit..20mbit",
    ),
    (
        "sim --overhead mup",
        "--overhead mup: unknown keyword 'mup'; did you mean `mpu`?",
    ),
    ("reproduce al", "al: unknown; did you mean `all` or `aq`?"),
    (
        "reproduce nothing",
        "nothing: unknown; use all, aq, acq-vaq, dcbq, sad, afvq, beyond, senders, rates",
    ),
    (
        "sweep wrong.toml --shard 5/4",
        "--shard 5/4: not a shard; write it like 3/16, from 1/16 to 16/16",
    ),
    (
        "merge absent",
        "merge: absent: contains no sweep; run `asymq sweep` or `asymq reproduce` first: No such file or directory (os error 2)",
    ),
    (
        "sim a.toml b.toml",
        "b.toml: unknown argument; --help lists all",
    ),
];

#[test]
fn bad_input_is_refused_in_one_line_with_exit_code_2_and_creates_nothing() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(
        directory.path().join("wrong.toml"),
        "up = \"1mbit\"\nrtt = 20\n",
    )
    .unwrap();
    fs::write(
        directory.path().join("short.toml"),
        "up = \"1mbit\"\nduration = \"8s\"\nwarmup = \"9s\"\n",
    )
    .unwrap();
    for (line, expected) in REFUSALS {
        let output = asymq(directory.path(), line);
        let stderr = String::from_utf8(output.stderr).unwrap();
        let expected = expected
            .replace("{simulated}", &Tcp::either(Tcp::simulated()))
            .replace("{all}", &Tcp::either(Tcp::ALL.iter().copied()));
        assert_eq!(stderr, format!("{expected}\n"), "asymq {line}");
        assert_eq!(output.status.code(), Some(2), "asymq {line}");
        assert!(output.stdout.is_empty(), "asymq {line}");
    }
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn an_unknown_discipline_is_answered_with_the_nearest_ones() {
    let directory = tempfile::tempdir().unwrap();
    let output = asymq(directory.path(), "sim --qdisc fqcodel");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(
        stderr,
        "--qdisc fqcodel: unknown; did you mean `fq_codel` or `codel`?\n"
    );
    assert_eq!(stderr.lines().count(), 1);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn words_of_others_reach_the_terminal_without_control_characters_and_cut() {
    let directory = tempfile::tempdir().unwrap();
    let long = "x".repeat(10_000);
    let import =
        format!("config queue\n option interface '\u{9b}2J'\n option x '\u{202e}{long}'\n");
    for (name, text, line) in [
        (
            "a.toml",
            "up = \"\\u001b]0;t\\u0007\"\n".to_owned(),
            "sim a.toml",
        ),
        ("b.toml", format!("up = \"{long}\"\n"), "sim b.toml"),
        ("c.toml", "\"\\u001b[2J\" = 1\n".to_owned(), "sim c.toml"),
        (
            "d.toml",
            "trace-up = \"\\u001b[2J\"\n".to_owned(),
            "sim d.toml",
        ),
        ("trace", format!("1\n{long}\n"), "sim --trace-up trace"),
        (
            "e.json",
            format!("{{\"scenario\": {{\"up\": \"{long}\"}}}}"),
            "sim e.json",
        ),
        (
            "f.toml",
            format!("title = \"t\"\n{long} = 1\n"),
            "sweep f.toml",
        ),
        ("sqm", import, "import sqm"),
    ] {
        fs::write(directory.path().join(name), text).unwrap();
        let output = asymq(directory.path(), line);
        for text in [output.stdout, output.stderr] {
            let text = String::from_utf8(text).unwrap();
            let is_plain = |c: char| c == '\n' || !(c.is_control() || c == '\u{202e}');
            assert!(text.chars().all(is_plain), "{line}: {text:?}");
            let most = if name == "sqm" { 5000 } else { 500 };
            assert!(text.len() < most, "{line}: {} bytes", text.len());
        }
    }
}

#[test]
fn an_unwritable_picture_is_a_failure_not_bad_input() {
    let directory = tempfile::tempdir().unwrap();
    let line = "compare --only aq --runs 1 --duration 6s --chart absent/chart.svg";
    let output = asymq(directory.path(), line);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(
        stderr.starts_with("cannot write absent/chart.svg: "),
        "{stderr}"
    );
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn help_and_version_are_answers_not_errors() {
    let directory = tempfile::tempdir().unwrap();
    for line in [
        "--help",
        "--version",
        "sim --help",
        "compare -h",
        "help model",
        "help --help",
        "help sim -h",
    ] {
        let output = asymq(directory.path(), line);
        assert_eq!(output.status.code(), Some(0), "asymq {line}");
        assert!(!output.stdout.is_empty(), "asymq {line}");
        assert!(output.stderr.is_empty(), "asymq {line}");
    }
}

#[test]
fn an_empty_command_gets_no_suggestion() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_asymq"));
    let output = command.arg("").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        !String::from_utf8(output.stderr)
            .unwrap()
            .contains("did you mean")
    );
}
