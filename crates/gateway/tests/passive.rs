//! Round trips and acknowledged bytes that a forwarder reads from passing TCP segments.

use crate::common::{checksums, droptail};
use crate::fake::FakePort;
use asymq_core::Direction;
use asymq_core::catalog::Standard;
use asymq_core::decide::frame::FlowKey;
use asymq_core::packet::flags::{ACK, SYN};
use asymq_core::units::{Duration, Instant};
use asymq_gateway::{Forwarder, LinkConfig, Observer, Ports, Snapshot, Stage};

/// A segment from home, or in the reverse direction, with or without the timestamp option.
fn segment(
    direction: Direction,
    numbers: [u32; 2],
    flags: u16,
    payload: usize,
    stamps: Option<[u32; 2]>,
) -> Vec<u8> {
    let options = if stamps.is_some() { 12 } else { 0 };
    let length = 40 + options + payload;
    let mut frame = vec![0; 14 + length];
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&(length as u16).to_be_bytes());
    frame[23] = 6;
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..38].copy_from_slice(&[0, 7, 0, 80]);
    if direction == Direction::Down {
        frame[26..34].rotate_left(4);
        frame[34..38].rotate_left(2);
    }
    frame[38..42].copy_from_slice(&numbers[0].to_be_bytes());
    frame[42..46].copy_from_slice(&numbers[1].to_be_bytes());
    frame[46] = (((20 + options) / 4) << 4) as u8;
    frame[47] = flags as u8;
    if let Some([value, echo]) = stamps {
        frame[54..58].copy_from_slice(&[1, 1, 8, 10]);
        frame[58..62].copy_from_slice(&value.to_be_bytes());
        frame[62..66].copy_from_slice(&echo.to_be_bytes());
    }
    checksums::fill(&mut frame);
    frame
}

fn millis(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

struct Passing {
    forwarder: Forwarder,
    wan: FakePort,
    lan: FakePort,
}

impl Passing {
    fn new(uplink: Option<Stage>) -> Self {
        let link = droptail("1mbit");
        let link = LinkConfig {
            uplink: uplink.unwrap_or(Stage::Direct),
            ..link
        };
        Self {
            forwarder: Forwarder::new(link.build(&Standard).unwrap(), FlowKey::new([1, 2])),
            wan: FakePort::default(),
            lan: FakePort::default(),
        }
    }

    fn up(
        &mut self,
        at: u64,
        numbers: [u32; 2],
        flags: u16,
        payload: usize,
        stamps: Option<[u32; 2]>,
    ) {
        let frame = segment(Direction::Up, numbers, flags, payload, stamps);
        self.forwarder
            .take(millis(at), Direction::Up, &frame, &mut self.wan);
    }

    fn down(
        &mut self,
        at: u64,
        numbers: [u32; 2],
        flags: u16,
        payload: usize,
        stamps: Option<[u32; 2]>,
    ) {
        let frame = segment(Direction::Down, numbers, flags, payload, stamps);
        self.forwarder
            .take(millis(at), Direction::Down, &frame, &mut self.lan);
    }

    fn snapshot(&mut self, at: u64) -> Snapshot {
        Observer::new(millis(0)).observe(millis(at), &mut self.forwarder, Ports::default())
    }
}

#[track_caller]
fn is_about(found: f64, expected: f64) {
    assert!(
        (found - expected).abs() < 0.01 * expected,
        "{found} for {expected}"
    );
}

#[test]
fn the_first_of_equal_timestamps_counts_until_its_first_echo() {
    let mut passing = Passing::new(None);
    for at in [10, 11, 12] {
        passing.up(at, [1, 1], ACK, 0, Some([500, 7]));
    }
    for at in [60, 300] {
        passing.down(at, [1, 1], ACK, 1000, Some([9, 500]));
    }
    let snapshot = passing.snapshot(400);
    is_about(snapshot.up.ack.round_trip_p50_ms, 50.0);
    is_about(snapshot.up.ack.round_trip_p99_ms, 50.0);
    assert_eq!(snapshot.up.data.round_trip_p99_ms, 0.0);
}

#[test]
fn without_timestamps_handshakes_and_data_are_answered_by_their_acknowledgement() {
    let mut passing = Passing::new(None);
    passing.up(10, [99, 0], SYN, 0, None);
    passing.down(50, [7, 100], SYN | ACK, 0, None);
    passing.up(100, [100, 8], ACK, 1000, None);
    // An old echo, and the echo of this segment.
    passing.down(110, [8, 100], ACK, 0, None);
    passing.down(180, [8, 1100], ACK, 0, None);
    let snapshot = passing.snapshot(400);
    is_about(snapshot.up.other.round_trip_p50_ms, 40.0);
    is_about(snapshot.up.data.round_trip_p50_ms, 80.0);
}

#[test]
fn the_time_in_the_gateways_own_queue_is_part_of_a_round_trip() {
    let mut passing = Passing::new(Some(droptail("1mbit").uplink));
    passing.up(10, [1, 1], ACK, 1196, Some([1, 7]));
    passing.up(10, [1197, 1], ACK, 1196, Some([2, 7]));
    let Passing { forwarder, wan, .. } = &mut passing;
    // The second segment leaves after the first.
    for at in [10, 21] {
        forwarder.transmit(millis(at), Direction::Up, 64, wan);
    }
    passing.down(55, [1, 2393], ACK, 0, Some([9, 2]));
    is_about(passing.snapshot(100).up.data.round_trip_p50_ms, 45.0);
}

#[test]
fn acknowledged_bytes_count_once_with_retransmissions_and_late_segments() {
    let mut passing = Passing::new(None);
    for (ack, total) in [
        (u32::MAX - 500, 0),
        (u32::MAX - 100, 400),
        (900, 1401),
        (900, 1401),
        // The first answer is late, the second in time.
        (100, 1401),
        (1000, 1501),
    ] {
        passing.down(20, [1, ack], ACK, 0, None);
        assert_eq!(passing.snapshot(30).up.acknowledged, total, "{ack}");
    }
    passing.up(40, [1, 70_000], ACK, 0, None);
    passing.up(50, [1, 73_000], ACK, 0, None);
    let snapshot = passing.snapshot(60);
    assert_eq!(
        (snapshot.up.acknowledged, snapshot.down.acknowledged),
        (1501, 3000)
    );
}

#[test]
fn echoes_of_idle_senders_are_not_round_trips() {
    let mut passing = Passing::new(None);
    passing.up(10, [1, 1], ACK, 0, Some([500, 7]));
    passing.down(9_000, [1, 1], ACK, 1000, Some([9, 500]));
    assert_eq!(passing.snapshot(9_100).up.ack.round_trip_p99_ms, 0.0);
}
