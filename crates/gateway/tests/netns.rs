//! The gateway over real interfaces: `home - lan|gateway|wan - net`, joined by veth pairs. The hosts leave segmentation
//! and checksums to their interfaces. Tests that need root print a note and pass without it.

use crate::common::disciplines::discipline;
use crate::common::wire::{Tap, numbered, port_and_number, segment, send};
use crate::common::{HOME, LAN, NET, Place, Running, WAN, droptail, ip, transfer};
use asymq_gateway::net::{Feature, Network, set_feature};
use asymq_gateway::{
    Gateway, GatewayConfig, HostOptions, LinkConfig, Losses, PacketIo, Port, STANDARD, Sending,
    Stage,
};
use std::io;
use std::net::Ipv4Addr;
use std::thread;
use std::time::{Duration, Instant};

#[test]
fn tcp_of_hosts_with_offloads_passes_both_ways_and_is_counted() {
    let Some(place) = Place::new() else { return };
    let gateway = Running::start(&place, "20mbit");
    assert_eq!(transfer(&place.home, &place.net, NET, 5_000_000), 5_000_000);
    assert_eq!(
        transfer(&place.net, &place.home, HOME, 20_000_000),
        20_000_000
    );
    let stats = gateway.stats.clone();
    gateway.stop();
    let last = stats.latest();
    assert!(carried_all(last.losses.lan) && carried_all(last.losses.wan));
    assert!(last.up.data.bytes > 5_000_000, "{last:?}");
    assert!(last.down.data.bytes > 20_000_000, "{last:?}");
    for direction in [&last.up, &last.down] {
        assert!(direction.ack.packets > 0, "{last:?}");
    }
}

/// True if every received frame was readable and fitted the outgoing interface. A full ring is accepted, since it may
/// occur on a busy machine.
fn carried_all(losses: Losses) -> bool {
    (losses.malformed, losses.unsegmentable, losses.too_long) == (0, 0, 0)
}

#[test]
fn tcp_in_a_tunnel_of_hosts_with_offloads_passes_whole_and_needs_no_retransmissions() {
    const BYTES: u32 = 5_000_000;
    // The tunnel's MTU minus the IP and TCP headers with timestamps.
    const SEGMENT: u32 = 1450 - 52;
    let Some(place) = Place::new() else { return };
    let (inner_home, inner_net) = ([10, 9, 0, 1].into(), [10, 9, 0, 2].into());
    for checksum in ["udpcsum", "noudpcsum"] {
        let ends = [
            (&place.home, HOME, NET, inner_home),
            (&place.net, NET, HOME, inner_net),
        ];
        for (host, local, remote, inner) in ends {
            if let Err(error) = host.run(|| vxlan(local, remote, inner, checksum)) {
                eprintln!("skipped: no VXLAN here: {error}");
                return;
            }
        }
        let gateway = Running::start(&place, "10gbit");
        let both = [
            transfer(&place.home, &place.net, inner_net, BYTES as usize),
            transfer(&place.net, &place.home, inner_home, BYTES as usize),
        ];
        assert_eq!(both, [BYTES as usize; 2]);
        let stats = gateway.stats.clone();
        gateway.stop();
        let last = stats.latest();
        assert!(carried_all(last.losses.lan) && carried_all(last.losses.wan));
        // Tunnelled packets are in the class `other`.
        for direction in [&last.up, &last.down] {
            let full = f64::from(BYTES / SEGMENT);
            let (packets, bytes) = (direction.other.packets as f64, direction.other.bytes as f64);
            assert!(
                packets >= full && bytes < 1.3 * f64::from(BYTES),
                "{last:?}"
            );
        }
        for host in [&place.home, &place.net] {
            host.run(|| ip("link del vx")).unwrap();
        }
    }
}

/// Makes one end of a VXLAN over the interface `eth` of the thread's namespace.
fn vxlan(local: Ipv4Addr, remote: Ipv4Addr, inner: Ipv4Addr, checksum: &str) -> io::Result<()> {
    ip(&format!(
        "link add vx type vxlan id 7 dev eth dstport 4789 local {local} remote {remote} {checksum}"
    ))?;
    ip(&format!("address add {inner}/24 dev vx"))?;
    ip("link set vx up")
}

#[test]
fn frames_of_a_slow_uplink_are_sent_dropped_or_waiting_and_flows_stay_in_order() {
    const FLOWS: u16 = 3;
    const EACH: u32 = 50;
    let Some(place) = Place::new() else { return };
    for name in ["wrr", "acks-first", "sad"] {
        let config = |up: &str| {
            let (up, down) = (up.parse().unwrap(), "1gbit".parse().unwrap());
            let uplink = Stage::Queue(discipline(name, up, down, 20));
            GatewayConfig {
                lan: "lan".into(),
                wan: "wan".into(),
                link: LinkConfig {
                    up,
                    uplink,
                    ..droptail("1gbit")
                },
            }
        };
        // An ACK takes seconds.
        let gateway = Running::with(&place, config("100bit"));
        let mut tap = Tap::open(&place.net);
        let acks: Vec<_> = (1..=EACH)
            .flat_map(|number| (0..FLOWS).map(move |port| segment(port, number * 1448, 0)))
            .collect();
        send(&place.home, &acks);
        let offered = acks.len() as u64;
        let full = gateway.wait_for("all ACKs at the gateway", |now| {
            now.up.ack.arrived() == offered
        });
        let seen = full.up.ack;
        let waiting = seen.backlog_packets;
        assert!((1..=20).contains(&waiting), "{name}: {full:?}");
        assert!(
            seen.dropped + seen.filtered > 0,
            "{name}: the uplink is slow"
        );

        // The backlog leaves as soon as the link is fast.
        gateway.changer.change(&config("1gbit").link).unwrap();
        let last = gateway.wait_for("an empty queue", |now| {
            now.up.ack.backlog_packets == 0 && now.up.ack.packets > full.up.ack.packets
        });
        let seen = last.up.ack;
        let passed = seen.packets;
        assert_eq!(passed + seen.dropped + seen.filtered, offered, "{name}");
        tap.wait_for(passed as usize);
        assert_eq!(tap.frames.len() as u64, passed, "{name}");
        for flow in 0..FLOWS {
            let arrived = tap
                .frames
                .iter()
                .filter(|frame| port_and_number(frame).0 == flow);
            let numbers: Vec<u32> = arrived
                .clone()
                .map(|frame| port_and_number(frame).1)
                .collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{name}: {numbers:?}");
            if name == "sad" {
                assert_eq!(numbers.last(), Some(&(EACH * 1448)), "the newest survives");
                assert_eq!(seen.dropped, 0, "older ones give way to it");
            } else {
                assert!(arrived.clone().all(|frame| acks.contains(frame)));
            }
        }
        gateway.stop();
    }
}

#[test]
fn an_interface_that_goes_down_or_away_is_survived() {
    let Some(place) = Place::new() else { return };
    let gateway = Running::start(&place, "100mbit");
    let passes = || transfer(&place.home, &place.net, NET, 100_000) == 100_000;
    assert!(passes());

    place.middle.run(|| Network::open()?.set_down(WAN)).unwrap();
    gateway.hear("--wan wan is down");
    place.middle.run(|| Network::open()?.set_up(WAN)).unwrap();
    gateway.hear("--wan wan is back");
    assert!(passes());

    place.middle.run(|| Network::open()?.delete(LAN)).unwrap();
    gateway.hear("--lan lan is down");
    place.connect("lan", LAN, &place.home, HOME).unwrap();
    gateway.hear("--lan lan is back");
    assert!(passes());
    gateway.stop();
}

#[test]
fn a_stopping_gateway_lets_its_queue_leave_for_two_seconds() {
    const DRAIN: Duration = Duration::from_secs(2);
    let Some(place) = Place::new() else { return };
    // 50 frames of 60 bytes take 0.24 s at 100 kbit/s, and four minutes at 100 bit/s.
    for (up, may_be_empty) in [("100kbit", true), ("100bit", false)] {
        let gateway = Running::start(&place, up);
        let mut tap = Tap::open(&place.net);
        let frames: Vec<_> = (1..=50).map(|number| segment(1, number, 0)).collect();
        send(&place.home, &frames);
        gateway.wait_for("all frames at the gateway", |now| {
            now.up.ack.arrived() == 50
        });
        let asked = Instant::now();
        let stats = gateway.stats.clone();
        let log = gateway.stop();
        let took = asked.elapsed();
        let left = stats.latest().up.backlog_packets();
        // If the machine paused, packets may remain, but only after the drain time.
        assert!(left == 0 || took >= DRAIN, "{left} left after {took:?}");
        match left {
            0 => assert!(may_be_empty && log.contains("stopped, the queue is empty")),
            left => assert!(log.contains(&format!("stopped with {left} packets left"))),
        }
        // Passed and remaining packets include IPv6 packets of the hosts.
        let passed = 50usize.saturating_sub(left as usize);
        tap.wait_for(passed);
        assert_eq!(tap.frames, frames[..tap.frames.len()], "{up}: in order");
    }
}

#[test]
fn large_frames_and_a_changed_mtu_are_carried() {
    let Some(place) = Place::new() else { return };
    let gateway = Running::start(&place, "1gbit");
    // The ports were opened with an MTU of 1500 bytes.
    for (host, index) in [(&place.home, LAN), (&place.net, WAN)] {
        for netns in [&place.middle, host] {
            netns.run(|| Network::open()?.set_mtu(index, 9000)).unwrap();
        }
    }
    let mut tap = Tap::open(&place.net);
    let frames = [60, 1514, 9014, 1515, 5000].map(|len| numbered(len as u32, len));
    send(&place.home, &frames);
    tap.wait_for(frames.len());
    assert_eq!(tap.frames, frames);
    assert_eq!(transfer(&place.home, &place.net, NET, 3_000_000), 3_000_000);
    let stats = gateway.stats.clone();
    gateway.stop();
    let losses = stats.latest().losses;
    assert!(carried_all(losses.lan) && carried_all(losses.wan));
}

#[test]
fn how_frames_leave_is_chosen_logged_and_shown() {
    let Some(place) = Place::new() else { return };
    let gateway = Running::start(&place, "1gbit");
    let shown = gateway.wait_for("the ways in a snapshot", |now| now.sending.wan.is_some());
    for (port, way) in [("lan", shown.sending.lan), ("wan", shown.sending.wan)] {
        // The kernel may lack AF_XDP.
        let line = match way.unwrap() {
            Sending::AfXdp => format!("--{port} {port}: sends by af-xdp\n"),
            Sending::AfPacket => format!("--{port} {port}: sends by af-packet (af-xdp: "),
        };
        assert!((gateway.log() + "\n").contains(&line), "{}", gateway.log());
    }
    gateway.stop();
}

#[test]
fn frames_before_the_interface_went_down_are_received_whole() {
    let Some(place) = Place::new() else { return };
    let mut port = place.middle.run(|| Ok(Port::open("lan").unwrap())).unwrap();
    // Frames longer than the port's slots are queued in its socket.
    for netns in [&place.home, &place.middle] {
        netns.run(|| Network::open()?.set_mtu(LAN, 9000)).unwrap();
    }
    let frames = [9014, 60, 5000, 9000].map(|len| numbered(len as u32, len));
    send(&place.home, &frames);
    place.middle.run(|| Network::open()?.set_down(LAN)).unwrap();
    let mut come = Vec::new();
    let mut keep = |frame: &[u8]| {
        if frame[..6] == numbered(0, 60)[..6] {
            come.push(frame.to_vec());
        }
    };
    // Hosts also send frames of their own, such as IPv6 solicitations.
    let error = (0..100).find_map(|_| port.receive(1, &mut keep).err());
    assert_eq!(error.unwrap().kind(), io::ErrorKind::NetworkDown);
    assert_eq!(come, frames);
    assert_eq!(port.losses(), Losses::default());
}

#[test]
fn a_frame_too_long_for_the_other_side_is_lost_and_counted() {
    let Some(place) = Place::new() else { return };
    for netns in [&place.home, &place.middle] {
        netns.run(|| Network::open()?.set_mtu(LAN, 9000)).unwrap();
    }
    let gateway = Running::start(&place, "1gbit");
    let mut tap = Tap::open(&place.net);
    let frames = [(1, 60), (2, 5000), (3, 60)].map(|(number, len)| numbered(number, len));
    send(&place.home, &frames);
    tap.wait_for(2);
    assert_eq!(tap.frames, [numbered(1, 60), numbered(3, 60)]);
    gateway.wait_for("a frame counted as too long", |now| {
        now.losses.wan.too_long == 1
    });
    gateway.stop();
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
        let mut tap = Tap::open(to);
        send(from, &frames);
        tap.wait_for(frames.len());
        assert_eq!(tap.frames, frames);
    }
    gateway.stop();
}

#[test]
fn nothing_is_lost_below_capacity_and_nothing_comes_back() {
    const FRAMES: u32 = 20_000;
    // Maximum number of frames in flight: they fit into every ring, even if its reader wakes late.
    const AT_ONCE: u32 = 200;
    let Some(place) = Place::new() else { return };
    let gateway = Running::start(&place, "10gbit");
    let (mut home, mut net) = (Tap::open(&place.home), Tap::open(&place.net));
    let frames: Vec<_> = (0..FRAMES).map(|number| numbered(number, 60)).collect();
    for some in frames.chunks(AT_ONCE as usize) {
        let before = net.frames.len();
        send(&place.home, some);
        net.wait_for(before + some.len());
    }
    assert!(net.frames == frames, "each once, in order and unchanged");
    assert_eq!(home.poll(), 0);
    gateway.stop();
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
    gateway.hear("--wan wan: disabled GRO");
    gateway.stop.on_signals(&[libc::SIGTERM]).unwrap();
    // SAFETY: the signal has a handler.
    assert_eq!(unsafe { libc::raise(libc::SIGTERM) }, 0);
    gateway.hear("stopped");
    gateway.thread.join().unwrap();
    assert!(gro(true), "GRO was on again");
}

#[test]
fn unfit_interfaces_are_refused_with_flag_and_reason() {
    let Some(place) = Place::new() else { return };
    let refused = |lan: &str, wan: &str| {
        let config = GatewayConfig {
            lan: lan.into(),
            wan: wan.into(),
            link: droptail("1mbit"),
        };
        place
            .middle
            .run(|| {
                Ok(Gateway::open(STANDARD, &config, &HostOptions::default())
                    .err()
                    .unwrap()
                    .to_string())
            })
            .unwrap()
    };
    assert_eq!(
        refused("lan", "lan"),
        "--wan lan: the same interface as --lan; a bridge needs two"
    );
    assert_eq!(
        refused("eth7", "wan"),
        "--lan eth7: no such interface; the interfaces are lo, lan, wan"
    );
    assert_eq!(
        refused("lan", "lo"),
        "--wan lo: not an Ethernet interface; a bridge needs whole Ethernet frames"
    );
}

#[test]
fn a_port_shows_frames_as_they_would_be_on_a_wire() {
    let Some(place) = Place::new() else { return };
    // Superpackets that a gateway receives from a host with TSO.
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
                io::Result::Ok(transfer.join().unwrap())
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

/// Computes the checksum of RFC 1071 word by word.
fn sum(bytes: &[u8], start: u32) -> u16 {
    let mut sum = start;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}
