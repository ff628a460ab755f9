//! `asymq measure`: a line's capacity, and its latency under load.

#[cfg(feature = "research")]
mod chart;
#[cfg(feature = "https")]
mod https;
#[cfg(feature = "https")]
mod responsiveness;
#[cfg(target_os = "linux")]
mod shaper;
mod words;

use crate::output;
use crate::progress::ProgressBar;
use crate::signals::stop_on;
use anyhow::Context as _;
use asymq_args::BadArgument;
use asymq_core::units::{Bytes, Duration};
use asymq_measure::{Limits, MAX_FLOWS, Options, Progress, Server, measure};
use clap::{Args, Subcommand};
use libc::{SIGINT, SIGTERM};
use std::net::SocketAddr;
#[cfg(feature = "research")]
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Measure a line: its capacity in each direction, and its latency when idle and under load.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  asymq measure serve                (on the server)\n  asymq measure HOST                 \
                  (on this host)\n  asymq measure https://HOST:4043    (on this host, with the IETF's test)"
)]
pub(crate) struct MeasureArgs {
    /// Serve measurements instead.
    #[command(subcommand)]
    serve: Option<Action>,
    /// Host of `asymq measure serve`, optionally with a port (default 9802; 5201 with --iperf3). Or `https://HOST:PORT` of any server for the IETF's responsiveness test.
    #[arg(value_name = "HOST|URL", required = true)]
    host: Option<String>,
    /// Measure with the iperf3 server (`iperf3 -s`) on HOST: only rates, because iperf3 echoes no probes.
    #[arg(long)]
    iperf3: bool,
    /// Number of TCP flows in each direction [default: 4]; with a URL, their maximum number [default: 16].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=MAX_FLOWS as i64))]
    flows: Option<u8>,
    /// Measured time of each load (up, down, both), 1s to 60s [default: 10s]; with a URL, maximum time of each load [default: 20s].
    #[arg(long, value_name = "TIME", value_parser = time(1, 60))]
    duration: Option<Duration>,
    /// Time for which each load runs before it is measured, 1s to 30s [default: 4s].
    #[arg(long, value_name = "TIME", value_parser = time(1, 30))]
    warmup: Option<Duration>,
    /// Length of the intervals in which the responsiveness test (URL) measures, 1s to 10s; the IETF's draft recommends 5s [default: 1s].
    #[arg(long, value_name = "TIME", value_parser = time(1, 10))]
    interval: Option<Duration>,
    /// Print JSON (docs/reference/json.md).
    #[arg(long, help_heading = "Output")]
    json: bool,
    /// Write a chart of rates and delays over time to this SVG file.
    #[cfg(feature = "research")]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    chart: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Action {
    Serve(ServeArgs),
}

/// Run a server for `asymq measure`, with limits per client.
#[derive(Debug, Args)]
struct ServeArgs {
    /// Address to listen on, with TCP and UDP [default: all addresses, port 9802].
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,
    /// Maximum number of simultaneous clients, 1 to 100; at most 2 of them from one IPv4 address or IPv6 /64.
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u8).range(1..=100))]
    clients: u8,
    /// Maximum time per client, 10s to 600s.
    #[arg(long, value_name = "TIME", default_value = "180s", value_parser = time(10, 600))]
    time: Duration,
    /// Maximum bytes per client (in the responsiveness test, per connection), up plus down.
    #[arg(long, value_name = "SIZE", default_value = "20gb")]
    bytes: Bytes,
    #[cfg(feature = "https")]
    #[command(flatten)]
    https: https::HttpsArgs,
}

pub(crate) fn run(args: &MeasureArgs) -> anyhow::Result<()> {
    let stop = stop_on(&[SIGINT, SIGTERM])?;
    match (&args.serve, &args.host) {
        (Some(Action::Serve(serve)), _) => run_server(serve, stop),
        #[cfg(feature = "https")]
        (None, Some(url)) if url.contains("://") => responsiveness::run(args, url, &stop),
        #[cfg(not(feature = "https"))]
        (None, Some(url)) if url.contains("://") => {
            let message =
                "this build has no TLS; use a package, or cargo run --release --features https";
            Err(BadArgument::new("URL", message).of_value(url).into())
        }
        (None, Some(host)) => run_client(args, host, &stop),
        (None, None) => unreachable!("clap requires one of the two"),
    }
}

fn run_server(args: &ServeArgs, stop: Arc<AtomicBool>) -> anyhow::Result<()> {
    let limits = Limits {
        clients: args.clients.into(),
        time: args.time.into(),
        bytes: args.bytes.0,
        ..Limits::default()
    };
    let server = Server::bind(args.listen, limits.clone(), Arc::clone(&stop));
    let server = server.context("cannot listen")?;
    let address = server.address().context("cannot listen")?;
    #[cfg(feature = "https")]
    let https = args.https.bind(args.listen, limits, stop.clone())?;
    eprintln!("measure: listening at {address}, TCP and UDP; Ctrl-C ends it");
    #[cfg(feature = "https")]
    if let Some(https) = https {
        return https::run_both(server, https, &stop);
    }
    server.run().context("the server failed")
}

fn run_client(args: &MeasureArgs, host: &str, stop: &AtomicBool) -> anyhow::Result<()> {
    if args.interval.is_some() {
        let message = "only for the responsiveness test; remove it, or write https://HOST:4043";
        return Err(BadArgument::new("--interval", message).into());
    }
    let options = Options {
        host: host.to_owned(),
        iperf3: args.iperf3,
        flows: args.flows.unwrap_or(4).into(),
        warmup: args.warmup.unwrap_or(Duration::from_secs(4)).into(),
        duration: args.duration.unwrap_or(Duration::from_secs(10)).into(),
        stop,
    };
    let mut measured = with_bar(|progress| measure(&options, progress))?;
    #[cfg(target_os = "linux")]
    if let Some(shaper) = shaper::of_this_host() {
        measured.advice.keep_shaper(&shaper);
    }
    #[cfg(feature = "research")]
    if let Some(path) = &args.chart {
        output::write_file(path, &chart::svg(&measured))?;
    }
    match args.json {
        true => output::print_json(&measured),
        false => output::print(&words::result(&measured)),
    }
}

/// Shows the progress of `work`.
fn with_bar<T>(work: impl FnOnce(&mut dyn FnMut(Progress)) -> T) -> T {
    let bar = ProgressBar::new(1000);
    let done = work(&mut |progress: Progress| {
        bar.set_position((progress.done * 1000.0) as u64);
        bar.set_message(words::progress(&progress));
    });
    bar.finish_and_clear();
    done
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
