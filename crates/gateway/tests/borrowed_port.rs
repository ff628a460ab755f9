//! Taking over a router's port and restoring it. Tests that need root print a note and pass without it.

use crate::common::wait::{DEADLINE, wait_for};
use crate::ping::Ping;
use asymq_gateway::net::{Netns, Network, VethEnd};
use asymq_gateway::{RouterPort, restore_router};
use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A router with a port to a far host.
struct Router {
    outer: Netns,
    _far: Netns,
    port: String,
    folder: TempDir,
    /// Allows one test at a time, since a program that another test starts may briefly hold the interfaces' locks.
    _alone: MutexGuard<'static, ()>,
}

const INDEX: u32 = 17;

impl Router {
    fn new() -> Option<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        static ALONE: Mutex<()> = Mutex::new(());
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (Ok(outer), Ok(far)) = (Netns::new(), Netns::new()) else {
            eprintln!("skipped: a network namespace cannot be made");
            return None;
        };
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let port = format!("w{}x{number}", std::process::id());
        outer
            .run(|| {
                let end = |name, mac| VethEnd {
                    name,
                    index: INDEX,
                    mac,
                };
                let here = end(&port, [2, 0, 0, 0, 7, 1]);
                Network::open()?.add_veth(here, end("eth", [2, 0, 0, 0, 7, 2]), far.as_fd())
            })
            .unwrap();
        far.run(|| {
            ip("link set eth up")?;
            ip("address add 192.0.2.1/24 dev eth")?;
            ip("address add 2001:db8::1/64 dev eth nodad")
        })
        .unwrap();
        Some(Self {
            outer,
            _far: far,
            port,
            folder: tempfile::tempdir().unwrap(),
            _alone: alone,
        })
    }

    /// Makes every kind of configuration that a port's owner may use.
    fn configure(&self) {
        let lines = "
            link set lo up
            link set @ mtu 1492 txqueuelen 777 group 5 alias modem
            link property add dev @ altname altof@
            address add 192.0.2.9/24 broadcast + dev @ noprefixroute
            address add 192.0.2.8/24 dev @ label @:1 valid_lft 900 preferred_lft 800
            address add 198.51.100.1 peer 198.51.100.2 dev @
            address add 2001:db8::9/64 dev @ nodad
            address add 2001:db8::8/64 dev @ nodad metric 77
            link set @ up
            route add 192.0.2.0/24 dev @ proto dhcp scope link src 192.0.2.9 metric 100
            route add default via 192.0.2.1 dev @ proto dhcp metric 100
            route add 203.0.113.0/24 via 192.0.2.1 dev @ mtu 1400 advmss 1300
            route add 203.0.113.7 via 10.1.1.1 dev @ onlink table 99
            route add 203.0.114.0/24 nexthop via 192.0.2.1 dev @ weight 2 nexthop dev lo
            -6 route add default via 2001:db8::1 dev @ metric 50
            -6 route add 2001:db8:7::/48 via fe80::7 dev @ table 99 expires 900
            nexthop add id 71 via 192.0.2.1 dev @
            nexthop add id 72 via 192.0.2.7 dev @ onlink proto zebra
            nexthop add id 73 dev lo
            nexthop add id 74 group 71,3/72/73
            nexthop add id 76 via 2001:db8::1 dev @
            route add 203.0.118.0/24 nhid 71 proto zebra
            route add 203.0.116.0/24 nhid 74
            -6 route add 2001:db8:8::/48 nhid 76
            rule add iif @ lookup 99 priority 500
            neighbour add 192.0.2.77 lladdr 02:00:00:00:00:77 nud permanent dev @
            neighbour add proxy 192.0.2.78 dev @";
        let sysctls = [
            ("ipv4/conf", "rp_filter", "2"),
            ("ipv6/conf", "accept_ra", "0"),
            ("ipv4/neigh", "gc_stale_time", "91"),
        ];
        self.outer
            .run(|| {
                for line in lines.trim().lines() {
                    ip(&line.replace('@', &self.port))?;
                }
                for (of, file, value) in sysctls {
                    fs::write(format!("/proc/sys/net/{of}/{}/{file}", self.port), value)?;
                }
                nft(&RULES.replace('@', &self.port))
            })
            .unwrap();
        let shown = |filter: &str| {
            let command = format!("ip -6 address show dev {} scope link {filter}", self.port);
            !self.outer.run(|| output(&command)).unwrap().is_empty()
        };
        wait_for("a link-local address", DEADLINE, || {
            shown("-tentative") && !shown("tentative")
        });
    }

    /// Returns all visible state of the port.
    fn look(&self) -> String {
        self.outer
            .run(|| {
                let mut seen = String::new();
                for command in [
                    "ip -d link",
                    "ip address",
                    "ip -4 route show table all",
                    "ip -6 route show table all",
                    "ip rule",
                    "ip nexthop",
                    "ip neighbour show nud permanent",
                    "ip neighbour show proxy",
                    "nft list ruleset",
                ] {
                    let text = output(command)?;
                    writeln!(seen, "{command}\n{text}").unwrap();
                }
                for of in ["ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh"] {
                    let folder = format!("/proc/sys/net/{of}/{}", self.port);
                    let mut files: Vec<_> = fs::read_dir(folder)?
                        .flatten()
                        .map(|file| file.path())
                        .collect();
                    files.sort();
                    for file in files {
                        let value = fs::read_to_string(&file).unwrap_or_default();
                        writeln!(seen, "{}: {value}", file.display()).unwrap();
                    }
                }
                Ok(without_times(&without_peers(&seen)))
            })
            .unwrap()
    }

    /// Waits until the port has a carrier and the same state as `before`.
    fn is_as(&self, before: &str) {
        let until = Instant::now() + Duration::from_secs(5);
        loop {
            let now = self.look();
            let differences = differences(before, &now);
            if differences.is_empty() {
                return;
            }
            assert!(Instant::now() < until, "{differences}");
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn take(&self, before: &mut dyn FnMut(&str) -> io::Result<()>) -> io::Result<RouterPort> {
        // Enters the namespace on this thread, and returns to the previous one afterwards.
        let outer = self.outer.try_clone()?;
        let here = Netns::current()?;
        outer.enter()?;
        let taken = catch_unwind(AssertUnwindSafe(|| {
            RouterPort::take(&self.port, self.folder.path(), false, before)
        }));
        here.enter()?;
        taken.unwrap_or_else(|_| Err(io::Error::other("killed")))
    }

    fn restore(&self) -> Vec<String> {
        let restored = self
            .outer
            .run(|| restore_router(self.folder.path()))
            .unwrap();
        restored.iter().map(ToString::to_string).collect()
    }

    fn pings(&self, address: &str) -> bool {
        let ping = self.outer.run(|| Ping::open(address.parse().unwrap()));
        ping.is_ok_and(|ping| ping.answered(1, Duration::ZERO) == 1)
    }

    /// True if no journal and no namespace remain.
    fn is_clean(&self) -> bool {
        let journals = fs::read_dir(self.folder.path()).unwrap().count();
        journals == 0 && !fs::exists(format!("/run/netns/asymq-{}", self.port)).unwrap()
    }
}

const RULES: &str = r#"
table ip nat {
    chain after { type nat hook postrouting priority 100; oifname "@" masquerade; }
    chain filter { type filter hook forward priority 0; iif "@" ct state invalid drop; }
}"#;

/// Removes the peers of veth pairs, which may change, from the text.
fn without_peers(text: &str) -> String {
    let is_peer =
        |word: &&str| word.starts_with("asymq-w") || ["link-netns", "link-netnsid"].contains(word);
    let line = |line: &str| {
        let words = line.split(' ').filter(|word| !is_peer(word));
        let words = words.map(|word| word.split_once("@if").map_or(word, |(name, _)| name));
        let words: Vec<&str> = words.collect();
        words
            .join(" ")
            .replace("  ", " ")
            .replace(" 0 promiscuity", " promiscuity")
            .trim_end()
            .trim_end_matches(" 0")
            .to_owned()
            + "\n"
    };
    text.lines().map(line).collect()
}

/// The text without elapsed seconds.
fn without_times(text: &str) -> String {
    let mut kept = String::new();
    for word in text.split_inclusive(' ') {
        let number = word.trim_end_matches([' ', '\n']).trim_end_matches("sec");
        let is_time = word.contains("sec") && number.parse::<u32>().is_ok();
        kept.push_str(if is_time { "TIME " } else { word });
    }
    kept
}

fn output(command: &str) -> io::Result<String> {
    let words: Vec<&str> = command.split_whitespace().collect();
    let output = Command::new(words[0]).args(&words[1..]).output()?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(io::Error::other(format!(
            "{command}: {}",
            String::from_utf8_lossy(&output.stderr)
        ))),
    }
}

fn ip(words: &str) -> io::Result<()> {
    output(&format!("ip {}", words.trim())).map(drop)
}

/// Loads rules; does nothing without `nft`.
fn nft(rules: &str) -> io::Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("rules");
    fs::write(&file, rules)?;
    output(&format!("nft -f {}", file.display())).map(drop)
}

/// Lines that occur in only one of the texts.
fn differences(before: &str, after: &str) -> String {
    let lines = |of: &str, other: &str, mark| {
        let lines = of
            .lines()
            .filter(|line| !other.lines().any(|it| it == *line));
        lines
            .map(|line| format!("{mark} {line}\n"))
            .collect::<String>()
    };
    match before == after {
        true => String::new(),
        false => format!(
            "differs\n{}{}",
            lines(before, after, '-'),
            lines(after, before, '+')
        ),
    }
}

#[test]
fn a_port_comes_back_with_all_that_it_had_and_the_pair_has_it_meanwhile() {
    let Some(router) = Router::new() else { return };
    router.configure();
    let before = router.look();
    assert!(
        router.pings("192.0.2.1") && router.pings("2001:db8::1"),
        "{before}"
    );
    let port = router.take(&mut |_| Ok(())).unwrap();
    // No gateway runs yet: the kernel forwards.
    assert!(router.pings("192.0.2.1"));
    assert!(router.pings("2001:db8::1"));
    let meanwhile = router.look();
    println!("{}", differences(&before, &meanwhile));
    port.give_back().unwrap();
    router.is_as(&before);
    assert!(router.pings("192.0.2.1") && router.pings("2001:db8::1"));
    assert!(router.is_clean());
}

/// Steps of a take-over.
const STEPS: [&str; 7] = [
    "journal",
    "namespace",
    "move",
    "veth",
    "bridge",
    "configuration",
    "end",
];

/// A folder on a file system that can be filled, unmounted when dropped.
struct Full<'a>(&'a Path);

impl<'a> Full<'a> {
    fn new(folder: &'a Path) -> Option<Self> {
        let mount = format!(
            "mount -t tmpfs -o size=64k,mode=700 none {}",
            folder.display()
        );
        let mounted = output(&mount).inspect_err(|error| eprintln!("skipped: {error}"));
        mounted.ok().map(|_| Self(folder))
    }

    fn fill(&self) {
        let mut file = fs::File::create(self.0.join("full")).unwrap();
        while file.write_all(&[0; 1024]).is_ok() {}
    }
}

impl Drop for Full<'_> {
    fn drop(&mut self) {
        output(&format!("umount -l {}", self.0.display())).unwrap();
    }
}

#[test]
fn a_full_disk_does_not_keep_the_port() {
    let Some(router) = Router::new() else { return };
    let Some(disk) = Full::new(router.folder.path()) else {
        return;
    };
    let before = router.look();
    // The second journal of a take-over does not fit.
    let fills = &mut |now: &str| {
        if now == "end" {
            disk.fill();
        }
        Ok(())
    };
    router.take(fills).unwrap_err();
    router.is_as(&before);
    // A restoration needs no room for its journal, even after a kill.
    for is_killed in [false, true] {
        fs::remove_file(disk.0.join("full")).unwrap();
        let port = router.take(&mut |_| Ok(())).unwrap();
        disk.fill();
        match is_killed {
            true => assert_eq!(router.restore().len(), 1),
            false => port.give_back().unwrap(),
        }
        router.is_as(&before);
    }
}

#[test]
fn a_step_that_fails_gives_everything_back_and_one_that_is_killed_is_restored() {
    let Some(router) = Router::new() else { return };
    router.configure();
    let before = router.look();
    for step in STEPS {
        let fails = &mut |now: &str| match now == step {
            true => Err(io::Error::other("injected")),
            false => Ok(()),
        };
        let error = router.take(fails).unwrap_err();
        assert_eq!(error.to_string(), "injected", "{step}");
        router.is_as(&before);
        assert!(router.is_clean(), "{step}");
    }
    for step in STEPS {
        let dies = &mut |now: &str| match now == step {
            true => panic!("killed at {step}"),
            false => Ok(()),
        };
        assert!(router.take(dies).is_err());
        let restored = router.restore();
        let expected = format!("{}: 1 settings restored", router.port);
        let expected = (step != "journal").then_some(expected);
        assert_eq!(restored, Vec::from_iter(expected), "{step}");
        router.is_as(&before);
        assert!(router.is_clean(), "{step}");
        // A second take-over without a restore is killed too.
        assert!(router.take(dies).is_err());
        router.take(&mut |_| Ok(())).unwrap().give_back().unwrap();
        router.is_as(&before);
        assert!(router.is_clean(), "{step}");
    }
}

#[test]
fn changes_by_the_owner_stay() {
    let Some(router) = Router::new() else { return };
    router.configure();
    router.take(&mut |_| Ok(())).unwrap();
    let lines = "
        address del 192.0.2.8/24 dev @
        address add 192.0.2.10/24 dev @
        route del 203.0.113.0/24
        route add 203.0.115.0/24 via 192.0.2.1
        link set @ mtu 1400";
    router
        .outer
        .run(|| {
            lines
                .trim()
                .lines()
                .try_for_each(|line| ip(&line.replace('@', &router.port)))
        })
        .unwrap();
    let changed = router.look();
    // A second gateway adopts the port, and the owner restores it.
    router.take(&mut |_| panic!("taken over twice")).unwrap();
    let restored = router.restore();
    assert_eq!(restored, [format!("{}: 1 settings restored", router.port)]);
    router.is_as(&changed);
    assert!(router.is_clean());
    assert_eq!(router.restore(), [""; 0]);
}
