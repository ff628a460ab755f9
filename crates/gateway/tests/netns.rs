//! The gateway's ports and loop over real interfaces. Needs root; says so and passes otherwise.

use asymq_gateway::net::{Feature, Netns, Network, VethEnd, set_feature};
use asymq_gateway::{PacketIo, Port};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Two hosts, each with a veth whose other end is in the middle. All offloads are on.
struct Bench {
    middle: Netns,
    home: Netns,
    net: Netns,
}

const HOME: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const NET: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);

impl Bench {
    fn new() -> Option<Self> {
        let bench = match Netns::new() {
            Ok(middle) => Self {
                middle,
                home: Netns::new().unwrap(),
                net: Netns::new().unwrap(),
            },
            Err(error) => {
                eprintln!("skipped: cannot make a network namespace: {error}");
                return None;
            }
        };
        bench.connect("lan", &bench.home, HOME).unwrap();
        bench.connect("wan", &bench.net, NET).unwrap();
        Some(bench)
    }

    fn connect(&self, name: &'static str, host: &Netns, address: Ipv4Addr) -> io::Result<()> {
        let last = address.octets()[3];
        let end = |name, mac| VethEnd {
            name,
            index: 10 + u32::from(last),
            mac: [2, 0, 0, 0, mac, last],
        };
        self.middle.run(|| {
            let mut network = Network::open()?;
            network.add_veth(end(name, 0), end("eth", 1), host.as_fd())?;
            network.set_up(10 + u32::from(last))
        })?;
        host.run(|| {
            let mut network = Network::open()?;
            network.add_address(10 + u32::from(last), address, 24)?;
            network.set_up(10 + u32::from(last))?;
            for feature in [Feature::Tso, Feature::TxChecksum, Feature::Gso] {
                set_feature("eth", feature, true)?;
            }
            Ok(())
        })
    }
}

#[test]
fn frames_of_a_peer_with_tso_arrive_split_and_with_whole_checksums() {
    let Some(bench) = Bench::new() else { return };
    let stop = Instant::now() + Duration::from_secs(2);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            bench
                .middle
                .run(|| {
                    let mut lan = Port::open("lan").unwrap();
                    let mut wan = Port::open("wan").unwrap();
                    let mut n = 0;
                    while Instant::now() < stop {
                        lan.receive(64, &mut |frame| {
                            n += 1;
                            assert!(frame.len() <= 1514);
                            wan.send(frame);
                        })?;
                        wan.flush()?;
                        wan.receive(64, &mut |frame| {
                            assert!(frame.len() <= 1514);
                            lan.send(frame);
                        })?;
                        lan.flush()?;
                    }
                    eprintln!("{n} {:?} {:?}", lan.losses(), wan.losses());
                    Ok(())
                })
                .unwrap();
        });
        let server = scope.spawn(|| {
            bench
                .net
                .run(|| {
                    let (mut stream, _) = TcpListener::bind((NET, 5000))?.accept()?;
                    let mut all = Vec::new();
                    stream.read_to_end(&mut all)?;
                    Ok(all.len())
                })
                .unwrap()
        });
        bench
            .home
            .run(|| {
                std::thread::sleep(Duration::from_millis(200));
                let mut stream = TcpStream::connect((NET, 5000))?;
                stream.write_all(&vec![7; 4 << 20])
            })
            .unwrap();
        assert_eq!(server.join().unwrap(), 4 << 20);
    });
}
