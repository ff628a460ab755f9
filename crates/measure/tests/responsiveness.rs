//! The responsiveness test over the loopback interface, and requests that the server refuses.

use crate::common::Running;
use crate::common::tls::client_config;
use asymq_measure::{
    Certificate, Confidence, HttpsServer, Limits, MeasureError, TestOptions, Tested,
    test_responsiveness,
};
use bytes::Bytes;
use h2::client::SendRequest;
use http::{Request, StatusCode};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

impl Running {
    fn test(&self, longest: u64) -> Result<Tested, MeasureError> {
        let options = TestOptions {
            url: format!("https://{}", self.address),
            connections: 3,
            interval: Duration::from_millis(500),
            longest: Duration::from_secs(longest),
            stop: &AtomicBool::new(false),
        };
        test_responsiveness(&options, &mut |progress| {
            assert!((0.0..=1.0).contains(&progress.done), "{progress:?}");
        })
    }

    fn tcp(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        let time = Some(Duration::from_secs(25));
        stream.set_read_timeout(time).unwrap();
        stream
    }

    /// Opens a TLS connection that offers these protocols.
    fn tls(&self, protocols: &[&[u8]]) -> StreamOwned<ClientConnection, TcpStream> {
        let config = client_config(protocols);
        let name = ServerName::try_from("localhost").unwrap();
        let connection = ClientConnection::new(config, name).unwrap();
        StreamOwned::new(connection, self.tcp())
    }

    /// Returns the whole answer to a request in HTTP/1.1.
    fn http1(&self, request: &str) -> String {
        let mut stream = self.tls(&[b"http/1.1"]);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8(answer).unwrap()
    }

    /// Returns HTTP/2 requests over a new connection.
    async fn h2(&self) -> SendRequest<Bytes> {
        let connector = tokio_rustls::TlsConnector::from(client_config(&[b"h2"]));
        let stream = tokio::net::TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        let (requests, connection) = h2::client::handshake(stream).await.unwrap();
        tokio::spawn(async move { _ = connection.await });
        requests
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(future)
}

async fn status(requests: &SendRequest<Bytes>, method: &str, path: &str) -> StatusCode {
    let request = Request::builder().method(method);
    let request = request.uri(format!("https://localhost{path}")).body(());
    let mut requests = requests.clone().ready().await.unwrap();
    let (response, _) = requests.send_request(request.unwrap(), true).unwrap();
    response.await.unwrap().status()
}

#[test]
fn a_loopback_has_rates_and_responsiveness_under_every_load() {
    let server = Running::https(
        Limits {
            bytes: u64::MAX,
            ..Limits::default()
        },
        None,
    );
    let tested = server.test(3).unwrap();
    assert!(tested.server.ends_with("/.well-known/nq"), "{tested:?}");
    assert_eq!(tested.idle.unwrap().probes, 20);
    for (name, load) in tested.loads() {
        assert_eq!(load.rate.up > 0.0, name != "down", "{name}: {load:?}");
        assert_eq!(load.rate.down > 0.0, name != "up", "{name}: {load:?}");
        let of = load.responsiveness.unwrap();
        assert!(of.foreign.probes > 5 && of.own.probes > 5, "{name}: {of:?}");
        let mean = f64::midpoint(of.foreign.rpm, of.own.rpm);
        assert!(of.rpm > 0.0 && (of.rpm - mean).abs() < 1e-6, "{of:?}");
        let most = if name == "both" { 6 } else { 3 };
        assert_eq!(load.connections, most, "{name}");
        assert!(load.rpm_confidence <= Confidence::High && load.duration_s < 6.0);
    }
}

#[test]
fn a_test_below_four_intervals_reports_low_confidence() {
    let server = Running::https(Limits::default(), None);
    let tested = server.test(1).unwrap();
    assert_eq!(tested.up.rate_confidence, Confidence::Low);
    assert_eq!(tested.up.rpm_confidence, Confidence::Low);
    let doubts = tested.unsure.join("\n");
    assert!(
        doubts.contains("up: low confidence in the rate"),
        "{doubts}"
    );
}

#[test]
fn a_server_that_ends_the_load_ends_the_test() {
    let server = Running::https(
        Limits {
            bytes: 3_000_000,
            ..Limits::default()
        },
        None,
    );
    let error = server.test(5).unwrap_err().to_string();
    assert!(
        error.contains("a connection that carried load ended"),
        "{error}"
    );
}

#[test]
fn another_server_is_reported() {
    let of = |url: &str| {
        let options = TestOptions {
            url: url.into(),
            connections: 1,
            interval: Duration::from_secs(1),
            longest: Duration::from_secs(1),
            stop: &AtomicBool::new(false),
        };
        test_responsiveness(&options, &mut |_| ())
            .unwrap_err()
            .to_string()
    };
    assert!(of("http://127.0.0.1").contains("needs TLS"));
    assert!(of("https://a b").contains("no URL"));
    let server = Running::https(Limits::default(), None);
    let error = of(&format!("https://{}/nothing", server.address));
    assert!(error.contains("404 Not Found"), "{error}");
    let error = of(&format!("https://{}/small", server.address));
    assert!(error.contains("not valid JSON of this test"), "{error}");
}

#[test]
fn clients_without_http2_get_small_answers() {
    let server = Running::https(Limits::default(), None);
    let answer = server.http1("GET /.well-known/nq HTTP/1.1\r\nHost: nq.example:1\r\n\r\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(
        answer.contains("Content-Type: application/json\r\n"),
        "{answer}"
    );
    assert!(
        answer.contains(r#""https://nq.example:1/large""#),
        "{answer}"
    );
    let small = server.http1("GET /small HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(small.ends_with("\r\n\r\nx"), "{small}");
    for (request, status) in [
        ("GET /large HTTP/1.1\r\nHost: a\r\n\r\n", "505"),
        ("POST /upload HTTP/1.1\r\nHost: a\r\n\r\n", "505"),
        ("GET /../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
        ("POST /small HTTP/1.1\r\nHost: a\r\n\r\n", "404"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let answer = server.http1(request);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
    }
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "x".repeat(5000));
    assert!(server.http1(&long).starts_with("HTTP/1.1 400 "));
    // The answer must not repeat an invalid host.
    let answer = server.http1("GET /.well-known/nq HTTP/1.1\r\nHost: \"><x\r\n\r\n");
    assert!(
        !answer.contains("><x") && answer.contains("200 OK"),
        "{answer}"
    );
}

#[test]
fn a_connection_has_no_more_than_its_loads_and_everything_else_still_answers() {
    let server = Running::https(Limits::default(), None);
    block_on(async {
        let requests = server.h2().await;
        let mut loads = Vec::new();
        for _ in 0..4 {
            let mut requests = requests.clone().ready().await.unwrap();
            let request = Request::get("https://localhost/large").body(()).unwrap();
            let (response, _) = requests.send_request(request, true).unwrap();
            // The window stays full because the client reads no data.
            let response = response.await.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            loads.push(response);
        }
        assert_eq!(
            status(&requests, "GET", "/large").await,
            StatusCode::TOO_MANY_REQUESTS
        );
        assert_eq!(
            status(&requests, "POST", "/upload").await,
            StatusCode::TOO_MANY_REQUESTS
        );
        assert_eq!(
            status(&requests, "DELETE", "/small").await,
            StatusCode::NOT_FOUND
        );
        let small =
            tokio::time::timeout(Duration::from_secs(5), status(&requests, "GET", "/small"));
        assert_eq!(small.await.unwrap(), StatusCode::OK);
        drop(loads);
    });
}

#[test]
fn an_upload_without_end_ends_with_its_time() {
    let server = Running::https(
        Limits {
            time: Duration::from_secs(2),
            ..Limits::default()
        },
        None,
    );
    block_on(async {
        let mut requests = server.h2().await.ready().await.unwrap();
        let request = Request::post("https://localhost/upload").body(()).unwrap();
        let (_response, mut stream) = requests.send_request(request, false).unwrap();
        let started = Instant::now();
        // One byte per 0.1 s: the request is never idle, and never complete.
        while stream.send_data(Bytes::from_static(b"x"), false).is_ok() {
            assert!(started.elapsed() < Duration::from_secs(6), "it goes on");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        assert!(started.elapsed() > Duration::from_millis(1500));
    });
}

#[test]
fn garbage_and_silence_cost_a_connection_and_no_panic() {
    let server = Running::https(Limits::default(), None);
    // First without TLS, then with TLS but without HTTP.
    let mut plain = server.tcp();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let _ = plain.read_to_end(&mut Vec::new());
    for (protocol, bytes) in [
        (&b"h2"[..], &[0xff; 4000][..]),
        (
            b"h2",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff",
        ),
        (b"http/1.1", &[0; 4000]),
    ] {
        let mut stream = server.tls(&[protocol]);
        stream.write_all(bytes).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    // A client that is silent, before TLS or during its handshake, is disconnected after 15 s.
    let started = Instant::now();
    let (mut silent, mut partial) = (server.tcp(), server.tcp());
    partial.write_all(&[22, 3, 1, 2, 0]).unwrap();
    for stream in [&mut silent, &mut partial] {
        let _ = stream.read(&mut [0]);
    }
    let took = started.elapsed().as_secs();
    assert!((14..18).contains(&took), "{took} s");
    assert!(server.http1("GET /small HTTP/1.1\r\n\r\n").ends_with('x'));
}

#[test]
fn connections_are_bounded_and_an_idle_one_is_closed() {
    let server = Running::https(
        Limits {
            clients: 1,
            ..Limits::default()
        },
        None,
    );
    let mut silent: Vec<TcpStream> = (0..32).map(|_| server.tcp()).collect();
    thread::sleep(Duration::from_millis(300));
    // The server closes the 33rd connection at once.
    let started = Instant::now();
    let refused = server.tcp().read(&mut [0]);
    assert!(refused.is_err() || refused.is_ok_and(|length| length == 0));
    assert!(
        started.elapsed() < Duration::from_secs(2),
        "{:?}",
        started.elapsed()
    );
    thread::sleep(Duration::from_millis(1500));
    assert!(server.http1("GET /small HTTP/1.1\r\n\r\n").ends_with('x'));
    // The server has closed the oldest connection.
    let mut first = silent.remove(0);
    let time = Some(Duration::from_millis(500));
    first.set_read_timeout(time).unwrap();
    let ended = first.read(&mut [0]);
    assert!(matches!(ended, Ok(0)), "{ended:?}");
    let mut last = silent.pop().unwrap();
    last.set_read_timeout(time).unwrap();
    assert_eq!(
        last.read(&mut [0]).unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

#[test]
fn a_certificate_of_ones_own_is_read_and_a_wrong_one_is_named() {
    let folder = std::env::temp_dir().join(format!("asymq-cert-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let key = rcgen::KeyPair::generate().unwrap();
    let names = vec!["nq.example".to_owned()];
    let made = rcgen::CertificateParams::new(names).unwrap();
    let made = made.self_signed(&key).unwrap();
    let pem = |label: &str, der: &[u8]| {
        const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let mut text = format!("-----BEGIN {label}-----\n");
        for group in der.chunks(3) {
            let bits = group
                .iter()
                .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
            let bits = bits << (8 * (3 - group.len()));
            for index in 0..4 {
                let digit = DIGITS[(bits >> (18 - 6 * index)) as usize & 63] as char;
                text.push(if index <= group.len() { digit } else { '=' });
            }
        }
        format!("{text}\n-----END {label}-----\n")
    };
    let file = |name: &str, text: &str| -> PathBuf {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let certificate = Certificate {
        chain: file("cert.pem", &pem("CERTIFICATE", made.der())),
        key: file("key.pem", &pem("PRIVATE KEY", &key.serialize_der())),
    };
    let server = Running::https(Limits::default(), Some(&certificate));
    let mut stream = server.tls(&[b"http/1.1"]);
    stream.write_all(b"GET /small HTTP/1.1\r\n\r\n").unwrap();
    let _ = stream.read(&mut [0; 10]);
    let shown = stream.conn.peer_certificates().unwrap();
    assert_eq!(shown[0], *made.der());
    let bind = |certificate: &Certificate| {
        let any = Some(([127, 0, 0, 1], 0).into());
        let stop = Arc::new(AtomicBool::new(true));
        let bound = HttpsServer::bind(any, Some(certificate), Limits::default(), stop);
        bound.err().unwrap().to_string()
    };
    let exchanged = Certificate {
        chain: certificate.key.clone(),
        key: certificate.chain.clone(),
    };
    assert!(bind(&exchanged).contains("key.pem: not a certificate in PEM"));
    let other = rcgen::KeyPair::generate().unwrap();
    let foreign = Certificate {
        key: file("other.pem", &pem("PRIVATE KEY", &other.serialize_der())),
        ..certificate.clone()
    };
    assert!(!bind(&foreign).is_empty());
    let missing = Certificate {
        chain: folder.join("missing"),
        ..certificate
    };
    assert!(bind(&missing).contains("missing"));
    std::fs::remove_dir_all(&folder).unwrap();
}
