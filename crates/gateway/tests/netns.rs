//! The gateway over real interfaces: `home - lan|gateway|wan - net`, joined by veth pairs whose
//! hosts leave segmentation and checksums to their interfaces. Needs root; says so and passes
//! otherwise.

use asymq_core::config::Config;
use asymq_core::units::Limit;
use asymq_gateway::net::{Feature, Netns, Network, VethEnd, set_feature};
use asymq_gateway::{Gateway, GatewayConfig, PacketIo, Port, Shared, Stop};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

struct Place {
    middle: Netns,
    home: Netns,
    net: Netns,
}

const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const NET: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Indices of the interfaces towards home and net, in either namespace.
const LAN: u32 = 11;
const WAN: u32 = 12;

impl Place {
    fn new() -> Option<Self> {
        let place = match Netns::new() {
            Ok(middle) => Self {
                middle,
                home: Netns::new().unwrap(),
                net: Netns::new().unwrap(),
            },
            Err(error) => {
                eprintln!("skipped: a network namespace cannot be made: {error}");
                return None;
            }
        };
        place.connect("lan", LAN, &place.home, HOME).unwrap();
        place.connect("wan", WAN, &place.net, NET).unwrap();
        Some(place)
    }

    fn connect(
        &self,
        name: &'static str,
        index: u32,
        host: &Netns,
        address: Ipv4Addr,
    ) -> io::Result<()> {
        let end = |name, mac| VethEnd {
            name,
            index,
            mac: [2, 0, 0, 0, mac, index as u8],
        };
        self.middle.run(|| {
            let mut network = Network::open()?;
            network.add_veth(end(name, 0), end("eth", 1), host.as_fd())?;
            network.set_up(index)
        })?;
        host.run(|| {
            let mut network = Network::open()?;
            network.add_address(index, address, 24)?;
            network.set_up(index)?;
            for feature in [Feature::Tso, Feature::TxChecksum, Feature::Gso] {
                set_feature("eth", feature, true)?;
            }
            Ok(())
        })
    }
}

/// A gateway that runs on a thread of its own.
struct Running {
    stop: Stop,
    stats: Shared,
    log: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<()>,
}

impl Running {
    fn start(place: &Place, up: &str) -> Self {
        let config = GatewayConfig {
            lan: "lan".into(),
            wan: "wan".into(),
            up: up.parse().unwrap(),
            down: "1gbit".parse().unwrap(),
            overhead: "".parse().unwrap(),
            discipline: Config::DropTail {
                limit: Limit::Packets(1000),
            },
        };
        let stop = Stop::new().unwrap();
        let log = Arc::<Mutex<Vec<String>>>::default();
        let (ready, started) = mpsc::channel();
        let thread = thread::spawn({
            let (stop, log) = (stop.clone(), log.clone());
            let netns = place.middle.as_fd().try_clone_to_owned().unwrap();
            move || {
                Netns::from(netns).enter().unwrap();
                let mut gateway = Gateway::open(&config).unwrap();
                gateway.set_log(move |line| log.lock().unwrap().push(line.into()));
                ready.send(gateway.stats()).unwrap();
                gateway.run(&stop).unwrap();
            }
        });
        Self {
            stop,
            stats: started.recv().unwrap(),
            log,
            thread,
        }
    }

    fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    fn wait_for(&self, word: &str) {
        let start = Instant::now();
        while !self.log().contains(word) {
            assert!(
                start.elapsed() < Duration::from_secs(5),
                "no '{word}' in: {}",
                self.log()
            );
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn stop(self) -> String {
        self.stop.request();
        self.thread.join().unwrap();
        self.log.lock().unwrap().join("\n")
    }
}

/// Sends `bytes` over TCP; answers what arrived and how long that took.
fn transfer(from: &Netns, to: &Netns, address: Ipv4Addr, bytes: usize) -> (usize, Duration) {
    let (ready, listening) = mpsc::channel();
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            to.run(|| {
                let listener = TcpListener::bind((address, 5000))?;
                ready.send(()).unwrap();
                let (mut stream, _) = listener.accept()?;
                let mut all = Vec::new();
                stream.read_to_end(&mut all)?;
                assert!(all.iter().enumerate().all(|(i, &byte)| byte == i as u8));
                Ok(all.len())
            })
        });
        listening.recv().unwrap();
        let start = Instant::now();
        from.run(|| {
            let all: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
            TcpStream::connect((address, 5000))?.write_all(&all)
        })
        .unwrap();
        let arrived = receiver.join().unwrap().unwrap();
        (arrived, start.elapsed())
    })
}

#[test]
fn tcp_of_hosts_with_offloads_passes_both_ways_and_the_uplink_is_shaped() {
    let Some(place) = Place::new() else { return };
    let gateway = Running::start(&place, "20mbit");
    let (arrived, took) = transfer(&place.home, &place.net, NET, 5_000_000);
    assert_eq!(arrived, 5_000_000);
    // 5 MB at 20 Mbit/s last 2 s, headers apart.
    assert!(took > Duration::from_secs(2), "{took:?}");
    let (arrived, _) = transfer(&place.net, &place.home, HOME, 20_000_000);
    assert_eq!(arrived, 20_000_000);
    let stats = gateway.stats.clone();
    assert!(gateway.stop().contains("nothing left behind"));
    let last = stats.latest();
    assert_eq!(last.losses, Default::default());
    assert!(last.up.data.bytes > 5_000_000, "{last:?}");
    assert!(last.down.data.bytes > 20_000_000, "{last:?}");
    assert!(last.up.ack.packets > 1_000, "{last:?}");
}

#[test]
fn an_interface_that_goes_down_or_away_is_survived() {
    let Some(place) = Place::new() else { return };
    let gateway = Running::start(&place, "100mbit");
    assert_eq!(transfer(&place.home, &place.net, NET, 100_000).0, 100_000);

    place.middle.run(|| Network::open()?.set_down(WAN)).unwrap();
    gateway.wait_for("--wan wan is down");
    place.middle.run(|| Network::open()?.set_up(WAN)).unwrap();
    gateway.wait_for("--wan wan is back");
    assert_eq!(transfer(&place.home, &place.net, NET, 100_000).0, 100_000);

    place.middle.run(|| Network::open()?.delete(LAN)).unwrap();
    gateway.wait_for("--lan lan is down");
    place.connect("lan", LAN, &place.home, HOME).unwrap();
    gateway.wait_for("--lan lan is back");
    assert_eq!(transfer(&place.home, &place.net, NET, 100_000).0, 100_000);
    gateway.stop();
}

#[test]
fn a_stopping_gateway_lets_its_queue_leave() {
    let Some(place) = Place::new() else { return };
    // 100 datagrams of 1042 bytes as frames take 0.83 s at 1 Mbit/s.
    let gateway = Running::start(&place, "1mbit");
    let arrived = thread::scope(|scope| {
        let receiver = place
            .net
            .run(|| {
                let socket = UdpSocket::bind((NET, 5000))?;
                socket.set_read_timeout(Some(Duration::from_secs(3)))?;
                Ok(socket)
            })
            .unwrap();
        let count = scope.spawn(move || {
            (0..100)
                .take_while(|_| receiver.recv(&mut [0; 2000]).is_ok())
                .count()
        });
        place
            .home
            .run(|| {
                let socket = UdpSocket::bind((HOME, 0))?;
                // The first asks for the address; the rest must not overtake the answer.
                socket.send_to(&[0; 1000], (NET, 5000))?;
                thread::sleep(Duration::from_millis(100));
                for _ in 1..100 {
                    socket.send_to(&[0; 1000], (NET, 5000))?;
                }
                Ok(())
            })
            .unwrap();
        thread::sleep(Duration::from_millis(100));
        assert!(gateway.stop().contains("nothing left behind"));
        count.join().unwrap()
    });
    assert_eq!(arrived, 100);
}

#[test]
fn large_frames_and_a_changed_mtu_are_carried() {
    let Some(place) = Place::new() else { return };
    let gateway = Running::start(&place, "1gbit");
    // The ports were opened for 1500 bytes.
    for (host, index) in [(&place.home, LAN), (&place.net, WAN)] {
        for netns in [&place.middle, host] {
            netns.run(|| Network::open()?.set_mtu(index, 9000)).unwrap();
        }
    }
    assert_eq!(
        transfer(&place.home, &place.net, NET, 3_000_000).0,
        3_000_000
    );
    let stats = gateway.stats.clone();
    gateway.stop();
    let up = stats.latest().up.data;
    assert!(up.bytes / up.packets > 8000, "{up:?}");
    assert_eq!(stats.latest().losses, Default::default());
}

#[test]
fn a_frame_too_long_for_the_other_side_is_lost_and_counted() {
    let Some(place) = Place::new() else { return };
    place
        .home
        .run(|| Network::open()?.set_mtu(LAN, 9000))
        .unwrap();
    place
        .middle
        .run(|| Network::open()?.set_mtu(LAN, 9000))
        .unwrap();
    let gateway = Running::start(&place, "1gbit");
    let received = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&place.net, 2));
        thread::sleep(Duration::from_millis(100));
        place
            .home
            .run(|| {
                let mut port = Port::open("eth").unwrap();
                for (number, len) in [(1, 60), (2, 5000), (3, 60)] {
                    port.send(&numbered(number, len));
                }
                port.flush()
            })
            .unwrap();
        receiver.join().unwrap()
    });
    assert_eq!(received, [numbered(1, 60), numbered(3, 60)]);
    let stats = gateway.stats.clone();
    gateway.stop();
    assert_eq!(stats.latest().losses.wan.too_long, 1);
}

#[test]
fn tags_and_frames_of_any_protocol_pass_unchanged_in_both_directions() {
    let Some(place) = Place::new() else { return };
    let gateway = Running::start(&place, "1gbit");
    let mut tagged = numbered(1, 100);
    tagged[12..20].copy_from_slice(&[0x81, 0, 0x60, 5, 0x88, 0xb5, 1, 1]);
    let mut twice = numbered(2, 100);
    twice[12..24].copy_from_slice(&[0x88, 0xa8, 0, 9, 0x81, 0, 0, 5, 0x88, 0xb5, 2, 2]);
    let frames = [tagged, twice, numbered(3, 60), numbered(4, 1514)];
    for (from, to) in [(&place.home, &place.net), (&place.net, &place.home)] {
        let received = thread::scope(|scope| {
            let receiver = scope.spawn(|| receive(to, frames.len()));
            thread::sleep(Duration::from_millis(100));
            from.run(|| {
                let mut port = Port::open("eth").unwrap();
                for frame in &frames {
                    port.send(frame);
                }
                port.flush()
            })
            .unwrap();
            receiver.join().unwrap()
        });
        assert_eq!(received, frames);
    }
    gateway.stop();
}

#[test]
fn nothing_is_lost_below_capacity_and_nothing_comes_back() {
    const FRAMES: u32 = 20_000;
    let Some(place) = Place::new() else { return };
    let gateway = Running::start(&place, "10gbit");
    let received = thread::scope(|scope| {
        let receiver = scope.spawn(|| receive(&place.net, FRAMES as usize));
        thread::sleep(Duration::from_millis(100));
        place
            .home
            .run(|| {
                let mut port = Port::open("eth").unwrap();
                for first in (0..FRAMES).step_by(20) {
                    for number in first..first + 20 {
                        port.send(&numbered(number, 60));
                    }
                    port.flush()?;
                    // 20 000 a second at most, so that a busy machine has 0.2 s to empty a ring.
                    thread::sleep(Duration::from_millis(1));
                }
                let mut back = 0;
                port.receive(usize::MAX, &mut |frame| {
                    back += u32::from(is_numbered(frame))
                })?;
                assert_eq!(back, 0);
                Ok(())
            })
            .unwrap();
        receiver.join().unwrap()
    });
    let expected: Vec<_> = (0..FRAMES).map(|number| numbered(number, 60)).collect();
    assert_eq!(received.len(), expected.len());
    assert!(received == expected, "in order and unchanged");
    gateway.stop();
}

const EXPERIMENTAL: [u8; 2] = [0x88, 0xb5];

/// A frame that no host answers.
fn numbered(number: u32, len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    frame[..12].copy_from_slice(&[2, 9, 9, 9, 9, 9, 2, 8, 8, 8, 8, 8]);
    frame[12..14].copy_from_slice(&EXPERIMENTAL);
    frame[20..24].copy_from_slice(&number.to_be_bytes());
    frame
}

fn is_numbered(frame: &[u8]) -> bool {
    frame[..6] == [2, 9, 9, 9, 9, 9]
}

/// Waits for so many numbered frames, at most five seconds.
fn receive(netns: &Netns, count: usize) -> Vec<Vec<u8>> {
    netns
        .run(|| {
            let mut port = Port::open("eth").unwrap();
            let mut frames = Vec::new();
            let start = Instant::now();
            while frames.len() < count && start.elapsed() < Duration::from_secs(5) {
                asymq_gateway::poll(
                    [Some(port.as_fd())],
                    Some(asymq_core::Duration::from_millis(50)),
                )?;
                port.receive(1024, &mut |frame| {
                    if is_numbered(frame) {
                        frames.push(frame.to_vec());
                    }
                })?;
            }
            Ok(frames)
        })
        .unwrap()
}

#[test]
fn a_signal_stops_it_and_a_stopped_gateway_gives_offloads_back() {
    let Some(place) = Place::new() else { return };
    let gro = |on| {
        place
            .middle
            .run(|| set_feature("wan", Feature::Gro, on))
            .unwrap()
    };
    gro(true);
    let gateway = Running::start(&place, "1mbit");
    gateway.wait_for("--wan wan: switched GRO off");
    gateway.stop.on_signals().unwrap();
    signal_hook::low_level::raise(signal_hook::consts::SIGTERM).unwrap();
    gateway.wait_for("stopped, nothing left behind");
    gateway.thread.join().unwrap();
    assert!(gro(true), "GRO was on again");
}

#[test]
fn what_cannot_be_bridged_is_refused_with_the_flag_and_the_reason() {
    let Some(place) = Place::new() else { return };
    let refused = |lan: &str, wan: &str| {
        let config = GatewayConfig {
            lan: lan.into(),
            wan: wan.into(),
            up: "1mbit".parse().unwrap(),
            down: "1mbit".parse().unwrap(),
            overhead: "".parse().unwrap(),
            discipline: Config::DropTail {
                limit: Limit::Packets(50),
            },
        };
        place
            .middle
            .run(|| Ok(Gateway::open(&config).unwrap_err().to_string()))
            .unwrap()
    };
    assert_eq!(
        refused("lan", "lan"),
        "--wan lan: the same interface as --lan; a bridge needs two"
    );
    assert_eq!(
        refused("eth7", "wan"),
        "--lan eth7: no such interface; there are lo, lan, wan"
    );
    assert_eq!(
        refused("lan", "lo"),
        "--wan lo: not an Ethernet interface; a bridge needs whole Ethernet frames"
    );
}

#[test]
fn a_port_shows_frames_as_they_would_be_on_a_wire() {
    let Some(place) = Place::new() else { return };
    // What a gateway receives from a host with TSO, seen by a port between two gateways' places.
    let frames = place
        .middle
        .run(|| {
            let mut lan = Port::open("lan").unwrap();
            let mut wan = Port::open("wan").unwrap();
            let mut frames: Vec<Vec<u8>> = Vec::new();
            let sum = thread::scope(|scope| {
                let transfer = scope.spawn(|| transfer(&place.home, &place.net, NET, 1_000_000));
                while !transfer.is_finished() {
                    lan.receive(64, &mut |frame| {
                        frames.push(frame.to_vec());
                        wan.send(frame);
                    })?;
                    wan.flush()?;
                    wan.receive(64, &mut |frame| {
                        frames.push(frame.to_vec());
                        lan.send(frame);
                    })?;
                    lan.flush()?;
                }
                io::Result::Ok(transfer.join().unwrap().0)
            })?;
            assert_eq!(sum, 1_000_000);
            assert_eq!(lan.losses(), Default::default());
            Ok(frames)
        })
        .unwrap();
    let tcp: Vec<&Vec<u8>> = frames
        .iter()
        .filter(|frame| frame[12..14] == [8, 0] && frame[23] == 6)
        .collect();
    // 1 MB in segments of at most 1448 bytes.
    assert!(tcp.len() > 690, "{}", tcp.len());
    for frame in tcp {
        assert!(frame.len() <= 1514, "{}", frame.len());
        let len = usize::from(u16::from_be_bytes([frame[16], frame[17]]));
        let ip = &frame[14..14 + len];
        assert_eq!(sum(&ip[..20], 0), 0xffff, "IP header");
        let pseudo = 6 + (len as u32 - 20);
        let addresses = sum(&ip[12..20], pseudo);
        assert_eq!(sum(&ip[20..], addresses.into()), 0xffff, "TCP checksum");
    }
}

/// RFC 1071, word by word.
fn sum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = start;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
