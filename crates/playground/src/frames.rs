//! Data for the page's drawing, as plain numbers.
//!
//! A queue in a frame is `total, shown, on the link, packet ...` in 16 bits each. `total` packets are queued, and the
//! frame contains `shown` of them, in order of arrival. `on the link` is the packet in transmission, or 0. A packet's
//! upper two bits are its traffic class (0 ACK, 1 data, 2 other). The lower bits are its bytes, at least 1.

use asymq_core::packet::{Header, TrafficClass};
use asymq_scenario::{Direction, Series};
use asymq_sim::Steps;

/// Maximum number of a queue's packets in a frame; a page has fewer pixels.
const MOST_SHOWN: usize = 1000;

/// Bits of a packet's length.
const LEN_BITS: u32 = 14;

fn packet(header: &Header) -> u16 {
    let len = header.len.clamp(1, (1 << LEN_BITS) - 1) as u16;
    (header.traffic_class() as u16) << LEN_BITS | len
}

/// Appends the current state of both queues, the uplink's first.
pub(crate) fn record_queues(steps: &Steps<'_>, frames: &mut Vec<u16>) {
    for direction in [Direction::Up, Direction::Down] {
        let start = frames.len();
        let sent = steps.transmitted(direction);
        frames.extend([0, 0, sent.as_ref().map_or(0, packet)]);
        let mut total = 0_usize;
        steps.waiting(direction, |header| {
            if total < MOST_SHOWN {
                frames.push(packet(header));
            }
            total += 1;
        });
        frames[start] = total.try_into().unwrap_or(u16::MAX);
        frames[start + 1] = total.min(MOST_SHOWN) as u16;
    }
}

pub(crate) const SAMPLE: usize = 8;

/// Appends the last `intervals` of the time series as one sample. For the uplink and then for the downlink, the sample
/// holds the used share and the share used by TCP data. Then come the longest waits in ms: of ACKs, data and other
/// packets at the uplink, and of other packets at the downlink. With a probe, the waits of other packets are the
/// probe's waits, including modems.
pub(crate) fn record_sample(
    steps: &Steps<'_>,
    series: &Series,
    intervals: usize,
    samples: &mut Vec<f32>,
) {
    let last = |values: &[f64]| {
        let last = &values[values.len().saturating_sub(intervals)..];
        (last.iter().sum::<f64>() / intervals as f64) as f32
    };
    let [up, down] =
        [Direction::Up, Direction::Down].map(|direction| steps.longest_sojourns(direction));
    let ms = |waits: asymq_core::Duration| waits.as_secs_f64() as f32 * 1000.0;
    let [other_up, other_down] =
        [(Direction::Up, &up), (Direction::Down, &down)].map(|(way, at_queue)| {
            let probe = steps.longest_probe(way);
            ms(probe.unwrap_or_else(|| at_queue.of(TrafficClass::Other)))
        });
    let sample: [f32; SAMPLE] = [
        last(&series.up),
        last(&series.data_up),
        last(&series.down),
        last(&series.data_down),
        ms(up.of(TrafficClass::Ack)),
        ms(up.of(TrafficClass::Data)),
        other_up,
        other_down,
    ];
    samples.extend(sample);
}
