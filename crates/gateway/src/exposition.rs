//! Snapshots for Prometheus: the text exposition format, and a server for it.

use crate::io::Losses;
use crate::snapshot::{ClassSnapshot, QueueSnapshot, Shared, Snapshot, TrafficSnapshot};
use std::fmt::{Display, Write};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use tiny_http::{Header, Response, Server};

/// Serves `/metrics` until dropped.
pub(crate) struct MetricsServer {
    server: Arc<Server>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Starts it on a thread of its own.
    pub(crate) fn start(address: SocketAddr, stats: Shared) -> io::Result<Self> {
        let server = Server::http(address).map_err(|error| match error.downcast() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        })?;
        let server = Arc::new(server);
        let thread = std::thread::Builder::new().name("metrics".into()).spawn({
            let server = server.clone();
            move || serve(&server, &stats)
        })?;
        Ok(Self {
            server,
            thread: Some(thread),
        })
    }

    #[cfg(test)]
    fn address(&self) -> SocketAddr {
        self.server.server_addr().to_ip().expect("it is not a path")
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.server.unblock();
        if let Some(thread) = self.thread.take() {
            // A server that panicked has nothing more to say.
            let _ = thread.join();
        }
    }
}

fn serve(server: &Server, stats: &Shared) {
    for request in server.incoming_requests() {
        let path = request.url().split('?').next().unwrap_or_default();
        // A client that has gone is no concern of ours.
        let _ = if path == "/metrics" {
            let kind: Header = "Content-Type: text/plain; version=0.0.4"
                .parse()
                .expect("it is a header");
            request.respond(Response::from_string(exposition(&stats.latest())).with_header(kind))
        } else {
            let hint = Response::from_string("the metrics are at /metrics\n");
            request.respond(hint.with_status_code(404))
        };
    }
}

/// The snapshot in Prometheus' text format, in base units.
fn exposition(snapshot: &Snapshot) -> String {
    let mut page = Page(String::new());
    let directions = [("up", &snapshot.up), ("down", &snapshot.down)];
    let classes = |queue: &QueueSnapshot| [("ack", queue.ack), ("data", queue.data)];
    let queues = [
        ("up", classes(&snapshot.queue)),
        ("down", classes(&snapshot.queue_down)),
    ];

    let mut traffic = |name: &str, help, value: fn(&TrafficSnapshot) -> u64| {
        page.metric(name, "counter", help);
        for (direction, of) in directions {
            for (class, of) in [("ack", of.ack), ("data", of.data), ("other", of.other)] {
                let labels = [("direction", direction), ("class", class)];
                page.sample(name, &labels, value(&of));
            }
        }
    };
    let bytes = "Bytes forwarded, as charged to the link.";
    traffic("bytes_total", bytes, |of| of.bytes);
    traffic("packets_total", "Packets forwarded.", |of| of.packets);
    page.metric(
        "capacity_bytes_per_second",
        "gauge",
        "Capacity of the link as configured.",
    );
    for (direction, of) in directions {
        let rate = of.capacity as f64 / 8.0;
        page.sample(
            "capacity_bytes_per_second",
            &[("direction", direction)],
            rate,
        );
    }
    let mut queue = |name: &str, kind, help, value: fn(&ClassSnapshot) -> u64| {
        page.metric(name, kind, help);
        for (direction, classes) in &queues {
            for (class, of) in classes {
                let labels = [("direction", *direction), ("class", class)];
                page.sample(name, &labels, value(of));
            }
        }
    };
    queue("backlog_bytes", "gauge", "Bytes that wait.", |of| {
        of.backlog_bytes
    });
    queue("backlog_packets", "gauge", "Packets that wait.", |of| {
        of.backlog_packets.into()
    });
    queue(
        "dropped_packets_total",
        "counter",
        "Packets dropped for lack of room or to signal congestion.",
        |of| of.drops,
    );
    queue(
        "filtered_packets_total",
        "counter",
        "ACKs given up for later ones.",
        |of| of.filtered,
    );
    page.metric(
        "sojourn_seconds",
        "gauge",
        "Time in the queue, over the last second.",
    );
    for (direction, classes) in &queues {
        for (class, of) in classes {
            for (quantile, millis) in [("0.5", of.sojourn_p50_ms), ("0.99", of.sojourn_p99_ms)] {
                let labels = [
                    ("direction", *direction),
                    ("class", class),
                    ("quantile", quantile),
                ];
                page.sample("sojourn_seconds", &labels, millis / 1e3);
            }
        }
    }
    let seen = "Pure ACKs that came in.";
    page.metric("acks_seen_total", "counter", seen);
    for (direction, of) in directions {
        let labels = [("direction", direction)];
        page.sample("acks_seen_total", &labels, of.thinning.seen);
    }
    let dropped = "Pure ACKs dropped, or filtered because a later one carried their news.";
    page.metric("acks_dropped_total", "counter", dropped);
    for (direction, of) in directions {
        let reasons = [
            ("dropped", of.thinning.dropped),
            ("filtered", of.thinning.filtered),
        ];
        for (reason, count) in reasons {
            let labels = [("direction", direction), ("reason", reason)];
            page.sample("acks_dropped_total", &labels, count);
        }
    }
    let made = "ACKs made by the regenerator.";
    page.metric("acks_made_total", "counter", made);
    for (direction, of) in directions {
        let labels = [("direction", direction)];
        page.sample("acks_made_total", &labels, of.thinning.made);
    }
    let per_ack = "Bytes of data in the other direction for every ACK sent, over the last second.";
    page.metric("data_bytes_per_ack", "gauge", per_ack);
    for (direction, of) in directions {
        let labels = [("direction", direction)];
        page.sample(
            "data_bytes_per_ack",
            &labels,
            of.thinning.data_bytes_per_ack,
        );
    }
    page.metric("control", "gauge", "Control variables of the discipline.");
    for (direction, control) in [("up", &snapshot.control), ("down", &snapshot.control_down)] {
        for (name, value) in control {
            page.sample(
                "control",
                &[("direction", direction), ("name", name)],
                value,
            );
        }
    }
    page.metric(
        "lost_frames_total",
        "counter",
        "Frames lost at an interface.",
    );
    for (port, losses) in [("lan", &snapshot.losses.lan), ("wan", &snapshot.losses.wan)] {
        for (reason, count) in reasons(losses) {
            page.sample(
                "lost_frames_total",
                &[("port", port), ("reason", reason)],
                count,
            );
        }
    }
    page.0
}

fn reasons(losses: &Losses) -> [(&'static str, u64); 4] {
    [
        ("ring_full", losses.ring_full),
        ("not_understood", losses.not_understood),
        ("too_long", losses.too_long),
        ("not_sent", losses.not_sent),
    ]
}

struct Page(String);

impl Page {
    fn metric(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string does not fail.
        let _ = writeln!(
            self.0,
            "# HELP asymq_{name} {help}\n# TYPE asymq_{name} {kind}"
        );
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        let labels: Vec<String> = labels
            .iter()
            .map(|(label, value)| format!("{label}=\"{value}\""))
            .collect();
        let _ = writeln!(self.0, "asymq_{name}{{{}}} {value}", labels.join(","));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write as _};
    use std::net::TcpStream;

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
        snapshot.queue.data.sojourn_p99_ms = 12.5;
        snapshot.control.insert("data_share", 0.75);
        stats.publish(snapshot);
        let server = MetricsServer::start("127.0.0.1:0".parse().unwrap(), stats).unwrap();
        let answer = ask(server.address(), "/metrics");
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        for line in [
            "# TYPE asymq_bytes_total counter",
            "asymq_bytes_total{direction=\"up\",class=\"ack\"} 1234",
            "asymq_sojourn_seconds{direction=\"up\",class=\"data\",quantile=\"0.99\"} 0.0125",
            "asymq_control{direction=\"up\",name=\"data_share\"} 0.75",
        ] {
            assert!(
                answer.lines().any(|found| found == line),
                "{line} in {answer}"
            );
        }
        assert!(ask(server.address(), "/").starts_with("HTTP/1.1 404"));
    }

    #[test]
    fn every_sample_follows_the_type_of_its_metric() {
        let page = exposition(&Snapshot::default());
        let mut metric = "";
        for line in page.lines() {
            match line.strip_prefix("# TYPE ") {
                Some(line) => metric = line.split(' ').next().unwrap(),
                None if line.starts_with('#') => {}
                None => assert_eq!(line.split('{').next(), Some(metric), "{line}"),
            }
        }
    }
}
