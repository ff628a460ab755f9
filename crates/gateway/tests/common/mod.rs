//! `home - lan|gateway|wan - net`, joined by veth pairs.
#![allow(dead_code)]

use asymq_core::config::Config;
use asymq_core::units::Limit;
use asymq_gateway::net::{Feature, Netns, Network, VethEnd, set_feature};
use asymq_gateway::{Changer, Gateway, GatewayConfig, LinkConfig, Shared, Stage, Stop};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

pub(crate) struct Place {
    pub(crate) middle: Netns,
    pub(crate) home: Netns,
    pub(crate) net: Netns,
}

pub(crate) const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const NET: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Indices of the interfaces towards home and net, in either namespace.
pub(crate) const LAN: u32 = 11;
pub(crate) const WAN: u32 = 12;

impl Place {
    pub(crate) fn new() -> Option<Self> {
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

    pub(crate) fn connect(
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

pub(crate) fn droptail(up: &str) -> LinkConfig {
    LinkConfig {
        up: up.parse().unwrap(),
        down: "1gbit".parse().unwrap(),
        overhead: "".parse().unwrap(),
        uplink: Stage::Queue(Config::DropTail {
            limit: Limit::Packets(1000),
        }),
        downlink: Stage::AtOnce,
    }
}

/// A gateway that runs on a thread of its own.
pub(crate) struct Running {
    pub(crate) stop: Stop,
    pub(crate) stats: Shared,
    pub(crate) changer: Changer,
    pub(crate) log: Arc<Mutex<Vec<String>>>,
    pub(crate) thread: JoinHandle<()>,
}

impl Running {
    pub(crate) fn start(place: &Place, up: &str) -> Self {
        let config = GatewayConfig {
            lan: "lan".into(),
            wan: "wan".into(),
            link: droptail(up),
        };
        Self::with(place, config)
    }

    pub(crate) fn with(place: &Place, config: GatewayConfig) -> Self {
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
                ready.send((gateway.stats(), gateway.changer())).unwrap();
                gateway.run(&stop).unwrap();
            }
        });
        let (stats, changer) = started.recv().unwrap();
        Self {
            stop,
            stats,
            changer,
            log,
            thread,
        }
    }

    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().join("\n")
    }

    pub(crate) fn wait_for(&self, word: &str) {
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

    pub(crate) fn stop(self) -> String {
        self.stop.request();
        self.thread.join().unwrap();
        self.log.lock().unwrap().join("\n")
    }
}

/// A transfer that is over.
#[derive(Debug)]
pub(crate) struct Transferred {
    /// What arrived, and was what was sent.
    pub(crate) bytes: usize,
    pub(crate) took: Duration,
    /// Segments that the sender sent again.
    pub(crate) retransmitted: u32,
}

/// Sends `bytes` over TCP, and waits until all were acknowledged.
pub(crate) fn transfer(from: &Netns, to: &Netns, address: Ipv4Addr, bytes: usize) -> Transferred {
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
        let retransmitted = from
            .run(|| {
                let all: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
                let mut stream = TcpStream::connect((address, 5000))?;
                stream.write_all(&all)?;
                stream.shutdown(Shutdown::Write)?;
                // The end of the other side comes when it has read all.
                stream.read_to_end(&mut Vec::new())?;
                Ok(retransmitted(&stream))
            })
            .unwrap();
        Transferred {
            bytes: receiver.join().unwrap().unwrap(),
            took: start.elapsed(),
            retransmitted,
        }
    })
}

fn retransmitted(stream: &TcpStream) -> u32 {
    // SAFETY: all-zero is a valid tcp_info.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut len = size_of::<libc::tcp_info>() as libc::socklen_t;
    // SAFETY: the pointers are valid for the call, `info` for `len` bytes.
    let answer = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            (&raw mut info).cast(),
            &raw mut len,
        )
    };
    assert_eq!(answer, 0);
    info.tcpi_total_retrans
}
