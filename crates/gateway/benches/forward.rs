//! Frames per CPU second that the gateway forwards through veth, by frame size and method of sending.
//!
//! A generator in its own namespace sends TCP segments. The gateway runs AQ on one thread, at a rate that the frames
//! never reach. `schedstat` reports the CPU time of that thread. The time includes kernel work in the thread's context,
//! such as the reception of each frame at the far host. The far interface counts the arriving frames. Needs root. The
//! argument is the rate in frames per second; 0 means as fast as possible.

use asymq_core::catalog::{Params, Place, Standard, resolve};
use asymq_core::units::{Limit, Rate};
use asymq_gateway::net::{Netns, Network, VethEnd};
use asymq_gateway::{
    Gateway, GatewayConfig, HostOptions, LinkConfig, Losses, PacketIo, Port, STANDARD, Stage, Stop,
};
use std::fs;
use std::io;
use std::os::fd::AsFd;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

fn main() {
    // Ignores the arguments of `cargo bench`.
    let rate = std::env::args().filter_map(|arg| arg.parse().ok()).next();
    for send in ["af-packet", "af-xdp"] {
        for len in [60, 576, 1514] {
            measure(rate.unwrap_or(100_000), len, send);
        }
    }
}

fn measure(rate: u64, len: usize, send: &str) {
    let Ok(middle) = Netns::new() else {
        println!("needs root: no network namespace can be made");
        return;
    };
    let (home, net) = (Netns::new().unwrap(), Netns::new().unwrap());
    connect(&middle, &home, "lan", 11).unwrap();
    connect(&middle, &net, "wan", 12).unwrap();
    let stop = Stop::new().unwrap();
    let (ready, started) = mpsc::channel();
    thread::scope(|scope| {
        let (stop_it, middle) = (stop.clone(), &middle);
        let gateway = scope.spawn(move || {
            middle.run(|| {
                let host = HostOptions {
                    send: send.parse().unwrap(),
                    ..HostOptions::default()
                };
                let mut gateway = Gateway::open(STANDARD, &config(), &host).unwrap();
                gateway.set_log(|_| {});
                ready.send(gateway.stats()).unwrap();
                let start = cpu();
                gateway.run(&stop_it).unwrap();
                Ok(cpu() - start)
            })
        });
        let stats = started.recv().unwrap();
        let sent = home.run(|| generate(rate, len)).unwrap();
        thread::sleep(Duration::from_millis(100));
        stop.request();
        let nanos = gateway.join().unwrap().unwrap();
        let arrived = net.run(|| Ok(received())).unwrap();
        let per_second = arrived as f64 * 1e9 / nanos as f64;
        println!(
            "{send:>9}, {len:>4} bytes: sent {sent}, arrived {arrived}, {per_second:.0} frames and {:.0} Mbit \
             per CPU-second ({:.0} ns each)",
            per_second * len as f64 * 8e-6,
            1e9 / per_second,
        );
        let last = stats.latest();
        let drops = last.up.ack.dropped;
        if drops > 0 || last.losses.lan != Losses::default() {
            println!("  dropped in the queue {drops}, lost {:?}", last.losses);
        }
    });
}

fn config() -> GatewayConfig {
    let rate: Rate = "100gbit".parse().unwrap();
    let place = Place {
        link: rate,
        reverse: Some(rate),
        limit: Limit::Packets(20_000),
    };
    let none = Params::new();
    let aq = resolve(&Standard, "aq", &none, &none, place).unwrap();
    GatewayConfig {
        lan: "lan".into(),
        wan: "wan".into(),
        link: LinkConfig {
            up: rate,
            down: Some(rate),
            auto: [None; 2],
            rate_probe: None,
            overhead: "".parse().unwrap(),
            uplink: Stage::Queue(aq),
            downlink: Stage::Direct,
        },
    }
}

fn connect(middle: &Netns, host: &Netns, name: &'static str, index: u32) -> io::Result<()> {
    let end = |name, side| VethEnd {
        name,
        index,
        mac: [2, 0, 0, 0, side, index as u8],
    };
    middle.run(|| {
        let mut network = Network::open()?;
        network.add_veth(end(name, 0), end("eth", 1), host.as_fd())?;
        network.set_up(index)
    })?;
    host.run(|| Network::open()?.set_up(index))
}

/// Sends for three seconds; returns the number of frames.
fn generate(rate: u64, len: usize) -> io::Result<u64> {
    const BATCH: u64 = 64;
    let mut port = Port::open("eth").unwrap();
    let frame = segment(len);
    let start = Instant::now();
    let mut sent = 0;
    while start.elapsed() < Duration::from_secs(3) {
        let due = match rate {
            0 => u64::MAX,
            rate => (start.elapsed().as_secs_f64() * rate as f64) as u64,
        };
        if sent + BATCH > due {
            thread::sleep(Duration::from_micros(50));
            continue;
        }
        for _ in 0..BATCH {
            port.send(&frame);
        }
        port.flush()?;
        sent += BATCH;
    }
    Ok(sent - port.losses().not_sent)
}

/// A TCP segment in a frame of `len` bytes; with 60 bytes, a pure ACK.
fn segment(len: usize) -> Vec<u8> {
    let mut frame = vec![0; len];
    let packet = if len == 60 { 40 } else { len as u16 - 14 };
    frame[..12].copy_from_slice(&[2, 0, 0, 0, 9, 9, 2, 0, 0, 0, 8, 8]);
    frame[12..14].copy_from_slice(&[8, 0]);
    frame[14] = 0x45;
    frame[16..18].copy_from_slice(&packet.to_be_bytes());
    frame[22..24].copy_from_slice(&[64, 6]);
    frame[26..34].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    frame[34..38].copy_from_slice(&[0x10, 0x92, 0x13, 0x88]);
    frame[46..48].copy_from_slice(&[0x50, 0x10]);
    frame
}

/// Nanoseconds for which the calling thread has run on a CPU.
fn cpu() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse().unwrap()
}

/// Number of frames received by the interface of the calling thread's namespace.
fn received() -> u64 {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    let line = table
        .lines()
        .find(|line| line.trim().starts_with("eth:"))
        .unwrap();
    line.split_whitespace().nth(2).unwrap().parse().unwrap()
}
