//! Runs QUIC stacks' senders, for comparison with asymq's: HyStart++ of `quiche` and `tquic`, BBRv3 of `noq-proto`.
//!
//! `hystart quiche|tquic` reads one ACK per line, `ack end nanoseconds`, and prints the phase after it. `bbr3` reads
//! one setting per line, `bits-per-second rtt buffer loss duration warmup seed` (times in ns, losses per million). It
//! prints the share of the link, the median sojourn time in ms, and the number of dropped packets.

extern crate alloc;

#[allow(dead_code, unused_imports, unreachable_pub, clippy::all)]
mod congestion;
#[allow(dead_code)]
mod connection;
mod link;
#[allow(dead_code)]
mod quiche;
#[allow(dead_code, unused_imports, unused_variables)]
#[path = "tquic/hystart_plus_plus.rs"]
mod tquic;

use connection::RttEstimator;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

fn main() -> std::io::Result<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["hystart", name @ ("quiche" | "tquic")] => {
            let mut quiche = quiche::Phases::new();
            let mut tquic = tquic::HystartPlusPlus::new(true);
            let mut last = Duration::MAX;
            each_line(|line| {
                let [ack, end, rtt] = [line[0], line[1], line[2]];
                // quiche and tquic count the RTT of the ACK that ends a round in this round, asymq in the next. Each
                // RTT is therefore passed with the following ACK.
                let rtt = std::mem::replace(&mut last, Duration::from_nanos(rtt));
                if name == "quiche" {
                    return quiche.on_ack(ack, end, rtt).to_string();
                }
                // A round ends with the ACK of all data sent before it. TCP's numbers are one higher than QUIC's.
                tquic.on_sent(end - 1);
                tquic.on_ack(ack, 1, rtt);
                tquic.end_ack();
                match (tquic.has_exited(), tquic.in_conservative_slow_start()) {
                    (true, _) => "2".into(),
                    (false, css) => u8::from(css).to_string(),
                }
            })
        }
        ["bbr3"] => each_line(|line| {
            let setting = link::Setting {
                bits_per_second: line[0],
                rtt: line[1],
                buffer: line[2] as usize,
                loss: line[3],
                duration: line[4],
                warmup: line[5],
                seed: line[6],
            };
            let mut outcome = link::run(&setting);
            let seconds = (setting.duration - setting.warmup) as f64 / 1e9;
            let share = outcome.sent_over_link as f64 * 8.0 / setting.bits_per_second as f64 / seconds;
            outcome.sojourns.sort_unstable();
            let median = outcome.sojourns.get(outcome.sojourns.len() / 2).copied();
            format!("{share:.4} {:.2} {}", median.unwrap_or(0) as f64 / 1e6, outcome.dropped)
        }),
        _ => Err(std::io::Error::other("hystart quiche, hystart tquic or bbr3")),
    }
}

fn each_line(mut answer: impl FnMut(&[u64]) -> String) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let numbers = line?.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>();
        writeln!(out, "{}", answer(&numbers.map_err(std::io::Error::other)?))?;
        out.flush()?;
    }
    Ok(())
}
