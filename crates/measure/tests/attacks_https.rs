//! Hostile clients of the responsiveness test's server: memory and places stay bounded.

use crate::common::Running;
use crate::common::tls::client_config;
use asymq_measure::Limits;
use bytes::Bytes;
use h2::client::SendRequest;
use http::{Request, StatusCode};
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt as _;
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(future)
}

async fn tcp(server: SocketAddr, host: u8) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind((Ipv4Addr::new(127, 0, 0, host), 0).into())?;
    socket.connect(server).await
}

/// Returns HTTP/2 requests over a connection from 127.0.0.`host` with this flow-control window.
async fn connect(
    server: SocketAddr,
    host: u8,
    config: Arc<ClientConfig>,
    window: u32,
) -> io::Result<SendRequest<Bytes>> {
    let stream = tcp(server, host).await?;
    let name = ServerName::try_from("localhost").unwrap();
    let connector = tokio_rustls::TlsConnector::from(config);
    let stream = connector.connect(name, stream).await?;
    let mut builder = h2::client::Builder::new();
    let handshake = builder
        .initial_window_size(window)
        .handshake::<_, Bytes>(stream);
    let (requests, connection) = handshake.await.map_err(io::Error::other)?;
    tokio::spawn(async move { _ = connection.await });
    requests.ready().await.map_err(io::Error::other)
}

async fn small(server: SocketAddr, host: u8, config: Arc<ClientConfig>) -> io::Result<StatusCode> {
    let mut requests = connect(server, host, config, 1 << 16).await?;
    let request = Request::get("https://localhost/small").body(()).unwrap();
    let (response, _) = requests
        .send_request(request, true)
        .map_err(io::Error::other)?;
    response
        .await
        .map(|response| response.status())
        .map_err(io::Error::other)
}

#[test]
fn trickling_uploads_of_two_hosts_do_not_lock_out_a_third() {
    let server = Running::https(Limits::default(), None);
    let address = server.address;
    block_on(async {
        let config = client_config(&[b"h2"]);
        let mut uploads = Vec::new();
        for index in 0..=255_u8 {
            let config = Arc::clone(&config);
            let mut requests = connect(address, 2 + index % 2, config, 1 << 16)
                .await
                .unwrap();
            let request = Request::post("https://localhost/upload").body(()).unwrap();
            let (response, mut stream) = requests.send_request(request, false).unwrap();
            stream.send_data(Bytes::from_static(b"x"), false).unwrap();
            uploads.push((requests, response, stream));
        }
        for attempt in 0..20 {
            for (_, _, stream) in &mut uploads {
                let _ = stream.send_data(Bytes::from_static(b"x"), false);
            }
            let begin = Instant::now();
            let asking = small(address, 4, Arc::clone(&config));
            let status = tokio::time::timeout(Duration::from_secs(2), asking).await;
            assert!(
                status.as_ref().is_ok_and(Result::is_ok),
                "attempt {attempt}: {status:?} after {:?}",
                begin.elapsed()
            );
        }
    });
}

/// The server of the memory test, in its own process.
#[test]
#[ignore = "run by the memory test"]
fn serve_alone() {
    let server = Running::https(Limits::default(), None);
    println!("\nlistening at {}", server.address);
    std::thread::sleep(Duration::from_secs(120));
}

/// The server's process, and its output stream, which stays open.
struct Alone {
    child: Child,
    _output: BufReader<ChildStdout>,
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Alone {
    fn start() -> (Self, SocketAddr) {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--ignored",
                "--exact",
                "attacks_https::serve_alone",
                "--nocapture",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.by_ref().lines().map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("listening at ")?.parse().ok());
        (
            Self {
                child,
                _output: output,
            },
            address.unwrap(),
        )
    }

    /// Used memory in MB: now, and the maximum so far.
    fn memory(&self) -> [f64; 2] {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        ["VmRSS:", "VmHWM:"].map(|name| {
            let line = status.lines().find(|line| line.starts_with(name)).unwrap();
            let kb = line.split_whitespace().nth(1).unwrap();
            kb.parse::<f64>().unwrap() / 1e3
        })
    }
}

#[test]
fn a_thousand_hostile_connections_leave_the_server_within_its_memory() {
    const BOUND_MB: f64 = 64.0;
    let (server, address) = Alone::start();
    let [idle, _] = server.memory();
    block_on(async {
        // The beginning of a TLS record.
        let mut part = vec![0; 16_000];
        part[..5].copy_from_slice(&[22, 3, 1, 0x3f, 0xff]);
        let mut unfinished = Vec::new();
        for index in 0..744_u32 {
            if let Ok(mut stream) = tcp(address, 2 + (index / 125) as u8).await {
                let _ = stream.write_all(&part).await;
                unfinished.push(stream);
            }
        }
        let config = client_config(&[b"h2"]);
        let mut held = Vec::new();
        for index in 0..=255_u8 {
            let connecting = connect(address, 10 + index / 64, Arc::clone(&config), 0);
            let connected = tokio::time::timeout(Duration::from_secs(5), connecting).await;
            let Ok(Ok(mut requests)) = connected else {
                continue;
            };
            for request in 0..128 {
                let name = "a".repeat(if request % 2 == 0 { 3700 } else { 200 });
                let uri = format!("https://{name}/.well-known/nq");
                let request = Request::get(uri).body(()).unwrap();
                let ready = tokio::time::timeout(Duration::from_millis(20), requests.ready()).await;
                let Ok(Ok(ready)) = ready else {
                    break;
                };
                requests = ready;
                let Ok((response, _)) = requests.send_request(request, true) else {
                    break;
                };
                held.push(response);
            }
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    });
    let [now, most] = server.memory();
    println!("idle {idle} MB, under attack {now}, at most {most}");
    assert!(most < BOUND_MB, "{most} MB of {BOUND_MB}");
}
