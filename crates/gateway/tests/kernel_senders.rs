//! Features of kernel TCP whose ACKs are filtered, beside an upload that fills the uplink. `docs/notes/senders.md` has
//! their results. Tests that need root print a note and pass without it.

use crate::common::disciplines::discipline;
use crate::common::{NET, Place, Running, shaped};
use crate::lossy::Lossy;
use asymq_core::catalog::{Build, Standard};
use asymq_core::units::Rate;
use asymq_gateway::net::Netns;
use asymq_gateway::{Frame, GatewayConfig, Snapshot};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Duration of the load.
const SPAN: Duration = Duration::from_secs(5);
/// Number of attempts at a measurement that a busy machine may disturb.
const TRIES: u32 = 4;
/// `MSG_FASTOPEN` of `sendto(2)`.
const FAST_OPEN: i32 = 0x2000_0000;
const REQUEST: usize = 100;
/// Length of an answer in bytes: twenty full segments.
const ANSWER: usize = 20 * 1448;

#[derive(Debug)]
struct RunCounters {
    /// Counters of `/proc/net/netstat` at the home host and at the server.
    home: BTreeMap<String, u64>,
    net: BTreeMap<String, u64>,
    gateway: Snapshot,
    /// Number of answers or bytes that arrived.
    arrived: u64,
}

impl RunCounters {
    fn filtered(&self) -> u64 {
        self.gateway.up.ack.filtered
    }

    /// Number of ACKs that were not filtered because of their options, although a later ACK was queued.
    fn unread(&self) -> f64 {
        self.gateway
            .up
            .control
            .get("unfiltered_options")
            .copied()
            .unwrap_or(0.0)
    }
}

fn counters(host: &Netns) -> BTreeMap<String, u64> {
    let read = || fs::read_to_string("/proc/thread-self/net/netstat");
    let text = host.run(read).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines
        .chunks_exact(2)
        .flat_map(|pair| pair[0].split(' ').zip(pair[1].split(' ')));
    pairs
        .filter_map(|(name, count)| Some((name.to_owned(), count.parse().ok()?)))
        .collect()
}

fn config(uplink: &str) -> GatewayConfig {
    let (up, down): (Rate, Rate) = ("1mbit".parse().unwrap(), "20mbit".parse().unwrap());
    shaped(up, down, discipline(uplink, up, down, 1000))
}

fn address(port: u16) -> SocketAddr {
    (NET, port).into()
}

fn socket(host: &Netns, protocol: Protocol) -> io::Result<Socket> {
    host.run(|| Socket::new(Domain::IPV4, Type::STREAM, Some(protocol)))
}

fn listen(net: &Netns, port: u16, protocol: Protocol) -> io::Result<Socket> {
    let server = socket(net, protocol)?;
    server.bind(&address(port).into())?;
    server.listen(64)?;
    server.set_read_timeout(Some(SPAN))?;
    Ok(server)
}

fn bounded(socket: Socket) -> TcpStream {
    socket.set_read_timeout(Some(SPAN)).unwrap();
    socket.set_write_timeout(Some(SPAN)).unwrap();
    socket.into()
}

fn write_until(mut end: &TcpStream, until: Instant) {
    while Instant::now() < until && end.write_all(&[7; 1 << 14]).is_ok() {}
}

fn read_until(mut end: &TcpStream, until: Instant) -> u64 {
    let (mut buffer, mut sum) = (vec![0; 1 << 16], 0);
    while Instant::now() < until {
        match end.read(&mut buffer) {
            Ok(0) | Err(_) => break,
            Ok(count) => sum += count as u64,
        }
    }
    sum
}

/// Runs `load` through a gateway with this uplink. An upload starts one second earlier.
fn beside_an_upload(
    catalog: &'static dyn Build<Frame>,
    uplink: &str,
    prepare: impl Fn(&Place) -> io::Result<()>,
    load: impl Fn(&Place, Instant) -> io::Result<u64>,
) -> Option<RunCounters> {
    let place = Place::new()?;
    prepare(&place).ok()?;
    let gateway = Running::with_catalog(&place, catalog, config(uplink));
    let server = listen(&place.net, 5000, Protocol::TCP).unwrap();
    let client = socket(&place.home, Protocol::TCP).unwrap();
    client.connect(&address(5000).into()).unwrap();
    let ends = [client, server.accept().unwrap().0].map(bounded);
    let until = Instant::now() + SPAN;
    let arrived = thread::scope(|scope| {
        let [home, net] = &ends;
        scope.spawn(move || write_until(home, until));
        scope.spawn(move || read_until(net, until));
        thread::sleep(Duration::from_secs(1));
        load(&place, until)
    });
    let snapshot = gateway.stats.latest();
    let (home, net) = (counters(&place.home), counters(&place.net));
    gateway.stop();
    Some(RunCounters {
        home,
        net,
        gateway: snapshot,
        arrived: arrived.ok()?,
    })
}

fn nothing(_: &Place) -> io::Result<()> {
    Ok(())
}

/// Answers requests on each of these connections, one after another.
fn serve(server: &Socket, connections: usize, until: Instant) -> io::Result<()> {
    thread::scope(|scope| {
        for _ in 0..connections {
            let (stream, _) = server.accept()?;
            scope.spawn(move || {
                let mut stream = bounded(stream);
                let mut request = [0; REQUEST];
                while Instant::now() < until && stream.read_exact(&mut request).is_ok() {
                    let _ = stream.write_all(&vec![9; ANSWER]);
                }
            });
        }
        Ok(())
    })
}

/// On each of four connections, repeatedly requests an answer of twenty segments.
fn answers(place: &Place, until: Instant) -> io::Result<u64> {
    let server = listen(&place.net, 5001, Protocol::TCP)?;
    thread::scope(|scope| {
        scope.spawn(|| serve(&server, 4, until));
        let clients = [(); 4].map(|()| {
            scope.spawn(|| {
                let client = socket(&place.home, Protocol::TCP)?;
                client.connect(&address(5001).into())?;
                let (mut client, mut count) = (bounded(client), 0);
                let mut answer = vec![0; ANSWER];
                while Instant::now() < until {
                    client.write_all(&[1; REQUEST])?;
                    client.read_exact(&mut answer)?;
                    count += 1;
                }
                io::Result::Ok(count)
            })
        });
        clients
            .map(|client| client.join().unwrap())
            .into_iter()
            .sum()
    })
}

#[test]
fn thinned_acks_cause_no_more_tail_probes_and_no_spurious_ones() {
    let fared_well = (0..TRIES).any(|_| {
        let run = |uplink| beside_an_upload(&Lossy, uplink, nothing, answers);
        let (Some(thinned), Some(other)) = (run("asymq"), run("fq_codel")) else {
            return true;
        };
        for counters in [&thinned, &other] {
            let names = [
                "TCPLossProbes",
                "TCPLossProbeRecovery",
                "TCPDSACKRecv",
                "TCPSpuriousRTOs",
                "TCPTimeouts",
                "TCPLostRetransmit",
            ];
            let counts = names.map(|name| (name, counters.net[name]));
            println!(
                "{} answers, {} filtered, {counts:?}",
                counters.arrived,
                counters.filtered()
            );
        }
        let per_answer = |counters: &RunCounters, name: &str| {
            counters.net[name] as f64 / counters.arrived as f64
        };
        let no_more =
            |name, margin| per_answer(&thinned, name) <= per_answer(&other, name) + margin;
        // Tail loss probes are sent, and at least one repairs a loss.
        let has_probes =
            thinned.net["TCPLossProbes"] > 0 && thinned.net["TCPLossProbeRecovery"] > 0;
        has_probes
            && thinned.filtered() > thinned.arrived
            && no_more("TCPLossProbes", 0.05)
            && no_more("TCPDSACKRecv", 0.03)
            && no_more("TCPSpuriousRTOs", 0.01)
            && no_more("TCPTimeouts", 0.02)
            && thinned.arrived > other.arrived / 2
    });
    assert!(fared_well);
}

/// Sends requests in SYNs, one after another. The first one obtains the cookie.
fn fast_opens(place: &Place, until: Instant) -> io::Result<u64> {
    const COUNT: u64 = 25;
    let server = listen(&place.net, 5002, Protocol::TCP)?;
    let bulk = listen(&place.net, 5003, Protocol::TCP)?;
    thread::scope(|scope| {
        let home = socket(&place.home, Protocol::TCP)?;
        home.connect(&address(5003).into())?;
        let (home, net) = (bounded(home), bounded(bulk.accept()?.0));
        scope.spawn(move || write_until(&net, until));
        scope.spawn(move || read_until(&home, until));
        scope.spawn(|| {
            for _ in 0..=COUNT {
                let Ok((stream, _)) = server.accept() else {
                    return;
                };
                let mut stream = bounded(stream);
                let _ = stream.read_exact(&mut [0; REQUEST]);
                let _ = stream.write_all(&[9; ANSWER]);
            }
        });
        for _ in 0..=COUNT {
            let client = socket(&place.home, Protocol::TCP)?;
            let sent =
                client.send_to_with_flags(&[1; REQUEST], &address(5002).into(), FAST_OPEN)?;
            assert_eq!(sent, REQUEST);
            bounded(client).read_exact(&mut [0; ANSWER])?;
        }
        Ok(COUNT)
    })
}

#[test]
fn data_in_a_syn_passes_beside_thinned_acks_and_is_acknowledged_at_once() {
    // Enables client, server, and every listening socket.
    let switch = || fs::write("/proc/sys/net/ipv4/tcp_fastopen", "1027");
    let prepare = |place: &Place| {
        place.home.run(switch)?;
        place.net.run(switch)
    };
    let fared_well = (0..TRIES).any(|_| {
        let Some(counters) = beside_an_upload(&Standard, "asymq", prepare, fast_opens) else {
            return true;
        };
        let of_home = |name: &str| counters.home[name];
        println!(
            "{} of {} taken, {} failed, {} SYNs again, {} filtered",
            of_home("TCPFastOpenActive"),
            counters.arrived,
            of_home("TCPFastOpenActiveFail"),
            of_home("TCPSynRetrans"),
            counters.filtered()
        );
        of_home("TCPFastOpenActive") == counters.arrived
            && counters.net["TCPFastOpenPassive"] == counters.arrived
            && of_home("TCPFastOpenActiveFail") == 0
            && of_home("TCPSynRetrans") == 0
            && counters.filtered() > 100
    });
    assert!(fared_well);
}

/// Downloads over this protocol. With `quickly`, the receiver acknowledges each segment.
fn download(protocol: Protocol, quickly: bool) -> impl Fn(&Place, Instant) -> io::Result<u64> {
    move |place, until| {
        let server = listen(&place.net, 5004, protocol)?;
        thread::scope(|scope| {
            let home = socket(&place.home, protocol)?;
            home.connect(&address(5004).into())?;
            let (home, net) = (bounded(home), bounded(server.accept()?.0));
            scope.spawn(move || write_until(&net, until));
            let (mut buffer, mut sum) = (vec![0; 1 << 16], 0);
            while Instant::now() < until {
                if quickly {
                    SockRef::from(&home).set_tcp_quickack(true)?;
                }
                sum += (&home).read(&mut buffer)? as u64;
            }
            Ok(sum)
        })
    }
}

#[test]
fn acks_of_mptcp_pass_whole_and_are_named_and_those_of_tcp_are_thinned() {
    let fared_well = (0..TRIES).any(|_| {
        let run =
            |protocol| beside_an_upload(&Standard, "asymq", nothing, download(protocol, false));
        let (Some(tcp), Some(mptcp)) = (run(Protocol::TCP), run(Protocol::MPTCP)) else {
            eprintln!("skipped: no namespaces here, or a kernel without MPTCP");
            return true;
        };
        for counters in [&tcp, &mptcp] {
            println!(
                "{} bytes, {} filtered, {} unread",
                counters.arrived,
                counters.filtered(),
                counters.unread()
            );
        }
        tcp.filtered() > 100
            && tcp.unread() == 0.0
            && mptcp.filtered() == 0
            && mptcp.unread() > 100.0
            && mptcp.arrived > tcp.arrived / 8
    });
    assert!(fared_well);
}

#[test]
fn a_receiver_that_acknowledges_each_segment_costs_no_download_behind_thinned_acks() {
    let fared_well = (0..TRIES).any(|_| {
        let run = |quickly| {
            beside_an_upload(
                &Standard,
                "asymq",
                nothing,
                download(Protocol::TCP, quickly),
            )
        };
        let (Some(delayed), Some(quick)) = (run(false), run(true)) else {
            return true;
        };
        for counters in [&delayed, &quick] {
            println!(
                "{} bytes, {} filtered",
                counters.arrived,
                counters.filtered()
            );
        }
        // With `quick`, the receiver acknowledges every segment.
        quick.filtered() > delayed.filtered() * 11 / 10 && quick.arrived > delayed.arrived * 8 / 10
    });
    assert!(fared_well);
}
