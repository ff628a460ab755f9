//! HTTP/2 over TLS over TCP. Limits unsent data as the draft requires.

use crate::tcp_info::Counter;
use asymq_core::Direction;
use bytes::Bytes;
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{Method, Request, StatusCode, Uri};
use socket2::SockRef;
use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::rustls::client::Resumption;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    self, ClientConfig, DigitallySignedStruct, SignatureScheme, version::TLS13,
};
use tokio_rustls::{TlsConnector, TlsStream};

/// HTTP/2 window of a connection and of each of its streams, in bytes.
pub(super) const WINDOW: u32 = 8 << 20;
/// Maximum unsent bytes that HTTP/2 buffers for a stream.
pub(super) const SEND_BUFFER: usize = 64 * 1024;
const FRAME: usize = 16 * 1024;
/// Maximum time in seconds for which data may stay unsent.
const UNSENT: f64 = 0.005;
/// Unsent bytes that are always allowed: two segments.
const LEAST_UNSENT: usize = 3000;
const MOST_UNSENT: usize = 256 * 1024;
/// Bytes that TLS adds to a record: header, type and tag.
const RECORD_HEAD: u64 = 5 + 1 + 16;
const RECORD: usize = 16 * 1024;
/// Bytes that HTTP/2 adds to a frame.
const FRAME_HEAD: u64 = 9;
/// Interval at which the sending rate is updated.
const RATE_EVERY: Duration = Duration::from_millis(50);
/// Maximum length of an answer's headers in bytes.
const MAX_HEAD: u32 = 16 * 1024;
/// Data that loads send.
static ZEROS: [u8; FRAME] = [0; FRAME];

/// HTTP/2's name in TLS's negotiation (ALPN).
pub(super) const H2: &[u8] = b"h2";

/// Byte counters of a connection, shared between tasks.
#[derive(Debug, Default)]
pub(super) struct Moved {
    received: AtomicU64,
    sent: AtomicU64,
    /// Number of TLS records sent.
    records: AtomicU64,
    /// Bytes of bodies passed to HTTP/2, without frame headers.
    body: AtomicU64,
    frames: AtomicU64,
    /// Limit of unsent bytes: the bytes sent in 5 ms.
    unsent: AtomicUsize,
}

impl Moved {
    /// Bytes written to TLS.
    pub(super) fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Converts bytes on TCP to bytes of bodies, by the mean sizes of records and frames.
    pub(super) fn body_of(&self, bytes: u64) -> u64 {
        let share = |bytes: &AtomicU64, parts: &AtomicU64, head: u64| {
            let (bytes, heads) = (bytes.load(Relaxed), parts.load(Relaxed) * head);
            bytes as f64 / (bytes + heads).max(1) as f64
        };
        let of_tls = share(&self.sent, &self.records, RECORD_HEAD);
        let of_http = share(&self.body, &self.frames, FRAME_HEAD);
        (bytes as f64 * of_tls * of_http) as u64
    }

    pub(super) fn both(&self) -> u64 {
        self.received.load(Relaxed) + self.sent()
    }
}

/// A TLS stream that counts its bytes, and limits unsent data to 5 ms at its rate.
pub(super) struct Paced {
    stream: TlsStream<TcpStream>,
    moved: Arc<Moved>,
    since: Instant,
    sent: usize,
    /// Rate in bytes per second: the maximum over recent intervals, reduced by a tenth per interval. A mean would
    /// reduce the limit of a sender that is delayed by its host.
    rate: f64,
}

impl Paced {
    pub(super) fn new(stream: impl Into<TlsStream<TcpStream>>, moved: Arc<Moved>) -> Self {
        let mut paced = Self {
            stream: stream.into(),
            moved,
            since: Instant::now(),
            sent: 0,
            rate: 0.0,
        };
        paced.bound(LEAST_UNSENT);
        paced
    }

    fn bound(&mut self, unsent: usize) {
        self.moved.unsent.store(unsent, Relaxed);
        match &mut self.stream {
            TlsStream::Client(stream) => stream.get_mut().1.set_buffer_limit(Some(unsent)),
            TlsStream::Server(stream) => stream.get_mut().1.set_buffer_limit(Some(unsent)),
        }
        // Without the option, the socket's queue would add to the delay.
        #[cfg(any(target_os = "android", target_os = "linux"))]
        let _ = SockRef::from(self.stream.get_ref().0).set_tcp_notsent_lowat(unsent as u32);
    }

    fn count(&mut self, sent: usize) {
        self.moved.sent.fetch_add(sent as u64, Relaxed);
        let records = sent.div_ceil(RECORD);
        self.moved.records.fetch_add(records as u64, Relaxed);
        self.sent += sent;
        let passed = self.since.elapsed();
        if passed >= RATE_EVERY {
            let rate = self.sent as f64 / passed.as_secs_f64();
            self.rate = rate.max(0.9 * self.rate);
            let unsent = (self.rate * UNSENT) as usize;
            self.bound(unsent.clamp(LEAST_UNSENT, MOST_UNSENT));
            (self.since, self.sent) = (Instant::now(), 0);
        }
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let bytes = buffer.filled().len() - before;
        self.moved.received.fetch_add(bytes as u64, Relaxed);
        read
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(length)) = written {
            self.count(length);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// Sends endlessly, in frames of at most 5 ms.
///
/// # Errors
/// The stream or the connection has ended.
pub(super) async fn send_load(stream: &mut SendStream<Bytes>, moved: &Moved) -> io::Result<()> {
    loop {
        let frame = moved.unsent.load(Relaxed).clamp(LEAST_UNSENT, FRAME);
        stream.reserve_capacity(frame);
        let Some(capacity) = std::future::poll_fn(|context| stream.poll_capacity(context)).await
        else {
            return Ok(());
        };
        let length = capacity.map_err(io::Error::other)?.min(frame);
        if length > 0 {
            let zeros = Bytes::from_static(&ZEROS[..length]);
            stream.send_data(zeros, false).map_err(io::Error::other)?;
            moved.body.fetch_add(length as u64, Relaxed);
            moved.frames.fetch_add(1, Relaxed);
        }
    }
}

/// Reads a body and passes each part to `each`.
///
/// # Errors
/// The stream or the connection ended before the body, or `each` failed.
pub(super) async fn read_body(
    body: &mut RecvStream,
    mut each: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    while let Some(data) = body.data().await {
        let data = data.map_err(io::Error::other)?;
        let released = body.flow_control().release_capacity(data.len());
        released.map_err(io::Error::other)?;
        each(&data)?;
    }
    Ok(())
}

/// A task that ends when its owner is dropped.
pub(super) struct Task(pub(super) JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Address and name of a server.
#[derive(Clone)]
pub(super) struct Target {
    pub(super) address: SocketAddr,
    name: ServerName<'static>,
    connector: TlsConnector,
}

/// An open connection, and the times of its handshakes in seconds.
pub(super) struct Connection {
    pub(super) requests: SendRequest<Bytes>,
    pub(super) moved: Arc<Moved>,
    /// Counters of bytes that crossed the line after the handshakes, by direction.
    pub(super) arrived: [Option<Counter>; 2],
    pub(super) tcp: f64,
    pub(super) tls: f64,
    _driver: Task,
}

impl Target {
    pub(super) fn new(address: SocketAddr, name: &str) -> Result<Self, String> {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(bare.to_owned());
        let provider = Arc::new(ring::default_provider());
        let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[&TLS13])
            .map_err(|error| error.to_string())?;
        let mut config = config
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth();
        config.alpn_protocols = vec![H2.to_vec()];
        // A foreign probe represents a browser's first visit.
        config.resumption = Resumption::disabled();
        Ok(Self {
            address,
            name: name.map_err(|_| format!("{bare} is not a host name"))?,
            connector: TlsConnector::from(Arc::new(config)),
        })
    }

    /// Bytes of a packet's headers: IP, and TCP with timestamps.
    pub(super) fn headers(&self) -> u64 {
        32 + if self.address.ip().to_canonical().is_ipv4() {
            20
        } else {
            40
        }
    }

    pub(super) async fn connect(&self) -> io::Result<Connection> {
        let start = Instant::now();
        let stream = TcpStream::connect(self.address).await?;
        let tcp = start.elapsed().as_secs_f64();
        stream.set_nodelay(true)?;
        // Closing the connection discards unsent data.
        SockRef::from(&stream).set_linger(Some(Duration::ZERO))?;
        let start = Instant::now();
        let stream = self.connector.connect(self.name.clone(), stream).await?;
        let tls = start.elapsed().as_secs_f64();
        if stream.get_ref().1.alpn_protocol() != Some(H2) {
            return Err(io::Error::other("the server has no HTTP/2"));
        }
        let moved = Arc::<Moved>::default();
        let arrived = [Direction::Up, Direction::Down]
            .map(|direction| Counter::new(stream.get_ref().0.as_fd(), direction));
        let stream = Paced::new(stream, Arc::clone(&moved));
        let handshake = h2::client::Builder::new()
            .initial_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_send_buffer_size(SEND_BUFFER)
            .max_header_list_size(MAX_HEAD)
            .enable_push(false)
            .handshake(stream);
        let (requests, connection) = handshake.await.map_err(io::Error::other)?;
        let driver = tokio::spawn(async move {
            // The streams return the error too.
            let _ = connection.await;
        });
        Ok(Connection {
            requests,
            moved,
            arrived,
            tcp,
            tls,
            _driver: Task(driver),
        })
    }
}

/// Sends a request; `has_body` leaves its stream open.
pub(super) async fn request(
    requests: &SendRequest<Bytes>,
    uri: &Uri,
    has_body: bool,
) -> io::Result<(ResponseFuture, SendStream<Bytes>)> {
    let (method, key, value) = match has_body {
        true => (Method::POST, "content-type", "application/octet-stream"),
        false => (Method::GET, "accept-encoding", "identity"),
    };
    let request = Request::builder()
        .method(method)
        .uri(uri.clone())
        .header(key, value)
        .body(());
    let request = request.map_err(io::Error::other)?;
    let requests = requests.clone().ready().await;
    let sent = requests.and_then(|mut requests| requests.send_request(request, !has_body));
    sent.map_err(io::Error::other)
}

/// Requests an object, and returns its body.
///
/// # Errors
/// The request failed; the text describes the server's answer.
pub(super) async fn get_body(requests: &SendRequest<Bytes>, uri: &Uri) -> io::Result<RecvStream> {
    let (response, _) = request(requests, uri, false).await?;
    let response = response.await.map_err(io::Error::other)?;
    match response.status() {
        StatusCode::OK => Ok(response.into_body()),
        status => Err(io::Error::other(format!(
            "the server answered {status} to {}",
            uri.path()
        ))),
    }
}

/// Gets an object of at most `most` bytes.
///
/// # Errors
/// Like [`get_body`]; also if the object is longer.
pub(super) async fn get(
    requests: &SendRequest<Bytes>,
    uri: &Uri,
    most: usize,
) -> io::Result<Vec<u8>> {
    let mut object = Vec::new();
    let mut body = get_body(requests, uri).await?;
    let add = |data: &[u8]| {
        if object.len() + data.len() > most {
            let path = uri.path();
            return Err(io::Error::other(format!(
                "{path} has more than {most} bytes"
            )));
        }
        object.extend_from_slice(data);
        Ok(())
    };
    read_body(&mut body, add).await?;
    Ok(object)
}

/// Accepts every certificate, because servers sign their own and no secret is sent.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _cert: &CertificateDer<'_>,
        _dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is off".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
