//! UDP: probes that measure queueing delay, and bursts at a constant rate.

use crate::clock::Window;
use crate::error::{Context as _, LabError};
use crate::halt::Halt;
use crate::plan::{BURST_PORT, HOME, PROBE_PORT, Plan, SERVER};
use crate::{clock, sys};
use asymq_core::measure::Histogram;
use asymq_core::units::{Duration, Instant};
use asymq_gateway::net::Netns;
use asymq_gateway::{poll, precise_timers};
use asymq_scenario::{Direction, Percentiles, Scenario, Summary, UdpBurst};
use std::io;
use std::net::{SocketAddrV4, UdpSocket};
use std::os::fd::AsFd as _;

/// Bytes of the IP and UDP headers.
const HEADERS: u32 = 28;
/// IP bytes of a probe packet.
pub(crate) const PROBE_PACKET: u32 = 64;

pub(crate) struct Datagrams {
    probe: Option<Probe>,
    bursts: Vec<Burst>,
    /// Sockets to which the bursts are sent; nothing reads them. Without them, hosts would answer "port unreachable".
    _sinks: Vec<UdpSocket>,
}

struct Probe {
    client: UdpSocket,
    server: UdpSocket,
    interval: Duration,
    /// Delays of a probe up and down without queueing.
    base: [Duration; 2],
    sent: u64,
    delays: [Histogram; 2],
    round_trips: Histogram,
}

pub(crate) struct ProbeResults {
    /// Queueing delays by direction.
    pub(crate) delays: [Option<Percentiles>; 2],
    /// Queueing delays of round trips, up plus down.
    pub(crate) round_trips: Option<Percentiles>,
    /// Share of round trips with a queueing delay above [`Summary::LATE`].
    pub(crate) late: f64,
}

struct Burst {
    socket: UdpSocket,
    to: SocketAddrV4,
    schedule: UdpBurst,
    sent: u64,
}

impl Datagrams {
    /// Opens each socket in its namespace, without sending.
    pub(crate) fn open(
        scenario: &Scenario,
        plan: &Plan,
        home: &Netns,
        servers: &Netns,
    ) -> Result<Self, LabError> {
        let at_home = |port| bind(home, SocketAddrV4::new(HOME, port));
        let at_server = |port| bind(servers, SocketAddrV4::new(SERVER, port));
        let rtt = plan.probe.rtt;
        // Each direction has half of the round trip.
        let base = [
            rtt / 2 + scenario.up.tx_time(PROBE_PACKET),
            rtt.saturating_sub(rtt / 2) + scenario.down.tx_time(PROBE_PACKET),
        ];
        let probe = |interval| -> Result<Probe, LabError> {
            Ok(Probe {
                client: at_home(plan.probe.home_port)?,
                server: at_server(PROBE_PORT)?,
                interval,
                base,
                sent: 0,
                delays: Default::default(),
                round_trips: Histogram::default(),
            })
        };
        let probe = scenario.probe.map(probe).transpose()?;
        let (mut bursts, mut sinks) = (Vec::new(), Vec::new());
        if !scenario.udp.is_empty() {
            let server = at_server(BURST_PORT)?;
            for (schedule, talk) in scenario.udp.iter().zip(&plan.bursts) {
                let client = at_home(talk.home_port)?;
                let (socket, sink, to) = match schedule.direction {
                    Direction::Up => (client, None, SocketAddrV4::new(SERVER, BURST_PORT)),
                    Direction::Down => {
                        let to = SocketAddrV4::new(HOME, talk.home_port);
                        let server = server.try_clone().during("sharing a UDP socket")?;
                        (server, Some(client), to)
                    }
                };
                sinks.extend(sink);
                bursts.push(Burst {
                    socket,
                    to,
                    schedule: schedule.clone(),
                    sent: 0,
                });
            }
            sinks.push(server);
        }
        Ok(Self {
            probe,
            bursts,
            _sinks: sinks,
        })
    }

    /// Sends until the window ends or the run is stopped. Returns the probe's delays.
    pub(crate) fn run(
        mut self,
        window: Window,
        halt: &Halt,
    ) -> Result<Option<ProbeResults>, LabError> {
        const LONGEST_WAIT: Duration = Duration::from_millis(50);
        precise_timers();
        sys::set_realtime();
        let payload = vec![0; 1500];
        loop {
            let now = clock::now();
            if now >= window.end || halt.is_set() {
                break;
            }
            let mut next = now + LONGEST_WAIT;
            if let Some(probe) = &mut self.probe {
                next = next.min(probe.send(window, now).during("sending a probe")?);
            }
            for burst in &mut self.bursts {
                let due = burst
                    .send(window, now, &payload)
                    .during("sending constant-rate UDP")?;
                next = due.map_or(next, |due| next.min(due));
            }
            let wait = next.saturating_since(clock::now());
            let probe = self.probe.as_ref();
            let fds = [
                probe.map(|probe| probe.server.as_fd()),
                probe.map(|probe| probe.client.as_fd()),
            ];
            let [turns, returns] = poll(fds, Some(wait)).during("waiting for UDP")?;
            if let Some(probe) = &mut self.probe {
                if turns {
                    probe.turn(window).during("returning a probe")?;
                }
                if returns {
                    probe.receive(window).during("receiving a probe")?;
                }
            }
        }
        Ok(self
            .probe
            .filter(|probe| !probe.round_trips.is_empty())
            .map(|probe| ProbeResults {
                delays: probe.delays.each_ref().map(Histogram::percentiles_ms),
                round_trips: probe.round_trips.percentiles_ms(),
                late: probe.round_trips.share_above(Summary::LATE),
            }))
    }
}

impl Probe {
    /// Sends all probes whose time has come. Returns the time of the next probe.
    fn send(&mut self, window: Window, now: Instant) -> io::Result<Instant> {
        loop {
            let due = window.start + self.interval * self.sent;
            if due > now {
                return Ok(due);
            }
            self.sent += 1;
            let mut payload = [0; (PROBE_PACKET - HEADERS) as usize];
            payload[..8].copy_from_slice(&stamp(clock::now()));
            let to = SocketAddrV4::new(SERVER, PROBE_PORT);
            if_ready(self.client.send_to(&payload, to))?;
        }
    }

    /// Sends probes that have reached the server back to the client, and writes the current time into them.
    fn turn(&mut self, window: Window) -> io::Result<()> {
        let mut packet = [0; PROBE_PACKET as usize];
        while let Some((len, from)) = if_ready(self.server.recv_from(&mut packet))? {
            let now = clock::now();
            let [sent, _] = stamps(&packet);
            if window.counts(sent) {
                let up = now.saturating_since(sent).saturating_sub(self.base[0]);
                self.delays[0].record(up);
            }
            packet[8..16].copy_from_slice(&stamp(now));
            if_ready(self.server.send_to(&packet[..len], from))?;
        }
        Ok(())
    }

    fn receive(&mut self, window: Window) -> io::Result<()> {
        let mut packet = [0; PROBE_PACKET as usize];
        while if_ready(self.client.recv(&mut packet))?.is_some() {
            let now = clock::now();
            let [sent, returned] = stamps(&packet);
            if window.counts(sent) {
                let both = now.saturating_since(sent);
                let down = now.saturating_since(returned);
                self.round_trips
                    .record(both.saturating_sub(self.base[0] + self.base[1]));
                self.delays[1].record(down.saturating_sub(self.base[1]));
            }
        }
        Ok(())
    }
}

fn stamp(at: Instant) -> [u8; 8] {
    at.saturating_since(Instant::ZERO).as_nanos().to_be_bytes()
}

/// Returns the times at which a probe left home and left the server.
fn stamps(packet: &[u8; PROBE_PACKET as usize]) -> [Instant; 2] {
    [0, 8].map(|at| {
        let nanos = packet[at..at + 8].try_into().expect("eight bytes");
        Instant::ZERO + Duration::from_nanos(u64::from_be_bytes(nanos))
    })
}

impl Burst {
    /// Sends all packets whose time has come. Returns the time of the next packet; `None` after the last.
    fn send(
        &mut self,
        window: Window,
        now: Instant,
        payload: &[u8],
    ) -> io::Result<Option<Instant>> {
        let size = self.schedule.packet.0 as u32;
        let spacing = self.schedule.rate.tx_time(size);
        loop {
            let due = self.schedule.start + spacing * self.sent;
            if self.schedule.stop.is_some_and(|stop| due >= stop) {
                return Ok(None);
            }
            let due = window.start + due;
            if due > now {
                return Ok(Some(due));
            }
            self.sent += 1;
            let payload = &payload[..(size - HEADERS) as usize];
            if_ready(self.socket.send_to(payload, self.to))?;
        }
    }
}

/// Converts a result; `None` if the buffer has no room for a datagram, or no datagram is waiting.
fn if_ready<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => Ok(None),
        Err(error) => Err(error),
    }
}

fn bind(namespace: &Netns, address: SocketAddrV4) -> Result<UdpSocket, LabError> {
    namespace
        .run(|| {
            let socket = UdpSocket::bind(address)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        })
        .during("opening a UDP socket")
}
