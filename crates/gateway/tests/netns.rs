//! The gateway over real interfaces: `home - lan|gateway|wan - net`, joined by veth pairs whose
//! hosts leave segmentation and checksums to their interfaces. Needs root; says so and passes
//! otherwise.

mod common;

use asymq_gateway::net::{Feature, Netns, Network, set_feature};
use asymq_gateway::{Gateway, GatewayConfig, PacketIo, Port};
use common::{HOME, LAN, NET, Place, Running, WAN, droptail, transfer};
use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn tcp_of_hosts_with_offloads_passes_both_ways_and_the_uplink_is_shaped() {
    let Some(place) = Place::new() else { return };
    let gateway = Running::start(&place, "20mbit");
    let up = transfer(&place.home, &place.net, NET, 5_000_000);
    assert_eq!(up.bytes, 5_000_000);
    // 5 MB at 20 Mbit/s last 2 s, headers apart.
    assert!(up.took > Duration::from_secs(2), "{up:?}");
    let down = transfer(&place.net, &place.home, HOME, 20_000_000);
    assert_eq!(down.bytes, 20_000_000);
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
    assert_eq!(
        transfer(&place.home, &place.net, NET, 100_000).bytes,
        100_000
    );

    place.middle.run(|| Network::open()?.set_down(WAN)).unwrap();
    gateway.wait_for("--wan wan is down");
    place.middle.run(|| Network::open()?.set_up(WAN)).unwrap();
    gateway.wait_for("--wan wan is back");
    assert_eq!(
        transfer(&place.home, &place.net, NET, 100_000).bytes,
        100_000
    );

    place.middle.run(|| Network::open()?.delete(LAN)).unwrap();
    gateway.wait_for("--lan lan is down");
    place.connect("lan", LAN, &place.home, HOME).unwrap();
    gateway.wait_for("--lan lan is back");
    assert_eq!(
        transfer(&place.home, &place.net, NET, 100_000).bytes,
        100_000
    );
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
        transfer(&place.home, &place.net, NET, 3_000_000).bytes,
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
        let port = open(&place.net);
        let receiver = scope.spawn(|| receive(port, 2));
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
            let port = open(to);
            let receiver = scope.spawn(|| receive(port, frames.len()));
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
        let port = open(&place.net);
        let receiver = scope.spawn(|| receive(port, FRAMES as usize));
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

/// A port that receives from now on.
fn open(netns: &Netns) -> Port {
    netns.run(|| Ok(Port::open("eth").unwrap())).unwrap()
}

/// Waits for so many numbered frames, at most five seconds.
fn receive(mut port: Port, count: usize) -> Vec<Vec<u8>> {
    let mut frames = Vec::new();
    let start = Instant::now();
    while frames.len() < count && start.elapsed() < Duration::from_secs(5) {
        let wait = Some(asymq_core::Duration::from_millis(50));
        asymq_gateway::poll([Some(port.as_fd())], wait).unwrap();
        let mut keep = |frame: &[u8]| {
            if is_numbered(frame) {
                frames.push(frame.to_vec());
            }
        };
        port.receive(1024, &mut keep).unwrap();
    }
    frames
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
            link: droptail("1mbit"),
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
                io::Result::Ok(transfer.join().unwrap().bytes)
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
