//! The server of the test: HTTP/2 over TLS, and HTTP/1.1 for small objects.

use super::config::{Endpoints, LARGE, SMALL, UPLOAD, WELL_KNOWN};
use super::connection::{H2, Moved, Paced, SEND_BUFFER, Task, WINDOW, read_body, send_load};
use crate::place::{Activity, Network, Place, Places};
use crate::server::{OPENING_TIME, STALL, bind_or_all, listen_tcp};
use crate::session::Limits;
use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::header::CONTENT_TYPE;
use http::uri::Authority;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use rcgen::{CertificateParams, KeyPair};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::rustls::version::TLS13;

/// Default port of the server.
pub const HTTPS_PORT: u16 = 4043;

/// Maximum number of connections per client that [`Limits`] permits.
const CONNECTIONS_PER_CLIENT: usize = 32;
/// Maximum number of simultaneous connections from one network.
const CONNECTIONS_PER_NETWORK: usize = 160;
/// Maximum number of simultaneous requests on a connection, loads included.
const STREAMS: u32 = 64;
const LOADS: usize = 4;
/// Maximum length of a request's headers in bytes.
const HEAD: usize = 4096;
/// Maximum length of the server's name and port in a request, in bytes.
const AUTHORITY: usize = 261;
/// Interval at which limits are checked.
const LOOK: Duration = Duration::from_millis(250);

/// Files with a certificate and its key, in PEM.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// The certificate chain.
    pub chain: PathBuf,
    /// The private key.
    pub key: PathBuf,
}

/// A listening server of the IETF's responsiveness test.
pub struct HttpsServer {
    listener: TcpListener,
    acceptor: TlsAcceptor,
    limits: Limits,
    stop: Arc<AtomicBool>,
}

impl HttpsServer {
    /// Listens on an address, by default port [`HTTPS_PORT`] of all addresses. Without a certificate, creates one.
    ///
    /// # Errors
    /// The address is in use or does not belong to this host. The certificate cannot be read or does not match the key.
    pub fn bind(
        address: Option<SocketAddr>,
        certificate: Option<&Certificate>,
        limits: Limits,
        stop: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let listener = bind_or_all(address, HTTPS_PORT, listen_tcp)?;
        listener.set_nonblocking(true)?;
        let (chain, key) = match certificate {
            Some(files) => read_certificate(files)?,
            None => make_certificate(listener.local_addr()?.ip())?,
        };
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[&TLS13])
            .map_err(io::Error::other)?;
        let mut config = config
            .with_no_client_auth()
            .with_single_cert(chain, key)
            .map_err(io::Error::other)?;
        config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
        // Clients do not resume sessions, and a session ticket would cost 200 bytes.
        config.send_tls13_tickets = 0;
        Ok(Self {
            listener,
            acceptor: TlsAcceptor::from(Arc::new(config)),
            limits,
            stop,
        })
    }

    /// The listening address.
    ///
    /// # Errors
    /// The system call fails.
    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until the stop flag is set.
    ///
    /// # Errors
    /// The socket fails, or a thread cannot start.
    pub fn run(self) -> io::Result<()> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_io()
            .enable_time()
            .build()?;
        let served = runtime.block_on(self.serve());
        runtime.shutdown_background();
        served
    }

    async fn serve(self) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener)?;
        let mut open: Vec<Served> = Vec::new();
        let mut looked = Instant::now();
        while !self.stop.load(Relaxed) {
            if looked.elapsed() >= LOOK {
                open.retain_mut(|served| served.may_go_on(&self.limits));
                looked = Instant::now();
            }
            let (stream, peer) = match timeout(LOOK, listener.accept()).await {
                Ok(Ok(accepted)) => accepted,
                // No free file descriptors: waits until some connections are closed.
                Ok(Err(_)) => {
                    tokio::time::sleep(LOOK).await;
                    continue;
                }
                Err(_) => continue,
            };
            let network = Network::from(peer.ip());
            let places = Places {
                total: CONNECTIONS_PER_CLIENT * self.limits.clients,
                per_network: CONNECTIONS_PER_NETWORK,
            };
            open.retain(|served| !served.task.0.is_finished());
            let holder = |served: &mut Served| (served.network, served.idle());
            let holders: Vec<_> = open.iter_mut().map(holder).collect();
            match places.find(&holders, network) {
                Place::Free => {}
                Place::Replace(index) => drop(open.swap_remove(index)),
                Place::Refused => continue,
            }
            open.push(Served::start(stream, network, self.acceptor.clone()));
        }
        Ok(())
    }
}

/// A connection, and the limited resources that it uses.
struct Served {
    network: Network,
    task: Task,
    moved: Arc<Moved>,
    started: Instant,
    activity: Activity,
}

impl Served {
    fn start(stream: TcpStream, network: Network, acceptor: TlsAcceptor) -> Self {
        let moved = Arc::<Moved>::default();
        let shared = Arc::clone(&moved);
        let task = tokio::spawn(async move {
            // An error only ends the connection.
            let _ = converse(stream, acceptor, shared).await;
        });
        Self {
            network,
            task: Task(task),
            moved,
            started: Instant::now(),
            activity: Activity::new(),
        }
    }

    fn idle(&mut self) -> Duration {
        self.activity.idle(self.moved.both())
    }

    /// True while the connection is open, within its limits, and not idle for too long.
    fn may_go_on(&mut self, limits: &Limits) -> bool {
        !self.task.0.is_finished()
            && self.started.elapsed() < limits.time
            && self.moved.both() < limits.bytes
            && self.idle() < STALL
    }
}

/// Serves a connection until the client ends it.
async fn converse(stream: TcpStream, acceptor: TlsAcceptor, moved: Arc<Moved>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let local = stream.local_addr()?;
    let handshake = async {
        // Allocates TLS state only after the first byte.
        stream.peek(&mut [0]).await?;
        acceptor.accept(stream).await
    };
    let stream = timeout(OPENING_TIME, handshake).await??;
    let has_h2 = stream.get_ref().1.alpn_protocol() == Some(H2);
    let stream = Paced::new(stream, Arc::clone(&moved));
    if !has_h2 {
        return timeout(OPENING_TIME, converse_in_http1(stream, local)).await?;
    }
    let mut connection = h2::server::Builder::new()
        .initial_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(HEAD as u32)
        .max_send_buffer_size(SEND_BUFFER)
        .handshake::<_, Bytes>(stream)
        .await
        .map_err(io::Error::other)?;
    let (loads, config) = (Arc::new(Semaphore::new(LOADS)), OnceLock::new());
    let mut answers = JoinSet::new();
    while let Some(request) = connection.accept().await {
        let (request, respond) = request.map_err(io::Error::other)?;
        let (moved, loads) = (Arc::clone(&moved), Arc::clone(&loads));
        let asked = Asked::read(request, &config);
        answers.spawn(async move {
            // A client that reset its stream needs no answer.
            let _ = answer(asked, respond, &moved, &loads).await;
        });
        while answers.try_join_next().is_some() {}
    }
    Ok(())
}

/// Object that a client requested.
enum Asked {
    Small(&'static str, Bytes),
    Download,
    Upload(RecvStream),
    Missing,
}

/// Returns the type and content of a small object; `None` if the path has no object.
/// A connection stores the configuration for its first request, with the server name of that request.
fn small_object(
    method: &Method,
    path: &str,
    authority: Option<&Authority>,
    config: &OnceLock<Bytes>,
) -> Option<(&'static str, Bytes)> {
    let write = || {
        let known = authority.filter(|name| name.as_str().len() <= AUTHORITY);
        let default = Authority::from_static("localhost");
        Endpoints::write(known.unwrap_or(&default)).into()
    };
    match path {
        _ if method != Method::GET => None,
        WELL_KNOWN => Some(("application/json", config.get_or_init(write).clone())),
        SMALL => Some(("application/octet-stream", Bytes::from_static(b"x"))),
        _ => None,
    }
}

impl Asked {
    /// Reads a request, and frees the parts that the answer does not need.
    fn read(request: Request<RecvStream>, config: &OnceLock<Bytes>) -> Self {
        let (head, body) = request.into_parts();
        let path = head.uri.path();
        match small_object(&head.method, path, head.uri.authority(), config) {
            Some((content, object)) => Self::Small(content, object),
            None if path == LARGE && head.method == Method::GET => Self::Download,
            None if path == UPLOAD && head.method == Method::POST => Self::Upload(body),
            None => Self::Missing,
        }
    }
}

async fn answer(
    asked: Asked,
    mut respond: SendResponse<Bytes>,
    moved: &Moved,
    loads: &Semaphore,
) -> io::Result<()> {
    let mut reply = |status: StatusCode, content: Option<&'static str>| {
        let mut response = Response::new(());
        *response.status_mut() = status;
        if let Some(content) = content {
            let content = HeaderValue::from_static(content);
            response.headers_mut().insert(CONTENT_TYPE, content);
        }
        let sent = respond.send_response(response, content.is_none());
        sent.map_err(io::Error::other)
    };
    let is_load = matches!(asked, Asked::Download | Asked::Upload(_));
    let Ok(_load) = is_load.then(|| loads.try_acquire()).transpose() else {
        return reply(StatusCode::TOO_MANY_REQUESTS, None).map(drop);
    };
    match asked {
        Asked::Missing => reply(StatusCode::NOT_FOUND, None).map(drop),
        Asked::Small(content, object) => {
            let mut stream = reply(StatusCode::OK, Some(content))?;
            stream.send_data(object, true).map_err(io::Error::other)
        }
        Asked::Download => {
            let mut stream = reply(StatusCode::OK, Some("application/octet-stream"))?;
            send_load(&mut stream, moved).await
        }
        Asked::Upload(mut body) => {
            read_body(&mut body, |_| Ok(())).await?;
            reply(StatusCode::OK, None).map(drop)
        }
    }
}

/// Answers one HTTP/1.1 request, which some clients use for small objects.
async fn converse_in_http1(mut stream: Paced, local: SocketAddr) -> io::Result<()> {
    let mut bytes = Vec::with_capacity(HEAD);
    let response = loop {
        let mut headers = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Request::new(&mut headers);
        match head.parse(&bytes) {
            Ok(httparse::Status::Complete(_)) => break answer_in_http1(&head, local),
            Ok(httparse::Status::Partial) if bytes.len() < HEAD => {}
            _ => break http1("400 Bad Request", "text/plain", b""),
        }
        let mut part = [0; 1024];
        match stream.read(&mut part).await? {
            0 => return Ok(()),
            length => bytes.extend_from_slice(&part[..length]),
        }
    };
    stream.write_all(&response).await?;
    stream.shutdown().await
}

fn answer_in_http1(head: &httparse::Request<'_, '_>, local: SocketAddr) -> Vec<u8> {
    let host = head
        .headers
        .iter()
        .find(|header| header.name.eq_ignore_ascii_case("host"));
    let host = host.and_then(|host| Authority::try_from(host.value).ok());
    let authority = host.or_else(|| local.to_string().parse().ok());
    let method: Option<Method> = head.method.and_then(|method| method.parse().ok());
    let path = head.path.unwrap_or_default();
    let config = OnceLock::new();
    match method.and_then(|method| small_object(&method, path, authority.as_ref(), &config)) {
        Some((content, object)) => http1("200 OK", content, &object),
        None if path == LARGE || path == UPLOAD => http1(
            "505 HTTP Version Not Supported",
            "text/plain",
            b"loads need HTTP/2\n",
        ),
        None => http1("404 Not Found", "text/plain", b""),
    }
}

fn http1(status: &str, content: &str, object: &[u8]) -> Vec<u8> {
    let length = object.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    [head.as_bytes(), object].concat()
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

fn make_certificate(address: IpAddr) -> io::Result<Identity> {
    let made = || -> Result<Identity, rcgen::Error> {
        let key = KeyPair::generate()?;
        let names = vec!["localhost".to_owned(), address.to_string()];
        let certificate = CertificateParams::new(names)?.self_signed(&key)?;
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        Ok((vec![certificate.der().clone()], key.into()))
    };
    made().map_err(io::Error::other)
}

fn read_certificate(files: &Certificate) -> io::Result<Identity> {
    let failed = |path: &Path, what: &str, error: &dyn std::fmt::Display| {
        io::Error::other(format!("{}: not a {what} in PEM ({error})", path.display()))
    };
    let chain: Result<Vec<CertificateDer<'static>>, _> =
        CertificateDer::pem_file_iter(&files.chain).and_then(Iterator::collect);
    let chain = chain.map_err(|error| failed(&files.chain, "certificate", &error))?;
    if chain.is_empty() {
        return Err(failed(&files.chain, "certificate", &"the file has none"));
    }
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| failed(&files.key, "private key", &error))?;
    Ok((chain, key))
}
