//! Serves metrics and page over HTTP, on threads beside the forwarding loop.

use crate::clients::{Clients, Limits};
use crate::error::GatewayError;
use crate::exposition::exposition;
use crate::flows::FlowRequests;
use crate::history::History;
use crate::hosts::hosts_json;
use crate::http::{MAX_HEAD, Page, respond};
use crate::snapshot::Shared;
use crate::stop::Waker;
use crate::sys::{drop_capabilities, lower_priority};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsFd as _;
use std::time::Duration;

const LIMITS: Limits = Limits {
    clients: 16,
    request: MAX_HEAD,
    time: Duration::from_secs(5),
};

/// Listens at `address`. Errors name the address by its flag.
pub(crate) fn listen(flag: &str, address: SocketAddr) -> Result<Clients, GatewayError> {
    let clients = TcpListener::bind(address).and_then(|listener| Clients::new(listener, LIMITS));
    clients.map_err(|source| GatewayError::Output {
        flag: format!("{flag} {address}"),
        source,
    })
}

/// Serves until `quit` wakes.
pub(crate) fn serve(
    mut clients: Clients,
    quit: &Waker,
    known: &str,
    mut page: impl FnMut(&str) -> Option<Page>,
) {
    lower_priority();
    drop_capabilities();
    let mut answer = |request: &[u8], arrived| respond(request, arrived, known, &mut page);
    while let Ok([false]) = clients.turn([quit.as_fd()], &mut answer) {}
}

/// Serves `/metrics` until `quit` wakes.
pub(crate) fn serve_metrics(clients: Clients, stats: &Shared, quit: &Waker) {
    // All requests between two snapshots get the same text.
    let (mut written, mut text) = (None, String::new());
    serve(clients, quit, "the metrics are at /metrics\n", |path| {
        if path.split('?').next() != Some("/metrics") {
            return None;
        }
        let count = Some(stats.count());
        if count != written {
            (written, text) = (count, exposition(&stats.latest()));
        }
        Some(Page {
            kind: "text/plain; version=0.0.4",
            body: text.clone().into(),
        })
    });
}

/// A page to serve.
#[derive(Clone, Copy, Debug)]
pub struct PageOptions {
    /// Address to listen at.
    pub address: SocketAddr,
    /// Files: name, media type and content. The empty name is the page itself.
    pub files: &'static [(&'static str, &'static str, &'static str)],
}

impl PageOptions {
    /// Returns the function that maps a path with query to a page.
    pub(crate) fn answers(
        self,
        history: &History,
        stats: &Shared,
        requests: &FlowRequests,
        title: impl Fn() -> String,
    ) -> impl FnMut(&str) -> Option<Page> {
        let id = RandomState::new().build_hasher().finish() >> 16;
        move |path| {
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let after = || match query.strip_prefix("after=") {
                Some(after) => after.parse().ok(),
                None => Some(0),
            };
            let json = |body: String| Page {
                kind: "application/json",
                body: body.into(),
            };
            Some(match path.strip_prefix('/')? {
                "history" => json(history.json(after()?, id, &title())),
                "hosts" => {
                    requests.request();
                    json(hosts_json(&stats.flows()))
                }
                name => {
                    let (_, kind, body) = self.files.iter().find(|(of, _, _)| *of == name)?;
                    Page {
                        kind,
                        body: (*body).into(),
                    }
                }
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::snapshot::Snapshot;
    use asymq_core::Reason;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::sync::Arc;
    use std::thread;

    fn ask(address: SocketAddr, path: &str) -> String {
        ask_as("x", address, path)
    }

    fn ask_as(host: &str, address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
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
        stats.publish(snapshot, None);
        let clients = listen("--metrics", "127.0.0.1:0".parse().unwrap()).unwrap();
        let address = clients.listener().local_addr().unwrap();
        let address = address.as_socket().unwrap();
        let quit = Waker::new().unwrap();
        let serving = thread::spawn({
            let quit = quit.clone();
            move || serve_metrics(clients, &stats, &quit)
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
        // DNS rebinding: a web page under another name that resolves to this address must read nothing.
        assert!(ask_as("evil.example:9800", address, "/metrics").starts_with("HTTP/1.1 421"));
        quit.wake();
        serving.join().unwrap();
    }

    #[test]
    fn a_page_serves_files_and_history_and_a_dead_reader_blocks_no_other() {
        let options = PageOptions {
            address: "127.0.0.1:0".parse().unwrap(),
            files: &[
                ("", "text/html", "the page"),
                ("x.js", "text/javascript", "code"),
            ],
        };
        let clients = listen("--page", options.address).unwrap();
        let address = clients.listener().local_addr().unwrap();
        let address = address.as_socket().unwrap();
        let stats = Shared::default();
        let history = Arc::new(History::default());
        let quit = Waker::new().unwrap();
        let threads = [
            thread::spawn({
                let (stats, history) = (stats.clone(), history.clone());
                move || history.keep(&stats)
            }),
            thread::spawn({
                let (quit, history, stats) = (quit.clone(), history.clone(), stats.clone());
                move || {
                    let title = || "lan \"to\" wan".to_owned();
                    serve(
                        clients,
                        &quit,
                        "elsewhere\n",
                        options.answers(&history, &stats, &FlowRequests::default(), title),
                    );
                }
            }),
        ];
        let second = Arc::new(Snapshot {
            format: 1,
            ..Snapshot::default()
        });
        (0..4000).for_each(|_| history.add(second.clone()));
        // These clients request an hour of data but read no answer.
        let dead: Vec<TcpStream> = (0..20)
            .map(|_| {
                let mut stream = TcpStream::connect(address).unwrap();
                stream.write_all(b"GET /history HTTP/1.1\r\n\r\n").unwrap();
                stream
            })
            .collect();
        for (path, kind, body) in [
            ("/", "text/html", "the page"),
            ("/x.js", "text/javascript", "code"),
            (
                "/history?after=0",
                "application/json",
                "\"title\":\"lan \\\"to\\\" wan\"",
            ),
        ] {
            let answer = ask(address, path);
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
            assert!(
                answer.contains(&format!("Content-Type: {kind}\r\n")),
                "{answer}"
            );
            assert!(
                answer.contains("Content-Security-Policy: default-src 'none';"),
                "{answer}"
            );
            assert!(answer.contains(body), "{path}: {answer}");
        }
        for path in ["/../etc/passwd", "/history?after=x", "/metrics", "//"] {
            assert!(ask(address, path).starts_with("HTTP/1.1 404"), "{path}");
        }
        drop(dead);
        stats.end();
        quit.wake();
        for thread in threads {
            thread.join().unwrap();
        }
    }
}
