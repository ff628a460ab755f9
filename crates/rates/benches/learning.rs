//! Time in ns that a learner of rates takes for a packet, and for a step.

use asymq_core::packet::{Flow, Header, Protocol, flags};
use asymq_core::units::{Duration, Instant, Rate, RateRange};
use asymq_rates::{Learner, Observed};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

/// Processes one packet up and one packet down every 12 us at an RTT of 40 ms, with and without timestamps. Both laws
/// step every 10 ms. `no learner` measures the benchmark's own time.
fn learning(criterion: &mut Criterion) {
    const PACKETS: Duration = Duration::from_micros(12);
    let mut learn = |name: &str, between: Duration, flows: u64, stamped: bool, learns: bool| {
        let spins = name.contains("spin");
        criterion.bench_function(&format!("learning/{name}, {flows} flows"), |bench| {
            let rate = |bits| Rate::from_bits_per_sec(bits).expect("a positive constant");
            let rates = [rate(100_000_000), rate(1_000_000_000)];
            let learner = Learner::new([Some(RateRange::ANY); 2], rates);
            let mut learner = black_box(learns.then(|| learner.expect("enough memory")));
            let rtt = Duration::from_millis(40);
            let (mut now, mut steps_at, mut number) = (Instant::ZERO + rtt, Instant::ZERO, 0);
            bench.iter(|| {
                now += between;
                number += 1;
                let flow = 2 * (number % flows);
                let ms = |at: Instant| (at.as_nanos() / 1_000_000) as u32;
                let [own, echo] =
                    [now, Instant::from_nanos(now.as_nanos() - rtt.as_nanos())].map(ms);
                // Half a round trip ago, by the server's clock with its own offset.
                let server = own.wrapping_add(7000 - 20);
                let up = segment(stamped.then_some((own, server)), number);
                let down = segment(stamped.then_some((server, echo)), number);
                let observed = |header: &Header, frame: &[u8]| match spins {
                    true => Some(Observed::Spin(number / 500 % 2 == 0)),
                    false => Observed::read(header, frame, (0, NETWORK_HEADERS as u16)),
                };
                // An upload and a download in one flow: each packet has data.
                let header = |flow, len| Header {
                    ack: (number as u32).wrapping_sub(20).wrapping_mul(1448),
                    payload: 1448,
                    flags: flags::ACK,
                    ..header(flow, len)
                };
                let (there, back) = (header(flow, 1500), header(flow + 1, 1500));
                let (up, down) = (observed(&there, &up), observed(&back, &down));
                let Some(learner) = &mut learner else {
                    black_box((up, down));
                    return;
                };
                learner.leaves(now, &there, up.as_ref());
                learner.comes(now, &back, down.as_ref());
                if now >= steps_at {
                    steps_at = now + Learner::INTERVAL;
                    learner.step(now, [true; 2]);
                }
            });
        });
    };
    for flows in [10, 200] {
        learn("two packets with timestamps", PACKETS, flows, true, true);
        learn("two packets without", PACKETS, flows, false, true);
        learn("two packets that spin", PACKETS, flows, false, true);
    }
    learn("a step and two packets", Learner::INTERVAL, 10, true, true);
    learn("no learner", PACKETS, 10, true, false);
}

fn header(flow: u64, len: u32) -> Header {
    black_box(Header {
        flow: Flow(flow),
        len,
        ip_len: len,
        protocol: Protocol::Tcp,
        ..Header::default()
    })
}

/// Bytes before the TCP header.
const NETWORK_HEADERS: usize = 34;

/// A frame of a segment with these timestamps, up to the end of the TCP header.
fn segment(timestamps: Option<(u32, u32)>, number: u64) -> [u8; NETWORK_HEADERS + 32] {
    let mut frame = [0; NETWORK_HEADERS + 32];
    let tcp = &mut frame[NETWORK_HEADERS..];
    tcp[4..8].copy_from_slice(&(number as u32).wrapping_mul(1448).to_be_bytes());
    tcp[12] = if timestamps.is_some() { 0x80 } else { 0x50 };
    let (stamp, echo) = timestamps.unwrap_or_default();
    tcp[20..24].copy_from_slice(&[1, 1, 8, 10]);
    tcp[24..28].copy_from_slice(&stamp.to_be_bytes());
    tcp[28..32].copy_from_slice(&echo.to_be_bytes());
    black_box(frame)
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(std::time::Duration::from_millis(300))
        .measurement_time(std::time::Duration::from_secs(1))
        .without_plots();
    targets = learning
}
criterion_main!(benches);
