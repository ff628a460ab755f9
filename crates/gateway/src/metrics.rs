//! Metrics over HTTP, beside the gateway and at no cost to it.

use crate::clients::{Clients, Limits};
use crate::exposition::exposition;
use crate::gateway::GatewayError;
use crate::http::{MAX_HEAD, respond};
use crate::snapshot::Shared;
use crate::stop::Bell;
use crate::sys::yield_to_forwarding;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::time::Duration;

const LIMITS: Limits = Limits {
    clients: 16,
    request: MAX_HEAD,
    time: Duration::from_secs(5),
};

/// Serves `/metrics`.
pub(crate) struct MetricsServer {
    clients: Clients,
}

impl MetricsServer {
    /// Listens; [`serve`](Self::serve) answers.
    ///
    /// # Errors
    /// The address cannot be listened at.
    pub(crate) fn open(address: SocketAddr) -> Result<Self, GatewayError> {
        let clients = TcpListener::bind(address)
            .and_then(|listener| Clients::new(listener, LIMITS))
            .map_err(|source| GatewayError::Output {
                flag: format!("--metrics {address}"),
                source,
            })?;
        Ok(Self { clients })
    }

    /// Serves until `quit` rings.
    pub(crate) fn serve(mut self, stats: &Shared, quit: &Bell) {
        yield_to_forwarding();
        // A page is written once for all that ask between two snapshots.
        let (mut written, mut text) = (None, String::new());
        let mut page = || {
            let count = Some(stats.count());
            if count != written {
                (written, text) = (count, exposition(&stats.latest()));
            }
            text.clone()
        };
        let mut answer = |request: &[u8], arrived| respond(request, arrived, &mut page);
        while let Ok([false]) = self.clients.turn([quit.as_fd()], &mut answer) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Snapshot;
    use asymq_core::Reason;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::thread;

    fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn a_server_answers_with_the_latest_snapshot() {
        let stats = Shared::default();
        let mut snapshot = Snapshot::default();
        snapshot.up.ack.bytes = 1234;
        snapshot.up.data.sojourn_p99_ms = 12.5;
        snapshot.up.control.insert("data_share", 0.75);
        snapshot.down.ack.reasons[Reason::AckFiltered as usize] = 9;
        stats.publish(snapshot);
        let server = MetricsServer::open("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = server.clients.listener().local_addr().unwrap();
        let address = address.as_socket().unwrap();
        let quit = Bell::new().unwrap();
        let serving = thread::spawn({
            let quit = quit.clone();
            move || server.serve(&stats, &quit)
        });
        let answer = ask(address, "/metrics");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        for line in [
            "# TYPE asymq_bytes_total counter",
            "asymq_bytes_total{direction=\"up\",class=\"ack\"} 1234",
            "asymq_sojourn_seconds{direction=\"up\",class=\"data\",quantile=\"0.99\"} 0.0125",
            "asymq_filtered_packets_total{direction=\"down\",class=\"ack\",reason=\"ack-filtered\"} 9",
            "asymq_control{direction=\"up\",name=\"data_share\"} 0.75",
        ] {
            assert!(
                answer.lines().any(|found| found == line),
                "{line} in {answer}"
            );
        }
        assert!(ask(address, "/").starts_with("HTTP/1.1 404"));
        quit.ring();
        serving.join().unwrap();
    }
}
