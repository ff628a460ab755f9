//! Bulk flows of `tquic`.

use asymq_quic::{ALPN, Flow, Plan, Reader, WINDOW};
use bytes::Bytes;
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use std::error::Error;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tquic::{
    Config, CongestionControlAlgorithm, Connection, Endpoint, PacketInfo, PacketSendHandler,
    TlsConfig, TransportHandler,
};

fn main() -> Result<(), Box<dyn Error>> {
    let plan = Rc::new(Plan::from_args());
    let mut sides = Vec::new();
    let mut poll = Poll::new()?;
    let addresses: Vec<SocketAddr> = match plan.is_home {
        true => plan
            .flows
            .iter()
            .map(|flow| SocketAddr::new(plan.home, flow.port))
            .collect(),
        false => vec![plan.server],
    };
    for (index, address) in addresses.into_iter().enumerate() {
        let mut socket = UdpSocket::from_std(asymq_quic::socket(address)?);
        poll.registry()
            .register(&mut socket, Token(index), Interest::READABLE)?;
        let wire = Rc::new(Wire { socket });
        let handler = Box::new(Bulk { plan: plan.clone() });
        sides.push(Side {
            endpoint: Endpoint::new(
                Box::new(config(&plan)?),
                !plan.is_home,
                handler,
                wire.clone(),
            ),
            wire,
            address,
        });
    }
    let start = plan.start();
    let end = start + plan.end;
    let mut unstarted: Vec<usize> = (0..if plan.is_home { plan.flows.len() } else { 0 }).collect();
    let mut events = Events::with_capacity(1024);
    let mut buffer = vec![0; 65_536];
    loop {
        let now = Instant::now();
        if now >= end {
            break;
        }
        unstarted.retain(|&index| {
            let is_due = now >= start + plan.flows[index].start;
            if is_due {
                let side = &mut sides[index];
                let _ = side.endpoint.connect(
                    side.address,
                    plan.server,
                    Some("asymq"),
                    None,
                    None,
                    None,
                );
            }
            !is_due
        });
        let mut wait = end
            .saturating_duration_since(now)
            .min(Duration::from_millis(50));
        for side in &mut sides {
            side.endpoint.process_connections()?;
            if let Some(timeout) = side.endpoint.timeout() {
                wait = wait.min(timeout);
            }
        }
        for &index in &unstarted {
            wait = wait.min((start + plan.flows[index].start).saturating_duration_since(now));
        }
        // epoll rounds up to whole milliseconds, but pacing needs shorter waits.
        if wait < Duration::from_millis(1) && !wait.is_zero() {
            std::thread::sleep(wait);
            wait = Duration::ZERO;
        }
        if let Err(error) = poll.poll(&mut events, Some(wait))
            && error.kind() != ErrorKind::Interrupted
        {
            return Err(error.into());
        }
        for event in &events {
            sides[event.token().0].receive(&mut buffer)?;
        }
        let now = Instant::now();
        for side in &mut sides {
            if side
                .endpoint
                .timeout()
                .is_some_and(|timeout| timeout.is_zero())
            {
                side.endpoint.on_timeout(now);
            }
        }
    }
    // tquic's qlog has no pto_count.
    plan.report(start, false);
    std::process::exit(0)
}

/// A socket with its endpoint. Home has one per flow, the servers have one for all flows.
struct Side {
    endpoint: Endpoint,
    wire: Rc<Wire>,
    address: SocketAddr,
}

impl Side {
    fn receive(&mut self, buffer: &mut [u8]) -> Result<(), Box<dyn Error>> {
        loop {
            let (length, source) = match self.wire.socket.recv_from(buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let info = PacketInfo {
                src: source,
                dst: self.address,
                time: Instant::now(),
            };
            let _ = self.endpoint.recv(&mut buffer[..length], &info);
        }
    }
}

/// Sends packets.
struct Wire {
    socket: UdpSocket,
}

impl PacketSendHandler for Wire {
    fn on_packets_send(&self, packets: &[(Vec<u8>, PacketInfo)]) -> tquic::Result<usize> {
        for (sent, (packet, info)) in packets.iter().enumerate() {
            match self.socket.send_to(packet, info.dst) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(sent),
                Err(_) => return Err(tquic::Error::IoError("a socket".into())),
            }
        }
        Ok(packets.len())
    }
}

/// Fills and drains the stream of each connection.
struct Bulk {
    plan: Rc<Plan>,
}

impl Bulk {
    fn flow(&self, connection: &Connection) -> Option<&Flow> {
        let path = connection.paths_iter().next()?;
        self.plan.flow(
            if self.plan.is_home {
                path.local
            } else {
                path.remote
            }
            .port(),
        )
    }

    fn fill(connection: &mut Connection, stream: u64) {
        static DATA: [u8; 65_536] = [0; 65_536];
        let _ = connection.stream_want_write(stream, true);
        while let Ok(written) = connection.stream_write(stream, Bytes::from_static(&DATA), false) {
            if written < DATA.len() {
                return;
            }
        }
    }
}

impl TransportHandler for Bulk {
    fn on_conn_created(&mut self, connection: &mut Connection) {
        if let Some(flow) = self.flow(connection) {
            let reader = Box::new(Reader::new(&flow.seen));
            connection.set_qlog(reader, String::new(), String::new());
        }
    }

    fn on_conn_established(&mut self, connection: &mut Connection) {
        if self.plan.is_home
            && let Ok(stream) = connection.stream_bidi_new(0, false)
        {
            let _ = connection.stream_write(stream, Bytes::from_static(b"?"), false);
            if self.flow(connection).is_some_and(|flow| flow.is_upload) {
                Self::fill(connection, stream);
            }
        }
    }

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        let mut buffer = [0; 65_536];
        let mut length = 0;
        while let Ok((read, _)) = connection.stream_read(stream, &mut buffer) {
            length += read;
        }
        let Some(flow) = self.flow(connection) else {
            return;
        };
        if self.plan.sends(flow) {
            Self::fill(connection, stream);
        } else {
            flow.seen
                .lock()
                .expect("no panic")
                .deliver(Instant::now(), length);
        }
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        if self
            .flow(connection)
            .is_some_and(|flow| self.plan.sends(flow))
        {
            Self::fill(connection, stream);
        } else {
            let _ = connection.stream_want_write(stream, false);
        }
    }

    fn on_conn_closed(&mut self, _: &mut Connection) {}
    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}
    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}
    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}

fn config(plan: &Plan) -> Result<Config, Box<dyn Error>> {
    let mut config = Config::new()?;
    let window = u64::from(WINDOW);
    config.set_initial_max_data(window);
    config.set_initial_max_stream_data_bidi_local(window);
    config.set_initial_max_stream_data_bidi_remote(window);
    config.set_max_connection_window(window);
    config.set_max_stream_window(window);
    config.set_recv_udp_payload_size(1472);
    config.set_congestion_control_algorithm(match plan.is_bbr {
        true => CongestionControlAlgorithm::Bbr,
        false => CongestionControlAlgorithm::Cubic,
    });
    if plan.ack_every > 0 {
        // tquic has no ACK_FREQUENCY, so its receiver is configured directly.
        config.set_ack_eliciting_threshold(plan.ack_every);
    }
    let protocols = vec![ALPN.to_vec()];
    let tls = if plan.is_home {
        TlsConfig::new_client_config(protocols, false)?
    } else {
        // Writes files, because the library reads only files.
        let (.., certificate, key) = asymq_quic::certificate();
        let folder = std::env::temp_dir().join(format!("asymq-quic-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let paths =
            ["certificate", "key"].map(|name| folder.join(name).to_string_lossy().into_owned());
        std::fs::write(&paths[0], certificate)?;
        std::fs::write(&paths[1], key)?;
        let tls = TlsConfig::new_server_config(&paths[0], &paths[1], protocols, false);
        std::fs::remove_dir_all(&folder)?;
        tls?
    };
    config.set_tls_config(tls);
    Ok(config)
}
