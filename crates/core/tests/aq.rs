//! AQ's ratio, compared with the paper's equations (AQ, sec. 3), calculated by hand.

use crate::sent::Sent;
use asymq_core::catalog::{BoxedQdisc, Catalog, Params, Place, Standard, resolve};
use asymq_core::packet::{Header, Protocol, flags};
use asymq_core::qdisc::{Dequeue, Discard};
use asymq_core::units::{Duration, Instant, Limit, Rate};

const INTERVAL: Duration = Duration::from_millis(200);

struct Aq {
    qdisc: BoxedQdisc<Sent>,
    now: Instant,
}

fn rate(bits: u64) -> Rate {
    Rate::from_bits_per_sec(bits).unwrap()
}

/// An uplink with a downlink of 10 Mbit/s, and the given parameters.
#[derive(Clone, Copy)]
struct Given {
    up: u64,
    params: &'static [(&'static str, &'static str)],
}

/// 1 Mbit/s without parameters.
const PAPER: Given = Given {
    up: 1_000_000,
    params: &[],
};

fn ack() -> Header {
    Header {
        len: 40,
        ip_len: 40,
        flags: flags::ACK,
        protocol: Protocol::Tcp,
        ..Header::default()
    }
}

fn data() -> Header {
    Header {
        len: 1500,
        ip_len: 1500,
        payload: 1460,
        ..ack()
    }
}

fn udp(len: u32) -> Header {
    Header {
        len,
        ip_len: len,
        protocol: Protocol::NonTcp,
        ..Header::default()
    }
}

impl Aq {
    fn new(given: Given, limit: Limit) -> Self {
        let place = Place {
            link: rate(given.up),
            reverse: Some(rate(10_000_000)),
            limit,
        };
        let params: Params = given.params.iter().copied().collect();
        let config = resolve(&Standard, "aq", &params, &Params::new(), place).unwrap();
        let mut aq = Self {
            qdisc: Standard.build(&config).unwrap(),
            now: Instant::from_nanos(987_654_321),
        };
        // The first call starts the clock.
        aq.qdisc.dequeue(aq.now, &mut Discard);
        aq
    }

    fn probe(&self, name: &str) -> f64 {
        let mut value = f64::NAN;
        self.qdisc.probe(&mut |probed, at| {
            if probed == name {
                value = at.as_f64();
            }
        });
        value
    }

    /// Runs one interval with this many bytes of UDP in each direction. Returns the end of the interval.
    fn interval_with_udp(&mut self, up: u32, down: u32) {
        self.qdisc.enqueue(self.now, udp(up).into(), &mut Discard);
        self.qdisc.observe(self.now, &udp(down));
        self.now += INTERVAL;
        while self.qdisc.dequeue(self.now, &mut Discard) != Dequeue::Empty {}
    }

    fn assert_share(&self, expected: f64) {
        let share = self.probe("data_share");
        assert!((share - expected).abs() < 1e-4, "{share} is not {expected}");
    }
}

/// Data's share by eqs. 7 and 9: `R_D / R_A = (r_c - r_s) / ((1 - r_c r_s) r_s)`.
fn share_by_equation_7(up: f64, down: f64) -> f64 {
    let (r_c, r_s) = (up / down, 40.0 / 1500.0);
    let ratio = (r_c - r_s) / ((1.0 - r_c * r_s) * r_s);
    ratio / (1.0 + ratio)
}

#[test]
fn fifty_places_split_37_to_13_at_one_to_ten() {
    let aq = Aq::new(PAPER, Limit::Packets(50));
    aq.assert_share(0.7339); // 2.757 / 3.757
    assert_eq!(aq.probe("data_limit"), 37.0);
    assert_eq!(aq.probe("ack_limit"), 13.0);
}

#[test]
fn every_class_has_room_for_a_packet_and_the_rest_is_the_buffers() {
    for (limit, data_limit, ack_limit) in [
        (Limit::Packets(1), 1.0, 1.0),
        (Limit::Packets(2), 1.0, 1.0),
        (Limit::Packets(3), 2.0, 1.0), // 3 * 0.73 = 2.2
        (Limit::Bytes(1), 1514.0, 120.0),
        (Limit::Bytes(1700), 1514.0, 186.0), // ACKs' 27 % would leave 1248 for data
        (Limit::Bytes(75_000), 55_039.0, 19_961.0), // 75000 * 0.733855
    ] {
        let aq = Aq::new(PAPER, limit);
        assert_eq!(aq.probe("data_limit"), data_limit, "{limit}");
        assert_eq!(aq.probe("ack_limit"), ack_limit, "{limit}");
    }
}

#[test]
fn measured_udp_moves_the_ratio_by_equations_9_and_10() {
    let mut aq = Aq::new(PAPER, Limit::Packets(50));
    // In 0.2 s 5000 bytes are 200 kbit/s, 25000 are 1 Mbit/s.
    aq.interval_with_udp(5_000, 25_000);
    aq.assert_share(share_by_equation_7(800e3, 9e6));
    aq.interval_with_udp(0, 50_000);
    aq.assert_share(share_by_equation_7(1e6, 8e6));
    aq.interval_with_udp(0, 0);
    aq.assert_share(share_by_equation_7(1e6, 10e6));
}

#[test]
fn a_late_call_measures_over_the_time_that_really_passed() {
    let mut aq = Aq::new(PAPER, Limit::Packets(50));
    aq.qdisc.enqueue(aq.now, udp(25_000).into(), &mut Discard);
    aq.now += INTERVAL * 5;
    aq.qdisc.dequeue(aq.now, &mut Discard);
    aq.assert_share(share_by_equation_7(800e3, 10e6));
}

#[test]
fn the_ratio_holds_still_within_an_interval() {
    let mut aq = Aq::new(PAPER, Limit::Packets(50));
    let before = aq.probe("data_share");
    aq.qdisc.enqueue(aq.now, udp(5_000).into(), &mut Discard);
    aq.now += Duration::from_nanos(INTERVAL.as_nanos() - 1);
    aq.qdisc.dequeue(aq.now, &mut Discard);
    assert_eq!(aq.probe("data_share"), before);
}

#[test]
fn tcp_and_acks_are_no_measured_rate() {
    let mut aq = Aq::new(PAPER, Limit::Packets(50));
    for _ in 0..20 {
        aq.qdisc.enqueue(aq.now, data().into(), &mut Discard);
        aq.qdisc.enqueue(aq.now, ack().into(), &mut Discard);
        aq.qdisc.observe(aq.now, &data());
        aq.qdisc.observe(aq.now, &ack());
    }
    aq.interval_with_udp(0, 0);
    aq.assert_share(share_by_equation_7(1e6, 10e6));
}

#[test]
fn a_measurement_beyond_equation_11_leaves_the_last_valid_ratio() {
    let mut aq = Aq::new(PAPER, Limit::Packets(50));
    aq.interval_with_udp(5_000, 0);
    let valid = share_by_equation_7(800e3, 10e6);
    aq.assert_share(valid);
    // 800 kbit/s of UDP leave 200 kbit/s, but the ACKs of 10 Mbit/s of data need 267 kbit/s (AQ,
    // sec. 4.8). 2 Mbit/s exceed the uplink.
    for bytes in [20_000, 50_000] {
        aq.interval_with_udp(bytes, 0);
        aq.assert_share(valid);
    }
    aq.interval_with_udp(0, 0);
    aq.assert_share(share_by_equation_7(1e6, 10e6));
}

/// Packets of each class that leave the uplink while both classes always have packets queued.
fn served(aq: &mut Aq, packets: u32) -> (u32, u32) {
    let (mut acks, mut datas) = (0, 0);
    for _ in 0..packets {
        aq.qdisc.enqueue(aq.now, ack().into(), &mut Discard);
        aq.qdisc.enqueue(aq.now, data().into(), &mut Discard);
        match aq.qdisc.dequeue(aq.now, &mut Discard) {
            Dequeue::Packet(packet) if packet.header.is_pure_ack() => acks += 1,
            Dequeue::Packet(_) => datas += 1,
            other => panic!("{other:?} though packets wait"),
        }
    }
    (acks, datas)
}

#[test]
fn equal_capacities_lose_no_ack_of_a_full_download() {
    // The ratio is 37.5 to 1 in bytes, 1 to 1 in packets. ACKs get one of the 50 places.
    let equal = Given {
        up: 10_000_000,
        params: &[],
    };
    let mut aq = Aq::new(equal, Limit::Packets(50));
    assert_eq!(aq.probe("ack_limit"), 1.0);
    for _ in 0..10_000 {
        aq.qdisc.enqueue(aq.now, data().into(), &mut Discard);
        aq.qdisc.enqueue(aq.now, data().into(), &mut Discard);
        let Dequeue::Packet(sent) = aq.qdisc.dequeue(aq.now, &mut Discard) else {
            panic!("data waits");
        };
        assert!(!sent.header.is_pure_ack());
        // The download's next data arrives while this ACK is on the link.
        aq.qdisc.enqueue(aq.now, ack().into(), &mut Discard);
        let next = aq.qdisc.dequeue(aq.now, &mut Discard);
        assert_eq!(next, Dequeue::Packet(ack().into()));
    }
}

/// An uplink of 0.256 Mbit/s and a downlink of 10 Mbit/s, for which AQ's Fig. 5 shows the collapse.
const fn beyond_equation_11(params: &'static [(&'static str, &'static str)]) -> Given {
    Given {
        up: 256_000,
        params,
    }
}

#[test]
fn beyond_equation_11_equal_shares_halve_the_uplink() {
    let mut aq = Aq::new(
        beyond_equation_11(&[("beyond-limit", "equal-shares")]),
        Limit::Packets(50),
    );
    assert_eq!(
        (aq.probe("data_limit"), aq.probe("ack_limit")),
        (25.0, 25.0)
    );
    let (acks, datas) = served(&mut aq, 10_000);
    let difference = i64::from(acks) * 40 - i64::from(datas) * 1500;
    assert!(
        difference.abs() <= 1500,
        "{acks} ACKs, {datas} data packets"
    );
}

#[test]
fn beyond_equation_11_starved_acks_wait_for_an_idle_uplink_in_one_place() {
    let mut aq = Aq::new(
        beyond_equation_11(&[("beyond-limit", "starve-acks")]),
        Limit::Packets(50),
    );
    assert_eq!((aq.probe("data_limit"), aq.probe("ack_limit")), (49.0, 1.0));
    assert_eq!(served(&mut aq, 10_000), (0, 10_000));
    // The single ACK leaves when no data is queued.
    while aq.qdisc.backlog().packets > 1 {
        assert_eq!(
            aq.qdisc.dequeue(aq.now, &mut Discard),
            Dequeue::Packet(data().into())
        );
    }
    assert_eq!(
        aq.qdisc.dequeue(aq.now, &mut Discard),
        Dequeue::Packet(ack().into())
    );
}

#[test]
fn measured_data_per_ack_converges_to_the_receivers_ratio() {
    let measured = Given {
        params: &[("data-per-ack", "auto")],
        ..PAPER
    };
    let mut aq = Aq::new(measured, Limit::Packets(50));
    for _ in 0..40 {
        for _ in 0..100 {
            aq.qdisc.observe(aq.now, &data());
            aq.qdisc.observe(aq.now, &data());
            aq.qdisc.enqueue(aq.now, ack().into(), &mut Discard);
        }
        aq.interval_with_udp(0, 0);
    }
    assert!((aq.probe("data_per_ack") - 2.0).abs() < 1e-3);
    // Eqs. 3 and 4 with r_s / 2 = 20 / 1500.
    let (r_c, r_s) = (0.1, 20.0 / 1500.0);
    let ratio = (r_c - r_s) / ((1.0 - r_c * r_s) * r_s);
    aq.assert_share(ratio / (1.0 + ratio));
    // An interval with almost no ACKs does not change the estimate.
    aq.qdisc.observe(aq.now, &data());
    aq.qdisc.enqueue(aq.now, ack().into(), &mut Discard);
    aq.interval_with_udp(0, 0);
    assert!((aq.probe("data_per_ack") - 2.0).abs() < 1e-3);
}

#[test]
fn a_class_over_its_new_limit_takes_no_more_of_the_buffer_than_there_is() {
    let mut aq = Aq::new(PAPER, Limit::Packets(50));
    for _ in 0..50 {
        aq.qdisc.enqueue(aq.now, data().into(), &mut Discard);
    }
    assert_eq!(aq.qdisc.backlog().packets, 37);
    // 600 kbit/s of UDP up: the data class's part of the buffer falls below its backlog.
    aq.qdisc.enqueue(aq.now, udp(15_000).into(), &mut Discard);
    aq.now += INTERVAL;
    for _ in 0..50 {
        aq.qdisc.enqueue(aq.now, ack().into(), &mut Discard);
    }
    aq.assert_share(share_by_equation_7(400e3, 10e6));
    assert!(aq.probe("data_limit") < 37.0);
    assert_eq!(aq.qdisc.backlog().packets, 50);
}
