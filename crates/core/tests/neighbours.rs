//! A flood by one host takes no share from its neighbours. Their calls lose no packet and wait at most one packet and
//! 5 ms; their uploads keep nine tenths of their share. This holds for any destination of the flood. With forged
//! addresses, it holds after the neighbour has received an answer.

use crate::sent::Sent;
use asymq_core::catalog::{BoxedQdisc, Catalog, Params, Place, Standard, resolve};
use asymq_core::packet::{Flow, Header, Network, Protocol, flags};
use asymq_core::qdisc::{Dequeue, Reason, Sink};
use asymq_core::units::{Duration, Instant, Limit, Rate};

/// Counts the lost packets of the call and of the upload.
#[derive(Default)]
struct Lost {
    call: u64,
    upload: u64,
}

impl Sink<Sent> for Lost {
    fn dropped(&mut self, _: Instant, packet: Sent, _: Reason) {
        self.call += u64::from(packet.header.flow == CALL);
        self.upload += u64::from(packet.header.flow == UPLOAD);
    }
}

const NEIGHBOUR: u64 = 7;
const ATTACKER: u64 = 9;
const SERVER: u64 = 11;
const CALL: Flow = Flow(0x51c3_17aa);
const UPLOAD: Flow = Flow(0x93d1_8e42);

#[derive(Clone, Copy, Debug)]
struct Attack {
    name: &'static str,
    /// Rate of the attack, in percent of the uplink's rate.
    percent: u64,
    len: u32,
    /// Number of flows of the attack; 0 means a new flow with each packet.
    flows: u64,
    protocol: Protocol,
    flags: u16,
}

const fn attack(name: &'static str, percent: u64, len: u32, flows: u64) -> Attack {
    Attack {
        name,
        percent,
        len,
        flows,
        protocol: Protocol::NonTcp,
        flags: 0,
    }
}

const ATTACKS: &[Attack] = &[
    Attack {
        protocol: Protocol::Tcp,
        flags: flags::SYN,
        ..attack("SYNs", 144, 60, 0)
    },
    Attack {
        protocol: Protocol::Tcp,
        flags: flags::SYN,
        ..attack("SYNs at 0.8", 80, 60, 0)
    },
    attack("datagrams", 168, 1400, 0),
    Attack {
        protocol: Protocol::Tcp,
        flags: flags::ACK,
        ..attack("ACKs", 125, 52, 0)
    },
    attack("20 UDP flows", 90, 1400, 20),
    attack("40 UDP flows", 300, 1400, 40),
    attack("all queues", 300, 1400, 5000),
    attack("all queues, small packets", 150, 60, 5000),
];

fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (number ^ number >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) ^ number >> 32
}

/// Addresses in the attacker's packets.
#[derive(Clone, Copy, Debug)]
enum Aim {
    /// From the attacker's own address to many servers.
    Servers,
    /// From the attacker's own address to the neighbour's server.
    Server,
    /// From a forged address for each flow to the neighbour's server.
    Forged,
}

struct Seen {
    /// Maximum wait of the call's packets in ms.
    wait: f64,
    /// The upload's part of the bytes sent.
    upload: f64,
    lost: Lost,
    /// Maximum backlog in packets.
    backlog: u32,
}

/// Checks the neighbour of a flood: the call's wait and losses (at most `most_lost`), the upload's rate, and the
/// backlog.
fn check(seen: &Seen, rate: &str, what: &str, most_lost: u64) {
    println!(
        "{what}: call {:.1} ms, upload {:.2}, lost {}, backlog {}",
        seen.wait, seen.upload, seen.lost.call, seen.backlog
    );
    let packet = Rate::tx_time(rate.parse().unwrap(), 1500).as_millis_f64();
    assert!(seen.wait <= packet + 5.0, "{what}: {} ms", seen.wait);
    assert!(seen.upload >= 0.45, "{what}: {} of the link", seen.upload);
    let lost = seen.lost.call;
    assert!(lost <= most_lost, "{what}: {lost} lost");
    assert!(seen.backlog <= 500, "{what}: {} packets", seen.backlog);
}

/// Runs an uplink under attack. Another host has a call, and an upload that keeps twenty packets queued. Both start
/// `later` seconds after the attack. The result excludes their first second, or their first three seconds if `later`
/// is 2 or more. The line answers the upload if `answers` is true.
fn under(attack: Attack, case: (Aim, bool, u64), rate: &str, seconds: u64) -> Seen {
    let (aim, answers, later) = case;
    let link: Rate = rate.parse().unwrap();
    let place = Place {
        link,
        reverse: None,
        limit: Limit::Packets(1000),
    };
    let config = resolve(&Standard, "asymq", &Params::new(), &Params::new(), place).unwrap();
    let mut qdisc: BoxedQdisc<Sent> = Standard.build(&config).unwrap();
    let mut seen = Seen {
        wait: 0.0,
        upload: 0.0,
        lost: Lost::default(),
        backlog: 0,
    };
    let interval = link.tx_time(attack.len) * 100 / attack.percent;
    let mut now = Instant::from_nanos(1);
    let start = now + Duration::from_secs(later);
    let second = start + Duration::from_secs(1 + later.min(2));
    let end = second + Duration::from_secs(seconds - 1);
    let (mut free_at, mut attacks_at, mut calls_at) = (now, now, start);
    let (mut count, mut given, mut left) = (0u64, 0u64, 0u64);
    let (mut bytes, mut of_upload) = (0u64, 0u64);
    let give = |qdisc: &mut BoxedQdisc<Sent>, now, hosts, flow, len, kind, lost: &mut Lost| {
        let (protocol, flags) = kind;
        let header = Header {
            arrival: now,
            flow,
            len,
            ip_len: len,
            payload: 0,
            protocol,
            flags,
            ..Header::default()
        };
        let packet = Sent {
            network: Network { hosts, dscp: 0 },
            ..Sent::from(header)
        };
        qdisc.enqueue(now, packet, lost);
    };
    let udp = (Protocol::NonTcp, 0);
    while now < end {
        if now >= attacks_at {
            count += 1;
            let flow = match attack.flows {
                0 => mix(count),
                flows => mix(mix(count) % flows),
            };
            let kind = (attack.protocol, attack.flags);
            give(
                &mut qdisc,
                now,
                match aim {
                    Aim::Servers => [ATTACKER, flow],
                    Aim::Server => [ATTACKER, SERVER],
                    Aim::Forged => [mix(flow), SERVER],
                },
                Flow(flow),
                attack.len,
                kind,
                &mut seen.lost,
            );
            attacks_at = now + interval;
        }
        if now >= calls_at {
            let hosts = [NEIGHBOUR, SERVER + 1];
            give(&mut qdisc, now, hosts, CALL, 200, udp, &mut seen.lost);
            calls_at = now + Duration::from_millis(20);
        }
        // Each enqueue may drop a packet.
        for _ in 0..20 {
            if now < start || given - left - seen.lost.upload >= 20 {
                break;
            }
            give(
                &mut qdisc,
                now,
                [NEIGHBOUR, SERVER],
                UPLOAD,
                1500,
                udp,
                &mut seen.lost,
            );
            given += 1;
        }
        seen.backlog = seen.backlog.max(qdisc.backlog().packets);
        if now >= free_at
            && let Dequeue::Packet(packet) = qdisc.dequeue(now, &mut seen.lost)
        {
            let Header {
                flow, len, arrival, ..
            } = packet.header;
            free_at = now + link.tx_time(len);
            left += u64::from(flow == UPLOAD);
            if answers && flow == UPLOAD {
                let flow = flow.reverse();
                let protocol = Protocol::NonTcp;
                let header = Header {
                    flow,
                    protocol,
                    ..Header::default()
                };
                qdisc.observe(now, &header);
            }
            if now >= second {
                bytes += u64::from(len);
                of_upload += u64::from(len) * u64::from(flow == UPLOAD);
                if flow == CALL {
                    let wait = now.saturating_since(arrival).as_millis_f64();
                    seen.wait = seen.wait.max(wait);
                }
            }
        }
        // While the link is idle, skip to the next arrival.
        let arrival = attacks_at.min(calls_at);
        now = if free_at > now {
            arrival.min(free_at)
        } else {
            arrival
        };
    }
    seen.upload = of_upload as f64 / bytes as f64;
    seen
}

#[test]
fn a_host_that_floods_takes_nothing_from_its_neighbour() {
    for (rate, seconds) in [("2mbit", 6), ("20mbit", 2)] {
        let aims = [
            (Aim::Servers, false, 0),
            (Aim::Server, false, 0),
            (Aim::Server, true, 0),
            (Aim::Forged, true, 0),
        ];
        let cases = ATTACKS.iter().zip(0..).flat_map(|(attack, number)| {
            // Only one of the other address kinds for each attack, to save time.
            let other = aims[1 + number % 3];
            [aims[0], other].map(|aim| (attack, aim))
        });
        for (attack, aim) in cases {
            let seen = under(*attack, aim, rate, seconds);
            let what = format!("{} {aim:?} at {rate}", attack.name);
            check(&seen, rate, &what, 0);
        }
    }
}

#[test]
fn a_flood_of_forged_addresses_starves_no_host_that_comes_later() {
    for (attack, number) in ATTACKS.iter().zip(0..) {
        // Only one of two rates for each attack, to save time.
        let (rate, seconds) = [("2mbit", 4), ("20mbit", 2)][usize::from(number % 4 == 3)];
        for later in [0, 2 - number % 2] {
            let seen = under(*attack, (Aim::Forged, true, later), rate, seconds);
            let what = format!("{} {later} s before at {rate}", attack.name);
            check(&seen, rate, &what, 5);
        }
    }
}
