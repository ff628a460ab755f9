//! `asymq measure`: a line's capacity, and its latency under load.

mod chart;
mod words;

use crate::driver::progress_bar;
use crate::output;
use anyhow::Context as _;
use asymq_core::units::{Bytes, Duration};
use asymq_measure::{Limits, MAX_FLOWS, Options, Progress, Server, measure};
use clap::{Args, Subcommand};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Measure a line: capacity up, down and both at once, latency idle and loaded, a grade.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Example: asymq measure serve   there, and   asymq measure HOST   here"
)]
pub(crate) struct MeasureArgs {
    /// Instead of measuring: be the other end.
    #[command(subcommand)]
    serve: Option<Action>,
    /// Host of `asymq measure serve`, with a port or without (9802; 5201 with --iperf3).
    #[arg(value_name = "HOST", required = true)]
    host: Option<String>,
    /// HOST runs `iperf3 -s`: rates alone, since it echoes no probe.
    #[arg(long)]
    iperf3: bool,
    /// TCP flows in each direction.
    #[arg(long, value_name = "N", default_value_t = 4,
          value_parser = clap::value_parser!(u8).range(1..=MAX_FLOWS as i64))]
    flows: u8,
    /// Time that is measured of each of the three loads, 1s to 60s.
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = time(1, 60))]
    duration: Duration,
    /// Start of each load that is left out, 1s to 30s.
    #[arg(long, value_name = "TIME", default_value = "4s", value_parser = time(1, 30))]
    warmup: Duration,
    /// Print JSON (docs/measure.md).
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Write rates and delays over time as SVG.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    chart: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Action {
    Serve(ServeArgs),
}

/// Be the server: send, receive, count and echo, within limits.
#[derive(Debug, Args)]
struct ServeArgs {
    /// Address to listen at, TCP and UDP [default: all of this host, port 9802].
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Clients at a time, 1 to 100; an address may have 2.
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u8).range(1..=100))]
    clients: u8,
    /// Longest time of a client, 10s to 600s.
    #[arg(long, value_name = "TIME", default_value = "180s", value_parser = time(10, 600))]
    time: Duration,
    /// Most bytes of a client, both directions together.
    #[arg(long, value_name = "SIZE", default_value = "20gb")]
    bytes: Bytes,
}

/// Runs the command.
pub(crate) fn run(args: &MeasureArgs) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot handle signals")?;
    }
    match (&args.serve, &args.host) {
        (Some(Action::Serve(serve)), _) => run_server(serve, stop),
        (None, Some(host)) => run_client(args, host, &stop),
        (None, None) => unreachable!("clap requires one of the two"),
    }
}

fn run_server(args: &ServeArgs, stop: Arc<AtomicBool>) -> anyhow::Result<()> {
    let limits = Limits {
        clients: args.clients.into(),
        time: std::time::Duration::from_nanos(args.time.as_nanos()),
        bytes: args.bytes.0,
        ..Limits::default()
    };
    let server = Server::bind(args.listen, limits, stop).context("cannot listen")?;
    let address = server.address().context("cannot listen")?;
    eprintln!("measure: listening at {address}, TCP and UDP; Ctrl-C ends it");
    server.run().context("the server failed")
}

fn run_client(args: &MeasureArgs, host: &str, stop: &AtomicBool) -> anyhow::Result<()> {
    let std_time = |time: Duration| std::time::Duration::from_nanos(time.as_nanos());
    let options = Options {
        host: host.to_owned(),
        iperf3: args.iperf3,
        flows: args.flows.into(),
        warmup: std_time(args.warmup),
        duration: std_time(args.duration),
        stop,
    };
    let bar = progress_bar(1000);
    let measured = measure(&options, &mut |progress: Progress| {
        bar.set_position((progress.done * 1000.0) as u64);
        bar.set_message(words::progress(&progress));
    });
    bar.finish_and_clear();
    let measured = measured?;
    if let Some(path) = &args.chart {
        output::write_file(path, &chart::svg(&measured)?)?;
    }
    match args.json {
        true => output::print_json(&measured),
        false => output::print(&words::result(&measured)),
    }
}

/// Reads a time from `min` to `max` seconds.
fn time(min: u64, max: u64) -> impl Fn(&str) -> Result<Duration, String> + Clone {
    move |text| {
        let time: Duration = text.parse().map_err(|error| format!("{error}"))?;
        let range = Duration::from_secs(min)..=Duration::from_secs(max);
        let fits = range.contains(&time);
        fits.then_some(time)
            .ok_or_else(|| format!("out of range; use {min}s to {max}s"))
    }
}

/// Whether the user ended the measurement.
pub(crate) fn is_interrupted(error: &anyhow::Error) -> bool {
    matches!(
        error.downcast_ref(),
        Some(asymq_measure::MeasureError::Interrupted)
    )
}
