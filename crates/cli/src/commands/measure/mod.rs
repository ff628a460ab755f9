//! `asymq measure`: a line's capacity, and its latency under load.

mod chart;
mod responsiveness;
mod words;

use crate::driver::progress_bar;
use crate::output;
use anyhow::Context as _;
use asymq_args::BadArgument;
use asymq_core::units::{Bytes, Duration};
use asymq_measure::{
    Certificate, HTTPS_PORT, HttpsServer, Limits, MAX_FLOWS, Options, Progress, Server, measure,
};
use clap::{Args, Subcommand};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

/// Measure a line: capacity up, down and both at once, latency idle and loaded, a grade.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples: asymq measure serve   there, and here   asymq measure HOST   or, \
                  for the IETF's test,   asymq measure https://HOST:4043"
)]
pub(crate) struct MeasureArgs {
    /// Instead of measuring: be the other end.
    #[command(subcommand)]
    serve: Option<Action>,
    /// Host of `asymq measure serve`, with a port or without (9802; 5201 with --iperf3); or
    /// `https://HOST:PORT` of any server of the IETF's responsiveness test.
    #[arg(value_name = "HOST|URL", required = true)]
    host: Option<String>,
    /// HOST runs `iperf3 -s`: rates alone, since it echoes no probe, unless --irtt.
    #[arg(long)]
    iperf3: bool,
    /// HOST runs `irtt server`, too: delays by its echoes (port 2112).
    #[arg(long, requires = "iperf3")]
    irtt: bool,
    /// TCP flows in each direction [default: 4; with a URL the most, 16].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=MAX_FLOWS as i64))]
    flows: Option<u8>,
    /// Time that is measured of each of the three loads, 1s to 60s [default: 10s; with a URL the
    /// longest, 20s].
    #[arg(long, value_name = "TIME", value_parser = time(1, 60))]
    duration: Option<Duration>,
    /// Start of each load that is left out, 1s to 30s [default: 4s].
    #[arg(long, value_name = "TIME", value_parser = time(1, 30))]
    warmup: Option<Duration>,
    /// With a URL: time between looks at stability, 1s to 10s [default: 1s; the draft says 5s].
    #[arg(long, value_name = "TIME", value_parser = time(1, 10))]
    interval: Option<Duration>,
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
    /// Most bytes of a client, both directions together; of a connection of the responsiveness test.
    #[arg(long, value_name = "SIZE", default_value = "20gb")]
    bytes: Bytes,
    /// Address of the IETF's responsiveness test, or `off` [default: all of this host, port 4043].
    #[arg(long, value_name = "ADDR:PORT|off", value_parser = https)]
    https: Option<Https>,
    /// Certificate for it, with those that lead to its root, in PEM [default: made at the start].
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

/// Where the responsiveness test is served.
#[derive(Clone, Copy, Debug)]
enum Https {
    Off,
    At(SocketAddr),
}

fn https(text: &str) -> Result<Https, String> {
    match text {
        "off" => Ok(Https::Off),
        address => address
            .parse()
            .map(Https::At)
            .map_err(|_| "neither ADDR:PORT, as in 10.0.0.1:4043 or [::]:4043, nor `off`".into()),
    }
}

/// Runs the command.
pub(crate) fn run(args: &MeasureArgs) -> anyhow::Result<()> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop)).context("cannot handle signals")?;
    }
    match (&args.serve, &args.host) {
        (Some(Action::Serve(serve)), _) => run_server(serve, stop),
        (None, Some(url)) if url.contains("://") => responsiveness::run(args, url, &stop),
        (None, Some(host)) => run_client(args, host, &stop),
        (None, None) => unreachable!("clap requires one of the two"),
    }
}

fn run_server(args: &ServeArgs, stop: Arc<AtomicBool>) -> anyhow::Result<()> {
    let limits = Limits {
        clients: args.clients.into(),
        time: std_time(args.time),
        bytes: args.bytes.0,
        ..Limits::default()
    };
    let server = Server::bind(args.listen, limits.clone(), Arc::clone(&stop));
    let server = server.context("cannot listen")?;
    let address = server.address().context("cannot listen")?;
    let https = bind_https(args, limits, Arc::clone(&stop))?;
    eprintln!("measure: listening at {address}, TCP and UDP; Ctrl-C ends it");
    if let Some(https) = &https {
        let address = https.address().context("cannot listen")?;
        eprintln!("measure: https://{address} for the IETF's responsiveness test");
    }
    thread::scope(|scope| {
        // The end of one is the end of both.
        let ended = |served: std::io::Result<()>| {
            stop.store(true, Relaxed);
            served.context("the server failed")
        };
        let https = https.map(|https| scope.spawn(move || ended(https.run())));
        let served = ended(server.run());
        match https.map(thread::ScopedJoinHandle::join) {
            Some(Ok(result)) => served.and(result),
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => served,
        }
    })
}

fn bind_https(
    args: &ServeArgs,
    limits: Limits,
    stop: Arc<AtomicBool>,
) -> anyhow::Result<Option<HttpsServer>> {
    let address = match args.https {
        Some(Https::Off) => return Ok(None),
        Some(Https::At(address)) => Some(address),
        // The address of the other protocol, if one was asked for.
        None => args.listen.map(|listen| (listen.ip(), HTTPS_PORT).into()),
    };
    let certificate = args.cert.clone().zip(args.key.clone());
    let certificate = certificate.map(|(chain, key)| Certificate { chain, key });
    HttpsServer::bind(address, certificate.as_ref(), limits, stop)
        .map(Some)
        .context("cannot serve the responsiveness test (--https off leaves it out)")
}

fn std_time(time: Duration) -> std::time::Duration {
    std::time::Duration::from_nanos(time.as_nanos())
}

fn run_client(args: &MeasureArgs, host: &str, stop: &AtomicBool) -> anyhow::Result<()> {
    if args.interval.is_some() {
        let message = "is of the responsiveness test: leave it out, or write https://HOST:4043";
        return Err(bad_argument("--interval", None, message));
    }
    let options = Options {
        host: host.to_owned(),
        iperf3: args.iperf3,
        irtt: args.irtt,
        flows: args.flows.unwrap_or(4).into(),
        warmup: std_time(args.warmup.unwrap_or(Duration::from_secs(4))),
        duration: std_time(args.duration.unwrap_or(Duration::from_secs(10))),
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

fn bad_argument(argument: &str, value: Option<&str>, message: &str) -> anyhow::Error {
    let bad = BadArgument {
        argument: argument.into(),
        value: value.map(Into::into),
        message: message.into(),
    };
    bad.into()
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
