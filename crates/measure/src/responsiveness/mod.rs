//! The IETF's test of responsiveness under working conditions, draft-ietf-ippm-responsiveness.
//!
//! The test adds downloads and uploads over HTTP/2 and TLS until their rate is stable. Probes measure round trips on
//! these connections and on new ones, until the round trips are stable too.

mod calculation;
mod config;
mod connection;
mod load;
mod report;
mod server;
mod site;

pub use calculation::{Confidence, ForeignTimes, Responsiveness, SelfTimes};
pub use report::{Rates, Rating, Tested, TestedLoad, TestedSeries};
pub use server::{Certificate, HTTPS_PORT, HttpsServer};
pub use site::{MAX_CONNECTIONS, TestOptions};

use crate::client::Progress;
use crate::error::{Doing as _, MeasureError};
use crate::flows::CONNECT;
use crate::report::Link;
use asymq_core::Direction;
use asymq_scenario::{Tool, quoted};
use config::{Endpoints, WELL_KNOWN};
use connection::{Connection, Target, get};
use http::Uri;
use load::Load;
use site::{Site, TICK};
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use tokio::time::{sleep, timeout};

/// Maximum length of a configuration in bytes.
const MAX_CONFIG: usize = 16 * 1024;
const IDLE_PROBES: usize = 20;
/// Maximum time to wait until queues have drained; `REST` is the minimum.
const DRAIN: Duration = Duration::from_secs(6);
const REST: Duration = Duration::from_secs(1);

/// Tests a line's responsiveness: under uploads, under downloads, and under both.
///
/// # Errors
/// The URL or the server's configuration is invalid, the server does not answer or ends a load, or the test is stopped.
pub fn test_responsiveness(
    options: &TestOptions<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Tested, MeasureError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        // The second thread runs probes while a load occupies the first.
        .worker_threads(2)
        .enable_io()
        .enable_time()
        .build()
        .doing(|| "starting threads".into())?;
    let load = options.longest + options.interval + DRAIN + 2 * CONNECT;
    let whole = async { timeout(4 * CONNECT + 3 * load, run(options, progress)).await };
    let tested = runtime.block_on(async {
        tokio::select! {
            biased;
            () = stopped(options) => Err(MeasureError::Interrupted),
            tested = whole => tested.unwrap_or_else(|late| {
                Err(late.into()).doing(|| format!("testing with {}", quoted(&options.url)))
            }),
        }
    });
    runtime.shutdown_background();
    tested
}

/// Completes when the caller requests a stop.
async fn stopped(options: &TestOptions<'_>) {
    while !options.stop.load(Relaxed) {
        sleep(TICK).await;
    }
}

async fn run(
    options: &TestOptions<'_>,
    progress: &mut dyn FnMut(Progress),
) -> Result<Tested, MeasureError> {
    let (url, site) = discover(&options.url).await?;
    let site = Arc::new(site);
    let idle = idle(&site, progress).await?;
    let mut loads = <[TestedLoad; 3]>::default();
    let mut capacities = [None; 3];
    let all: [(&'static str, &[Direction]); 3] = [
        ("up", &[Direction::Up]),
        ("down", &[Direction::Down]),
        ("both", &[Direction::Up, Direction::Down]),
    ];
    for (index, (stage, directions)) in all.into_iter().enumerate() {
        let load = Load::new(options, &site, directions);
        let mut report = |part: f64, up: f64, down: f64, rtt_ms: Option<f64>| {
            progress(Progress {
                stage,
                done: 0.05 + 0.3 * (index as f64 + part.min(1.0)),
                up,
                down,
                rtt_ms,
            });
        };
        (loads[index], capacities[index]) = load.run(&mut report).await?;
        drain(&site, idle.as_ref()).await;
    }
    let [up, down, both] = loads;
    let mut tested = Tested {
        format: Tested::FORMAT,
        tool: Tool::new("responsiveness"),
        server: url.to_string(),
        address: site.target.address.to_string(),
        interval_s: options.interval.as_secs_f64(),
        idle,
        link: Link::new(capacities[0], capacities[1]),
        up,
        down,
        both,
        unsure: Vec::new(),
    };
    tested.unsure = tested.doubts();
    Ok(tested)
}

/// Reads the configuration, and selects an address that answers.
async fn discover(url: &str) -> Result<(Uri, Site), MeasureError> {
    let wrong = |message: &str| MeasureError::protocol(&quoted(url), message);
    let no_url = || wrong("no URL; write https://HOST:4043");
    let mut uri: Uri = url.parse().map_err(|_| no_url())?;
    let (Some("https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(wrong("this test needs TLS; write https://HOST:4043"));
    };
    if uri.path() == "/" {
        let parts = Uri::builder().scheme("https").authority(authority.clone());
        let known = parts.path_and_query(WELL_KNOWN).build();
        uri = known.map_err(|_| no_url())?;
    }
    let (first, connection) = reach(&uri, uri.host().unwrap_or_default()).await?;
    let json = timeout(CONNECT, get(&connection.requests, &uri, MAX_CONFIG)).await;
    let json = json
        .map_err(std::io::Error::from)
        .flatten()
        .doing(|| format!("{uri}: reading the configuration"))?;
    let endpoints = Endpoints::read(&json).map_err(|message| wrong(&message))?;
    let (large, other) = (&endpoints.large, endpoints.test_endpoint.as_deref());
    let target = if other.is_none() && large.authority() == uri.authority() {
        first
    } else {
        let host = other.or(large.host()).unwrap_or_default();
        reach(large, host).await?.0
    };
    Ok((uri, Site { target, endpoints }))
}

/// Connects to the first address of `host` that answers, with the server name of the URL.
async fn reach(uri: &Uri, host: &str) -> Result<(Target, Connection), MeasureError> {
    let port = uri.port_u16().unwrap_or(443);
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let found = tokio::net::lookup_host((bare, port)).await;
    let mut failed = None;
    for address in found.doing(|| format!("looking up {}", quoted(host)))? {
        let target = Target::new(address, uri.host().unwrap_or_default())
            .map_err(|message| MeasureError::protocol(host, &message))?;
        let connected = timeout(CONNECT, target.connect()).await;
        match connected.map_err(std::io::Error::from).flatten() {
            Ok(connection) => return Ok((target, connection)),
            Err(error) if error.kind() == ErrorKind::InvalidData => {
                let message = "the server has no TLS 1.3; does another server listen at this port?";
                failed = Some(MeasureError::protocol(&address.to_string(), message));
            }
            Err(source) => {
                failed = Some(MeasureError::System {
                    doing: format!("connecting to {address} (run 'asymq measure serve' there)"),
                    source,
                });
            }
        }
    }
    Err(failed.unwrap_or_else(|| MeasureError::protocol(host, "no such host")))
}

/// Sends foreign probes over the idle line, one after another.
async fn idle(
    site: &Site,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<ForeignTimes>, MeasureError> {
    let clock = Instant::now();
    let mut probes = calculation::Probes::default();
    for index in 0..IDLE_PROBES {
        sleep(TICK / 2).await;
        let probe = site.probe(clock).await;
        let probe = probe.doing(|| format!("asking {}", site.name()))?;
        progress(Progress {
            stage: "idle",
            done: 0.05 * index as f64 / IDLE_PROBES as f64,
            up: 0.0,
            down: 0.0,
            rtt_ms: Some(1e3 * probe.http),
        });
        probes.foreign.push(probe);
    }
    Ok(probes.foreign_times(0.0))
}

/// Waits until a probe is about as fast as it was on the idle line.
async fn drain(site: &Site, idle: Option<&ForeignTimes>) {
    const SLOWER: f64 = 5.0;
    let started = Instant::now();
    sleep(REST).await;
    while started.elapsed() < DRAIN {
        let probe = site.probe(started).await;
        let tcp_ms = probe.map_or(f64::INFINITY, |probe| 1e3 * probe.tcp);
        if idle.is_none_or(|idle| tcp_ms < idle.tcp_ms + SLOWER) {
            break;
        }
        sleep(TICK).await;
    }
}
