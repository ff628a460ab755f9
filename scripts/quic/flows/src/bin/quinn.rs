//! Bulk flows of `quinn`.

use asymq_quic::{ALPN, Flow, Plan, Reader, Seen, WINDOW};
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::rustls;
use quinn::{
    AckFrequencyConfig, Endpoint, EndpointConfig, QlogConfig, ServerConfig, TokioRuntime,
    TransportConfig, VarInt,
};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::time::sleep_until;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let plan = Arc::new(Plan::from_args());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let end = if plan.is_home {
            home(&plan)?
        } else {
            servers(&plan)?
        };
        sleep_until((end + plan.end).into()).await;
        plan.report(end);
        std::process::exit(0)
    })
}

/// Opens home's sockets and starts its flows; returns the start of the run.
fn home(plan: &Arc<Plan>) -> Result<Instant, Failure> {
    let mut config = rustls::ClientConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody))
        .with_no_client_auth();
    config.alpn_protocols = vec![ALPN.into()];
    let crypto = Arc::new(QuicClientConfig::try_from(config)?);
    let mut endpoints = Vec::new();
    for flow in &plan.flows {
        let socket = asymq_quic::socket(SocketAddr::new(plan.home, flow.port))?;
        let mut endpoint = Endpoint::new(
            EndpointConfig::default(),
            None,
            socket,
            Arc::new(TokioRuntime),
        )?;
        let mut config = quinn::ClientConfig::new(crypto.clone());
        config.transport_config(Arc::new(transport(plan, flow)));
        endpoint.set_default_client_config(config);
        endpoints.push(endpoint);
    }
    let start = plan.start();
    for (index, endpoint) in endpoints.into_iter().enumerate() {
        let plan = plan.clone();
        tokio::spawn(async move {
            let flow = &plan.flows[index];
            sleep_until((start + flow.start).into()).await;
            let connection = endpoint.connect(plan.server, "asymq")?.await?;
            let (mut send, receive) = connection.open_bi().await?;
            send.write_all(b"?").await?;
            carry(&plan, flow, send, receive).await
        });
    }
    Ok(start)
}

fn servers(plan: &Arc<Plan>) -> Result<Instant, Failure> {
    let made = rcgen::generate_simple_self_signed(["asymq".into()])?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(
            vec![made.cert.into()],
            PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()).into(),
        )?;
    config.alpn_protocols = vec![ALPN.into()];
    let crypto = Arc::new(QuicServerConfig::try_from(config)?);
    let config = |transport| {
        let mut config = ServerConfig::with_crypto(crypto.clone());
        config.transport_config(transport);
        config
    };
    let configs: Vec<_> = plan
        .flows
        .iter()
        .map(|flow| Arc::new(config(Arc::new(transport(plan, flow)))))
        .collect();
    let socket = asymq_quic::socket(plan.server)?;
    let default = Some(config(Arc::default()));
    let endpoint = Endpoint::new(
        EndpointConfig::default(),
        default,
        socket,
        Arc::new(TokioRuntime),
    )?;
    let start = plan.start();
    let plan = plan.clone();
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            let port = incoming.remote_address().port();
            let Some(index) = plan.flows.iter().position(|flow| flow.port == port) else {
                continue;
            };
            let connecting = incoming.accept_with(configs[index].clone());
            let plan = plan.clone();
            tokio::spawn(async move {
                let connection = connecting?.await?;
                let (send, mut receive) = connection.accept_bi().await?;
                receive.read_exact(&mut [0]).await?;
                carry(&plan, &plan.flows[index], send, receive).await
            });
        }
    });
    Ok(start)
}

/// Sends or reads until the program ends.
async fn carry(
    plan: &Plan,
    flow: &Flow,
    mut send: quinn::SendStream,
    mut receive: quinn::RecvStream,
) -> Result<(), Failure> {
    if plan.sends(flow) {
        let data = vec![0; 65_536];
        loop {
            send.write_all(&data).await?;
        }
    }
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        flow.seen
            .lock()
            .expect("no panic")
            .deliver(Instant::now(), chunk.bytes.len());
    }
    Ok(())
}

fn transport(plan: &Plan, flow: &Flow) -> TransportConfig {
    let congestion: Arc<dyn ControllerFactory + Send + Sync> = match plan.is_bbr {
        true => Arc::new(BbrConfig::default()),
        false => Arc::new(CubicConfig::default()),
    };
    let mut transport = TransportConfig::default();
    transport
        .congestion_controller_factory(congestion)
        .stream_receive_window(WINDOW.into())
        .send_window(WINDOW.into())
        .qlog_stream(qlog(&flow.seen));
    if plan.ack_every > 0 {
        let mut frequency = AckFrequencyConfig::default();
        // Number of packets without an ACK; the next packet causes an immediate ACK.
        frequency
            .ack_eliciting_threshold(VarInt::from_u64(plan.ack_every - 1).expect("a small number"));
        transport.ack_frequency_config(Some(frequency));
    }
    transport
}

fn qlog(seen: &Arc<Mutex<Seen>>) -> Option<quinn::QlogStream> {
    let mut config = QlogConfig::default();
    config.writer(Box::new(Reader::new(seen)));
    config.into_stream()
}

fn provider() -> Arc<rustls::crypto::CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Accepts every certificate: the lab's network has only one server.
#[derive(Debug)]
struct Anybody;

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}
