//! The IETF's responsiveness test: flags of the client, and its output.

use super::MeasureArgs;
use super::words::{self, milliseconds};
use crate::output::{self, Table, rate, wrapped};
use asymq_args::BadArgument;
use asymq_core::units::Duration;
use asymq_measure::{TestOptions, Tested, TestedLoad, test_responsiveness};
use std::sync::atomic::AtomicBool;

pub(super) fn run(args: &MeasureArgs, url: &str, stop: &AtomicBool) -> anyhow::Result<()> {
    let foreign = [
        ("--iperf3", args.iperf3),
        ("--warmup", args.warmup.is_some()),
        #[cfg(feature = "research")]
        ("--chart", args.chart.is_some()),
    ];
    if let Some((flag, _)) = foreign.into_iter().find(|(_, is_set)| *is_set) {
        let message =
            "not for the responsiveness test; remove it, or measure HOST without https://";
        return Err(BadArgument::new(flag, message).into());
    }
    if !url.starts_with("https://") {
        let message = "the responsiveness test needs TLS; write https://HOST:PORT";
        return Err(BadArgument::new("URL", message).of_value(url).into());
    }
    let options = TestOptions {
        url: url.to_owned(),
        connections: args.flows.unwrap_or(16).into(),
        interval: args.interval.unwrap_or(Duration::from_secs(1)).into(),
        longest: args.duration.unwrap_or(Duration::from_secs(20)).into(),
        stop,
    };
    let tested = super::with_bar(|progress| test_responsiveness(&options, progress))?;
    match args.json {
        true => output::print_json(&tested),
        false => output::print(&result(&tested)),
    }
}

/// Formats the table and the uncertain points.
fn result(tested: &Tested) -> String {
    let mut table = Table::new([
        "load",
        "upload",
        "download",
        "RPM",
        "",
        "confidence",
        "foreign",
        "self",
    ]);
    for (name, load) in tested.loads() {
        table.row(row(name, load));
    }
    let mut text = format!("{} ({})\n\n", tested.server, tested.address);
    if let Some(idle) = tested.idle {
        text += &format!(
            "Idle: TCP {}, TLS {}, HTTP {}.\n\n",
            milliseconds(idle.tcp_ms),
            milliseconds(idle.tls_ms),
            milliseconds(idle.http_ms)
        );
    }
    text += &format!("{}\n{table}\n", words::capacities(&tested.link));
    text += &wrapped(
        "RPM: round trips per minute under load, the mean of probes on new connections (foreign) and \
         on those that carry the load (self).",
        80,
    );
    text + &words::doubts(&tested.unsure)
}

fn row(name: &str, load: &TestedLoad) -> [String; 8] {
    let of = load.responsiveness;
    let carried = |bits: f64| {
        if bits > 0.0 {
            rate(bits)
        } else {
            String::new()
        }
    };
    let whole = |value: Option<f64>| value.map(|value| format!("{value:.0}")).unwrap_or_default();
    [
        name.into(),
        carried(load.rate.up),
        carried(load.rate.down),
        whole(of.map(|of| of.rpm)),
        load.rating
            .map(|rating| rating.name().into())
            .unwrap_or_default(),
        load.rpm_confidence.name().into(),
        whole(of.map(|of| of.foreign.rpm)),
        whole(of.map(|of| of.own.rpm)),
    ]
}
