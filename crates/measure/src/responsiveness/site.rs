//! Options of a test, and the server under test.

use super::calculation::{Foreign, Own};
use super::config::Endpoints;
use super::connection::{Connection, Target, get};
use crate::flows::CONNECT;
use bytes::Bytes;
use h2::client::SendRequest;
use std::io;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Interval between checks of loads and queues.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// Maximum number of connections that carry load in one direction.
pub const MAX_CONNECTIONS: usize = 64;

/// The options of a test.
#[derive(Clone, Debug)]
pub struct TestOptions<'a> {
    /// `https://HOST[:PORT]`, or the URL of a configuration.
    pub url: String,
    /// Maximum number of connections that carry load in each direction, 1 to [`MAX_CONNECTIONS`].
    pub connections: usize,
    /// Interval between checks of stability; each check adds a connection in each direction.
    pub interval: Duration,
    /// Maximum time of each of the three loads.
    pub longest: Duration,
    /// Flag that ends the test.
    pub stop: &'a AtomicBool,
}

/// A server and its objects.
pub(super) struct Site {
    pub(super) target: Target,
    pub(super) endpoints: Endpoints,
}

impl Site {
    pub(super) fn name(&self) -> String {
        let authority = self.endpoints.large.authority();
        authority.map(ToString::to_string).unwrap_or_default()
    }

    /// Opens a connection and requests one byte. The result's time is relative to `clock`.
    pub(super) async fn probe(&self, clock: Instant) -> io::Result<Foreign> {
        let probing = async {
            let connection = self.target.connect().await?;
            let start = Instant::now();
            get(&connection.requests, &self.endpoints.small, 1024).await?;
            Ok(Foreign {
                at: clock.elapsed().as_secs_f64(),
                tcp: connection.tcp,
                tls: connection.tls,
                http: start.elapsed().as_secs_f64(),
                crossed: connection.arrived.each_ref().map(|arrived| {
                    let counter = arrived.as_ref();
                    let of = counter.map(|counter| counter.packets(self.target.headers()));
                    of.map_or(0, |[_, in_order, headers]| in_order + headers)
                }),
            })
        };
        timeout(CONNECT, probing).await?
    }

    /// Requests one byte on an open connection.
    pub(super) async fn probe_on(
        &self,
        requests: &SendRequest<Bytes>,
        clock: Instant,
    ) -> io::Result<Own> {
        let start = Instant::now();
        let asking = get(requests, &self.endpoints.small, 1024);
        timeout(CONNECT, asking).await??;
        Ok(Own {
            at: clock.elapsed().as_secs_f64(),
            http: start.elapsed().as_secs_f64(),
        })
    }

    /// Opens a connection for a load. Retries after a failure, because the queue filled by the load may drop packets.
    pub(super) async fn connect(&self) -> io::Result<Connection> {
        const TRIES: usize = 5;
        for _ in 1..TRIES {
            if let Ok(Ok(connection)) = timeout(CONNECT, self.target.connect()).await {
                return Ok(connection);
            }
            tokio::time::sleep(TICK).await;
        }
        timeout(CONNECT, self.target.connect()).await?
    }
}
