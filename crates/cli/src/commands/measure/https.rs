//! The server's flags for the IETF's responsiveness test.

use anyhow::Context as _;
use asymq_measure::{Certificate, HTTPS_PORT, HttpsServer, Limits, Server};
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;

#[derive(Debug, Args)]
pub(super) struct HttpsArgs {
    /// Address on which to serve the IETF's responsiveness test, or `off` [default: address of --listen, port 4043].
    #[arg(long, value_name = "ADDR:PORT|off", value_parser = place)]
    https: Option<Place>,
    /// Certificate chain for --https, in PEM [default: a new self-signed certificate].
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
}

/// Address at which the test is served, if at all.
#[derive(Clone, Copy, Debug)]
enum Place {
    Nowhere,
    At(SocketAddr),
}

fn place(text: &str) -> Result<Place, String> {
    match text {
        "off" => Ok(Place::Nowhere),
        address => address
            .parse()
            .map(Place::At)
            .map_err(|_| "use ADDR:PORT, as in 10.0.0.1:4043 or [::]:4043, or off".into()),
    }
}

impl HttpsArgs {
    /// Listens; returns `None` with `off`.
    pub(super) fn bind(
        &self,
        listen: Option<SocketAddr>,
        limits: Limits,
        stop: Arc<AtomicBool>,
    ) -> anyhow::Result<Option<HttpsServer>> {
        let address = match self.https {
            Some(Place::Nowhere) => return Ok(None),
            Some(Place::At(address)) => Some(address),
            None => listen.map(|listen| (listen.ip(), HTTPS_PORT).into()),
        };
        let certificate = self.cert.clone().zip(self.key.clone());
        let certificate = certificate.map(|(chain, key)| Certificate { chain, key });
        HttpsServer::bind(address, certificate.as_ref(), limits, stop)
            .map(Some)
            .context("cannot serve the responsiveness test (--https off turns it off)")
    }
}

/// Runs `server` and `https` until `stop` is set. If one of them ends, the other one ends too.
pub(super) fn run_both(
    server: Server,
    https: HttpsServer,
    stop: &AtomicBool,
) -> anyhow::Result<()> {
    let address = https.address().context("cannot listen")?;
    eprintln!("measure: https://{address} serves the IETF's responsiveness test");
    let ended = |served: std::io::Result<()>| {
        stop.store(true, Relaxed);
        served.context("the server failed")
    };
    thread::scope(|scope| {
        let other = scope.spawn(move || ended(https.run()));
        let served = ended(server.run());
        let other = other.join();
        served.and(other.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}
