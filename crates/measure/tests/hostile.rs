//! Hostile servers: every client ends at a stop or at its time limit, and rejects impossible numbers.

use asymq_measure::{MeasureError, Measured, Options, measure};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

/// Runs `answer` on its own thread for each connection; its argument is the first line.
fn serve(answer: impl Fn(TcpStream, String) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            thread::spawn(move || {
                let mut line = String::new();
                stream
                    .set_read_timeout(Some(Duration::from_millis(500)))
                    .unwrap();
                let _ = BufReader::new(&stream).read_line(&mut line);
                answer(stream, line);
            });
        }
    });
    address
}

fn run(server: SocketAddr, iperf3: bool, stop: &AtomicBool) -> Result<Measured, MeasureError> {
    let options = Options {
        host: server.to_string(),
        iperf3,
        flows: 2,
        warmup: Duration::from_millis(300),
        duration: Duration::from_secs(1),
        stop,
    };
    measure(&options, &mut |_| ())
}

/// Returns the time between the stop request and the client's end.
fn time_to_stop(client: impl FnOnce(&AtomicBool) -> Option<MeasureError> + Send) -> Duration {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let client = scope.spawn(|| client(&stop));
        thread::sleep(Duration::from_millis(1500));
        assert!(!client.is_finished(), "{:?}", client.join());
        stop.store(true, Relaxed);
        let begin = Instant::now();
        let error = client.join().unwrap();
        assert!(
            matches!(error, Some(MeasureError::Interrupted)),
            "{error:?}"
        );
        begin.elapsed()
    })
}

fn trickle(mut stream: TcpStream, _: String) {
    while stream.write_all(b"{").is_ok() {
        thread::sleep(Duration::from_secs(1));
    }
}

fn silence(_stream: TcpStream, _: String) {
    thread::sleep(Duration::from_secs(60));
}

const SOON: Duration = Duration::from_millis(400);

#[test]
fn a_stop_ends_a_client_whose_server_trickles_or_is_silent() {
    for (iperf3, server) in [
        (false, serve(trickle)),
        (false, serve(silence)),
        (true, serve(silence)),
    ] {
        let took = time_to_stop(|stop| run(server, iperf3, stop).err());
        assert!(took < SOON, "{took:?}");
    }
}

#[test]
fn a_greeting_has_ten_seconds_for_the_whole_line() {
    let begin = Instant::now();
    let error = run(serve(trickle), false, &AtomicBool::new(false)).unwrap_err();
    let took = begin.elapsed().as_secs();
    assert!((9..13).contains(&took), "{took} s: {error}");
}

#[test]
fn a_server_of_http_is_not_one_of_iperf3() {
    let error = run(serve(silence), true, &AtomicBool::new(false)).unwrap_err();
    assert!(
        error.to_string().contains("does another server listen"),
        "{error}"
    );
}

/// Runs a server of the plain protocol that sends `counts` repeatedly.
fn counting(counts: &'static str, keeps_flows: bool) -> SocketAddr {
    serve(move |mut stream, line| {
        if line.ends_with("start\n") {
            let welcome = b"{\"welcome\":{\"session\":\"00000000000000ab\",\"seconds\":180}}\n";
            let _ = stream.write_all(welcome);
            while stream.write_all(counts.as_bytes()).is_ok() {
                thread::sleep(Duration::from_micros(if counts.is_empty() {
                    1000
                } else {
                    1
                }));
            }
        } else if keeps_flows {
            thread::sleep(Duration::from_secs(60));
        }
    })
}

fn error_of(server: SocketAddr) -> String {
    run(server, false, &AtomicBool::new(false))
        .unwrap_err()
        .to_string()
}

#[test]
fn a_flood_of_counts_and_impossible_ones_are_errors() {
    let flood = error_of(counting("{\"us\":0,\"up\":[1]}\n", true));
    assert!(flood.contains("too many counts"), "{flood}");
    let negative = error_of(counting("{\"us\":0,\"up\":[-1e300]}\n", true));
    assert!(negative.contains("not a count"), "{negative}");
}

#[test]
fn an_upload_that_the_server_refuses_is_an_error() {
    let error = error_of(counting("", false));
    assert!(error.contains("ended a flow early"), "{error}");
}

#[cfg(feature = "https")]
mod https {
    use super::*;
    use asymq_measure::{TestOptions, Tested, test_responsiveness};
    use bytes::Bytes;
    use std::sync::Arc;
    use tokio_rustls::rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer};

    fn run_https(server: SocketAddr, stop: &AtomicBool) -> Result<Tested, MeasureError> {
        let options = TestOptions {
            url: format!("https://{server}"),
            connections: 2,
            interval: Duration::from_secs(1),
            longest: Duration::from_secs(5),
            stop,
        };
        test_responsiveness(&options, &mut |_| ())
    }

    #[test]
    fn a_stop_ends_the_test_while_its_server_is_silent() {
        let server = serve(silence);
        let took = time_to_stop(|stop| run_https(server, stop).err());
        assert!(took < SOON, "{took:?}");
    }

    #[test]
    fn a_server_of_http_without_tls_is_named() {
        let server =
            serve(|mut stream, _| drop(stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")));
        let error = run_https(server, &AtomicBool::new(false)).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("no TLS 1.3; does another server listen"),
            "{text}"
        );
    }

    /// Runs an HTTP/2 server that answers uploads at once with 403, but still reads their data.
    fn refusing() -> SocketAddr {
        let key = rcgen::KeyPair::generate().unwrap();
        let names = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let chain = vec![names.self_signed(&key).unwrap().der().clone()];
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&tokio_rustls::rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth();
        let mut config = config.with_single_cert(chain, key).unwrap();
        config.alpn_protocols = vec![b"h2".to_vec()];
        let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    let acceptor = acceptor.clone();
                    tokio::spawn(async move {
                        let Ok(stream) = acceptor.accept(stream).await else {
                            return;
                        };
                        let Ok(mut connection) =
                            h2::server::handshake(stream).await
                        else {
                            return;
                        };
                        while let Some(Ok((request, mut respond))) = connection.accept().await {
                            let path = request.uri().path().to_owned();
                            let url = |path: &str| format!("https://{address}{path}");
                            let config = format!(
                                r#"{{"version":1,"urls":{{"large_download_url":"{}","small_download_url":"{}","upload_url":"{}"}}}}"#,
                                url("/large"),
                                url("/small"),
                                url("/upload")
                            );
                            let (status, body) = match path.as_str() {
                                "/upload" => (403, Bytes::new()),
                                "/small" => (200, Bytes::from_static(b"x")),
                                _ => (200, config.into()),
                            };
                            let answer = http::Response::builder().status(status).body(());
                            let mut stream = respond.send_response(answer.unwrap(), false).unwrap();
                            let _ = stream.send_data(body, true);
                            tokio::spawn(async move {
                                let mut body = request.into_body();
                                while let Some(Ok(data)) = body.data().await {
                                    let _ = body.flow_control().release_capacity(data.len());
                                }
                            });
                        }
                    });
                }
            });
        });
        address
    }

    #[test]
    fn an_upload_that_is_refused_at_once_is_an_error_though_its_data_is_read() {
        let error = run_https(refusing(), &AtomicBool::new(false)).unwrap_err();
        assert!(error.to_string().contains("403"), "{error}");
    }
}
