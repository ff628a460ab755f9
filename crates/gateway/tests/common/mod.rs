//! Hosts and a gateway, `home - lan|gateway|wan - net`, connected by veth pairs.
#![allow(dead_code, reason = "every test program uses a part of it")]

pub(crate) mod checksums;
pub(crate) mod disciplines;
pub(crate) mod wait;
pub(crate) mod wire;

use asymq_core::catalog::{Build, Config, Standard};
use asymq_core::units::{Duration, Rate};
use asymq_gateway::net::{Feature, Netns, Network, VethEnd, set_feature};
use asymq_gateway::{
    Changer, Frame, Gateway, GatewayConfig, HostOptions, LinkConfig, Shared, Snapshot, Stage, Stop,
};
use disciplines::discipline;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use wait::{DEADLINE, wait_for};

pub(crate) struct Place {
    pub(crate) middle: Netns,
    pub(crate) home: Netns,
    pub(crate) net: Netns,
}

pub(crate) const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub(crate) const NET: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Index of `lan` and of its peer at home; [`WAN`]: of `wan` and of its peer at the net.
pub(crate) const LAN: u32 = 11;
pub(crate) const WAN: u32 = 12;

impl Place {
    /// Adds a line between two gateways, with the ends `near` and `far`.
    pub(crate) fn add_line(&self) {
        let end = |name, index, mac| VethEnd {
            name,
            index,
            mac: [2, 0, 0, 0, mac, index as u8],
        };
        let added = self.middle.run(|| {
            let mut network = Network::open()?;
            let (near, far) = (end("near", 13, 3), end("far", 14, 4));
            network.add_veth(near, far, self.middle.as_fd())?;
            network.set_up(13)?;
            network.set_up(14)
        });
        added.unwrap();
    }

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

/// Runs `ip` of iproute2 in the thread's namespace.
pub(crate) fn ip(args: &str) -> io::Result<()> {
    let output = Command::new("ip").args(args.split(' ')).output()?;
    match output.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )),
    }
}

pub(crate) fn droptail(up: &str) -> LinkConfig {
    let (up, down) = (up.parse().unwrap(), "1gbit".parse().unwrap());
    LinkConfig {
        up,
        down: Some(down),
        auto: [None; 2],
        rate_probe: None,
        overhead: "".parse().unwrap(),
        uplink: Stage::Queue(discipline("droptail", up, down, 1000)),
        downlink: Stage::Direct,
    }
}

/// A gateway that shapes the uplink with this discipline, and the downlink with DropTail of 60 packets.
pub(crate) fn shaped(up: Rate, down: Rate, uplink: Config) -> GatewayConfig {
    GatewayConfig {
        lan: "lan".into(),
        wan: "wan".into(),
        link: LinkConfig {
            up,
            down: Some(down),
            auto: [None; 2],
            rate_probe: None,
            overhead: "".parse().unwrap(),
            uplink: Stage::Queue(uplink),
            downlink: Stage::Queue(discipline("droptail", down, up, 60)),
        },
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
        Self::with_catalog(place, &Standard, config)
    }

    pub(crate) fn with_catalog(
        place: &Place,
        catalog: &'static dyn Build<Frame>,
        config: GatewayConfig,
    ) -> Self {
        let stop = Stop::new().unwrap();
        let log = Arc::<Mutex<Vec<String>>>::default();
        let (ready, started) = mpsc::channel();
        let thread = thread::spawn({
            let (stop, log) = (stop.clone(), log.clone());
            let netns = place.middle.try_clone().unwrap();
            move || {
                netns.enter().unwrap();
                // Retries: a new process of another test keeps this process's descriptors until `exec`.
                let mut opened = None;
                wait_for("the release of both interfaces", DEADLINE, || {
                    match Gateway::open(catalog, &config, &HostOptions::default()) {
                        Err(error) if error.to_string().contains("another gateway holds it") => {}
                        gateway => opened = Some(gateway.unwrap()),
                    }
                    opened.is_some()
                });
                let mut gateway = opened.unwrap();
                gateway.set_log(move |line| {
                    eprintln!("gateway: {line}");
                    log.lock().unwrap().push(line.into());
                });
                // Shortens the interval, because tests wait for values in snapshots.
                gateway.set_report_interval(Duration::from_millis(20));
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

    /// Waits until the gateway logs a line with this text.
    #[track_caller]
    pub(crate) fn hear(&self, words: &str) {
        let what = format!("'{words}' of the gateway");
        wait_for(&what, DEADLINE, || self.log().contains(words));
    }

    /// Waits until the latest snapshot meets a condition, and returns it.
    #[track_caller]
    pub(crate) fn wait_for(&self, what: &str, mut like: impl FnMut(&Snapshot) -> bool) -> Snapshot {
        let mut latest = Snapshot::default();
        wait_for(what, DEADLINE, || {
            latest = self.stats.latest();
            like(&latest)
        });
        latest
    }

    pub(crate) fn stop(self) -> String {
        self.stop.request();
        self.thread.join().unwrap();
        self.log.lock().unwrap().join("\n")
    }
}

/// Sends `bytes` over TCP, and waits until all have arrived unchanged; returns their number. Fails if no byte arrives
/// for [`DEADLINE`].
pub(crate) fn transfer(from: &Netns, to: &Netns, address: Ipv4Addr, bytes: usize) -> usize {
    transfer_to(from, to, (address, 5000), bytes)
}

/// Like [`transfer`], to the port `port`.
pub(crate) fn transfer_to(
    from: &Netns,
    to: &Netns,
    address: (Ipv4Addr, u16),
    bytes: usize,
) -> usize {
    let (ready, listening) = mpsc::channel();
    thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            to.run(|| {
                let listener = TcpListener::bind(address)?;
                // Also bounds the wait for a connection.
                socket2::SockRef::from(&listener).set_read_timeout(Some(DEADLINE))?;
                ready.send(()).unwrap();
                let (mut stream, _) = listener.accept()?;
                stream.set_read_timeout(Some(DEADLINE))?;
                let mut all = Vec::new();
                stream.read_to_end(&mut all)?;
                assert!(all.iter().enumerate().all(|(i, &byte)| byte == i as u8));
                Ok(all.len())
            })
        });
        listening.recv().unwrap();
        let sent = from.run(|| {
            let all: Vec<u8> = (0..bytes).map(|i| i as u8).collect();
            let mut stream = TcpStream::connect_timeout(&address.into(), DEADLINE)?;
            stream.set_write_timeout(Some(DEADLINE))?;
            stream.set_read_timeout(Some(DEADLINE))?;
            stream.write_all(&all)?;
            stream.shutdown(Shutdown::Write)?;
            // The receiver closes after it has read all bytes. Buffered bytes may take longer than `DEADLINE`
            // without a fault, so only the receiver checks progress.
            loop {
                match stream.read(&mut [0]) {
                    Err(error)
                        if error.kind() == io::ErrorKind::WouldBlock && !receiver.is_finished() => {
                    }
                    other => return other.map(drop),
                }
            }
        });
        let received = receiver.join().unwrap().unwrap();
        sent.unwrap();
        received
    })
}

/// Settings for tests: one function parses requests, the other gets the settings that the gateway accepts.
pub(crate) struct Requests<R, A>(pub(crate) R, pub(crate) A);

impl<R, A> asymq_gateway::Settings for Requests<R, A>
where
    R: FnMut(&str) -> Result<LinkConfig, String> + Send,
    A: FnMut(&LinkConfig) + Send,
{
    fn request(&mut self, text: &str) -> Result<LinkConfig, String> {
        self.0(text)
    }

    fn read_again(&mut self) -> Result<(LinkConfig, String), String> {
        Err("no file".into())
    }

    fn accept(&mut self, link: &LinkConfig) {
        self.1(link);
    }

    fn in_force(&self) -> String {
        String::new()
    }
}
