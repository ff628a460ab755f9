//! A gateway on a host that continues to run after it. The gateway sends no frames of its own, and restores all
//! settings. Tests that need root print a note and pass without it.

use crate::common::{HOME, LAN, NET, Place, Running, WAN, droptail, ip, transfer};
use asymq_core::catalog::Standard;
use asymq_gateway::net::{Feature, Netns, Network, VethEnd, feature, set_feature};
use asymq_gateway::{Gateway, GatewayConfig, HostOptions, PacketIo, Port, STANDARD, restore};
use std::fs;

use std::net::{Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

fn config() -> GatewayConfig {
    GatewayConfig {
        lan: "lan".into(),
        wan: "wan".into(),
        link: droptail("100mbit"),
    }
}

fn options(state: &Path) -> HostOptions {
    HostOptions {
        state: Some(state.into()),
        wait: true,
        ..HostOptions::default()
    }
}

/// All settings of an interface that a gateway may change.
fn settings(place: &Place, name: &str, index: u32) -> Vec<String> {
    let read = || {
        let sysctls = [
            "ipv6/conf/{}/disable_ipv6",
            "ipv6/conf/{}/accept_ra",
            "ipv6/conf/{}/addr_gen_mode",
            "ipv4/conf/{}/forwarding",
        ];
        let mut all: Vec<String> = Vec::new();
        for path in sysctls {
            let path = format!("/proc/sys/net/{}", path.replace("{}", name));
            all.push(format!("{path} = {}", fs::read_to_string(&path)?.trim()));
        }
        let gro = feature(name, Feature::Gro)?;
        let link = Network::open()?.link(index)?.unwrap();
        let arp = link.flags & libc::IFF_NOARP == 0;
        all.push(format!("gro {gro}, arp {arp}, up {}", link.up));
        Ok(all)
    };
    place.middle.run(read).unwrap()
}

fn set_sysctl(place: &Place, path: &str, value: &str) {
    let write = || fs::write(format!("/proc/sys/net/{path}"), value);
    place.middle.run(write).unwrap();
}

/// Collects frames that the middle host sent by itself; their source addresses are 02:00:00:00:00:*.
fn own_frames(port: &mut Port, own: &mut Vec<Vec<u8>>) {
    let mut keep = |frame: &[u8]| {
        if frame[6..11] == [2, 0, 0, 0, 0] {
            own.push(frame.to_vec());
        }
    };
    port.receive(usize::MAX, &mut keep).unwrap();
}

fn checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low));
    }
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A router advertisement for 2001:db8::/64 that also announces a default router (RFC 4861, sec. 4.2).
fn announcement() -> Vec<u8> {
    let router: Ipv6Addr = "fe80::1".parse().unwrap();
    let all_nodes: Ipv6Addr = "ff02::1".parse().unwrap();
    let prefix: Ipv6Addr = "2001:db8::".parse().unwrap();
    let mut message = vec![134, 0, 0, 0, 64, 0, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0];
    // Prefix information: on link, for autoconfiguration, valid for an hour.
    message.extend([3, 4, 64, 0xc0, 0, 0, 14, 16, 0, 0, 14, 16, 0, 0, 0, 0]);
    message.extend(prefix.octets());
    let mut summed = [router.octets(), all_nodes.octets()].concat();
    summed.extend([0, 0, 0, message.len() as u8, 0, 0, 0, 58]);
    summed.extend(&message);
    let sum = checksum(&summed).to_be_bytes();
    message[2..4].copy_from_slice(&sum);

    let mut frame = vec![0x33, 0x33, 0, 0, 0, 1, 2, 7, 7, 7, 7, 7, 0x86, 0xdd];
    frame.extend([0x60, 0, 0, 0, 0, message.len() as u8, 58, 255]);
    frame.extend(router.octets());
    frame.extend(all_nodes.octets());
    frame.extend(message);
    frame
}

/// An ARP request for the Ethernet address of `ip` (RFC 826).
fn arp_request(ip: Ipv4Addr) -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 7, 7, 7, 7, 7, 8, 6]);
    frame.extend([0, 1, 8, 0, 6, 4, 0, 1, 2, 7, 7, 7, 7, 7, 10, 9, 9, 1]);
    frame.extend([0; 6]);
    frame.extend(ip.octets());
    frame.resize(60, 0);
    frame
}

#[test]
fn a_gateway_stays_silent_and_ignores_router_advertisements() {
    let Some(place) = Place::new() else { return };
    // The host has an address on another interface; without a gateway, all its interfaces answer ARP requests for it.
    let management = Ipv4Addr::new(192, 0, 2, 1);
    let add = || {
        let mut network = Network::open()?;
        network.set_up(1)?;
        network.add_address(1, management, 32)
    };
    place.middle.run(add).unwrap();
    let taps = [&place.home, &place.net];
    // Without a gateway, the announcement and the request take effect, which proves that the frames are valid.
    let mut taps = taps.map(|at| at.run(|| Ok(Port::open("eth").unwrap())).unwrap());
    let provoke = |taps: &mut [Port; 2]| {
        for tap in taps {
            tap.send(&announcement());
            tap.send(&arp_request(management));
            tap.flush().unwrap();
        }
    };
    let addresses = || {
        let addresses = place.middle.run(|| Network::open()?.addresses()).unwrap();
        let of_ports = addresses.into_iter().filter(|of| of.index != 1);
        of_ports.map(|of| of.ip.to_string()).collect::<Vec<_>>()
    };
    let mut own = Vec::new();
    crate::common::wait::wait_for("the host to answer", crate::common::wait::DEADLINE, || {
        provoke(&mut taps);
        taps.iter_mut().for_each(|tap| own_frames(tap, &mut own));
        let answers = |kind: [u8; 2]| own.iter().any(|frame| frame[12..14] == kind);
        let taken = addresses();
        answers([8, 6]) && answers([0x86, 0xdd]) && taken.iter().any(|ip| ip.starts_with("2001:"))
    });

    let gateway = Running::with(&place, config());
    assert_eq!(addresses(), [""; 0], "what was taken before goes");
    // Discards frames that the kernel sent before the interfaces were silent.
    let mut before = Vec::new();
    thread::sleep(Duration::from_millis(200));
    taps.iter_mut().for_each(|tap| own_frames(tap, &mut before));
    let mut own = Vec::new();
    let start = Instant::now();
    // Longer than the random delays of solicitations (1 s) and of membership reports.
    while start.elapsed() < Duration::from_secs(3) {
        provoke(&mut taps);
        thread::sleep(Duration::from_millis(50));
        taps.iter_mut().for_each(|tap| own_frames(tap, &mut own));
    }
    assert_eq!(own, [[0u8; 0]; 0], "{} frames of its own", own.len());
    assert_eq!(addresses(), [""; 0]);
    assert_eq!(transfer(&place.home, &place.net, NET, 100_000), 100_000);
    gateway.stop();
}

#[test]
fn a_flap_does_not_make_a_silent_interface_talk() {
    let Some(place) = Place::new() else { return };
    let gateway = Running::with(&place, config());
    let mut tap = place.net.run(|| Ok(Port::open("eth").unwrap())).unwrap();
    place.middle.run(|| Network::open()?.set_down(WAN)).unwrap();
    gateway.hear("--wan wan is down");
    let mut own = Vec::new();
    own_frames(&mut tap, &mut Vec::new());
    place.middle.run(|| Network::open()?.set_up(WAN)).unwrap();
    gateway.hear("--wan wan is back");
    thread::sleep(Duration::from_secs(2));
    own_frames(&mut tap, &mut own);
    assert_eq!(own, [[0u8; 0]; 0]);
    gateway.stop();
}

#[test]
fn a_stopped_gateway_gives_every_setting_back() {
    let Some(place) = Place::new() else { return };
    set_sysctl(&place, "ipv6/conf/wan/accept_ra", "2");
    set_sysctl(&place, "ipv4/conf/wan/forwarding", "1");
    set_sysctl(&place, "ipv6/conf/lan/disable_ipv6", "1");
    place
        .middle
        .run(|| set_feature("wan", Feature::Gro, true))
        .unwrap();
    place.middle.run(|| Network::open()?.set_down(LAN)).unwrap();
    let all = || [settings(&place, "lan", LAN), settings(&place, "wan", WAN)];
    let before = all();
    let gateway = Running::with(&place, config());
    assert_ne!(all(), before);
    assert_eq!(
        transfer(&place.home, &place.net, NET, 100_000),
        100_000,
        "an interface that is down is brought up"
    );
    gateway.stop();
    assert_eq!(all(), before);
}

#[test]
fn changes_of_a_killed_gateway_are_restored_by_the_next_or_by_restore() {
    let Some(place) = Place::new() else { return };
    let state = tempfile::tempdir().unwrap();
    place
        .middle
        .run(|| set_feature("wan", Feature::Gro, true))
        .unwrap();
    let all = || [settings(&place, "lan", LAN), settings(&place, "wan", WAN)];
    let before = all();
    let open = || {
        let host = options(state.path());
        Ok(Gateway::open(&Standard, &config(), &host).unwrap())
    };
    // A killed gateway leaves only journals and settings; its locks end with the process.
    let kill = || {
        let gateway = place.middle.run(open).unwrap();
        let journals = copy(state.path());
        let held = all();
        assert_ne!(held, before);
        end(&place, gateway);
        assert_eq!(copy(state.path()), [], "no journal outlives a stop");
        assert_eq!(all(), before);
        for (path, text) in journals {
            fs::write(path, text).unwrap();
        }
        let silence = || {
            for name in ["lan", "wan"] {
                fs::write(format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6"), "1")?;
                fs::write(format!("/proc/sys/net/ipv6/conf/{name}/accept_ra"), "0")?;
                fs::write(format!("/proc/sys/net/ipv6/conf/{name}/addr_gen_mode"), "1")?;
                set_feature(name, Feature::Gro, false)?;
            }
            let mut network = Network::open()?;
            network.set_flag(LAN, libc::IFF_NOARP, true)?;
            network.set_flag(WAN, libc::IFF_NOARP, true)
        };
        place.middle.run(silence).unwrap();
        assert_eq!(all(), held);
    };

    kill();
    let next = place.middle.run(open).unwrap();
    end(&place, next);
    assert_eq!(all(), before, "by the next one's stop");

    kill();
    let given = place.middle.run(|| restore(state.path())).unwrap();
    let mut names: Vec<_> = given.iter().map(|of| of.interface.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["lan", "wan"]);
    assert!(given.iter().all(|of| of.result.is_ok()), "{given:?}");
    assert_eq!(all(), before);
    assert_eq!(copy(state.path()), []);
}

/// Ends a gateway in the namespace of its interfaces.
fn end(place: &Place, gateway: Gateway) {
    let end = || {
        drop(gateway);
        Ok(())
    };
    place.middle.run(end).unwrap();
}

/// Returns names and contents of the files in a folder.
fn copy(folder: &Path) -> Vec<(std::path::PathBuf, String)> {
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|file| {
            let path = file.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            (path, text)
        })
        .collect()
}

#[test]
fn a_journal_of_another_interface_or_one_in_use_is_left_alone() {
    let Some(place) = Place::new() else { return };
    let state = tempfile::tempdir().unwrap();
    let open = || {
        let host = options(state.path());
        Ok(Gateway::open(&Standard, &config(), &host).unwrap())
    };
    let gateway = place.middle.run(open).unwrap();
    let given = place.middle.run(|| restore(state.path())).unwrap();
    assert!(
        given
            .iter()
            .all(|of| of.result == Err("a running gateway holds it".into())),
        "{given:?}"
    );
    let journals = copy(state.path());
    assert_eq!(journals.len(), 2);
    end(&place, gateway);
    for (path, text) in &journals {
        // Gives the journal another Ethernet address.
        fs::write(path, text.replace("\"mac\":[2,", "\"mac\":[6,")).unwrap();
    }
    let silent = || fs::write("/proc/sys/net/ipv6/conf/lan/disable_ipv6", "1");
    place.middle.run(silent).unwrap();
    assert_eq!(place.middle.run(|| restore(state.path())).unwrap(), []);
    let now = || fs::read_to_string("/proc/sys/net/ipv6/conf/lan/disable_ipv6");
    assert_eq!(place.middle.run(now).unwrap().trim(), "1");
    assert_eq!(
        copy(state.path()),
        [],
        "journals of interfaces that are gone go"
    );
}

#[test]
fn an_interface_in_use_is_refused_with_the_reason_and_the_remedy() {
    let Some(place) = Place::new() else { return };
    let refused = || {
        let error = place.middle.run(|| {
            Ok(Gateway::open(STANDARD, &config(), &HostOptions::default())
                .err()
                .unwrap())
        });
        let error = error.unwrap();
        assert!(error.is_bad_input(), "{error}");
        error.to_string()
    };
    let add = |index, address: std::net::IpAddr, prefix| {
        let add = || Network::open()?.add_address(index, address, prefix);
        place.middle.run(add).unwrap();
    };
    add(LAN, "192.168.1.2".parse().unwrap(), 24);
    assert_eq!(
        refused(),
        "--lan lan: has the address 192.168.1.2/24, over which you may be logged in; on a router, use 'asymq router' \
         instead (docs/router/which-way.md); on a box between router and modem, move the address to a third interface, \
         from a console, and keep NetworkManager, systemd-networkd and dhcpcd from this one"
    );
    place.middle.run(|| Network::open()?.delete(LAN)).unwrap();
    place.connect("lan", LAN, &place.home, HOME).unwrap();
    add(WAN, "2001:db8::2".parse().unwrap(), 64);
    let error = refused();
    assert!(
        error.starts_with("--wan wan: has the address 2001:db8::2/64"),
        "{error}"
    );
    place.middle.run(|| Network::open()?.delete(WAN)).unwrap();
    place.connect("wan", WAN, &place.net, NET).unwrap();

    let bridge = || {
        ip("link add name br0 index 20 type bridge")?;
        ip("link set wan master br0")
    };
    match place.middle.run(bridge) {
        Ok(()) => {
            assert_eq!(
                refused(),
                "--wan wan: is in the bridge br0, over which you may be logged in; a gateway is itself a bridge: on a \
                 router, use 'asymq router' instead (docs/router/which-way.md); on a box between router and modem, \
                 take the port out of it, from a console or over a third interface"
            );
            place.middle.run(|| Network::open()?.delete(20)).unwrap();
        }
        Err(error) => eprintln!("skipped: no bridge can be made: {error}"),
    }

    let gateway = Running::with(&place, config());
    assert_eq!(
        refused(),
        "--lan lan: another gateway holds it; stop that gateway first, or choose another interface"
    );
    gateway.stop();
    // After the end, the interfaces are free.
    Running::with(&place, config()).stop();
}

#[test]
fn an_invalid_interface_name_is_refused_without_waiting() {
    let Some(place) = Place::new() else { return };
    let state = tempfile::tempdir().unwrap();
    for name in [
        "",
        "..",
        "../lan",
        "eth0 ",
        "lan:1",
        "sixteen-bytes-00",
        "a%d",
        "voil\u{e0}",
        "all",
    ] {
        let config = GatewayConfig {
            lan: name.into(),
            ..config()
        };
        let open = || Ok(Gateway::open(&Standard, &config, &options(state.path())).map(drop));
        let error = place.middle.run(open).unwrap().unwrap_err();
        assert!(error.is_bad_input(), "{error}");
        let error = error.to_string();
        let said = format!("--lan {name:?}: not an interface name; ");
        assert!(error.starts_with(&said), "{error}");
    }
}

#[test]
fn a_pipe_in_the_folder_of_journals_does_not_block() {
    let Some(place) = Place::new() else { return };
    let state = tempfile::tempdir().unwrap();
    let path = state.path().join("pipe.json");
    let pipe = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: the name ends with NUL and outlives the call.
    assert_eq!(unsafe { libc::mkfifo(pipe.as_ptr(), 0o600) }, 0);
    let folder = state.path().to_owned();
    let restoring = thread::spawn(move || place.middle.run(|| restore(&folder)));
    crate::common::wait::wait_for("the end", crate::common::wait::DEADLINE, || {
        restoring.is_finished()
    });
    assert_eq!(restoring.join().unwrap().unwrap(), []);
}

#[test]
fn interfaces_of_the_same_name_and_index_in_two_namespaces_are_two() {
    let Some(place) = Place::new() else { return };
    let elsewhere = Place::new().unwrap();
    let (one, other) = (
        Running::with(&place, config()),
        Running::with(&elsewhere, config()),
    );
    one.stop();
    other.stop();
}

/// A gateway that starts without its interfaces.
struct Waiting {
    stop: asymq_gateway::Stop,
    log: std::sync::Arc<std::sync::Mutex<Vec<String>>>,
    thread: thread::JoinHandle<()>,
}

impl Waiting {
    fn start(middle: &Netns) -> Self {
        let stop = asymq_gateway::Stop::new().unwrap();
        let log = std::sync::Arc::<std::sync::Mutex<Vec<String>>>::default();
        let thread = thread::spawn({
            let (stop, log) = (stop.clone(), log.clone());
            let netns = middle.try_clone().unwrap();
            move || {
                netns.enter().unwrap();
                let host = HostOptions {
                    state: None,
                    wait: true,
                    ..HostOptions::default()
                };
                let mut gateway = Gateway::open(&Standard, &config(), &host).unwrap();
                gateway.set_log(move |line| log.lock().unwrap().push(line.into()));
                gateway.run(&stop).unwrap();
            }
        });
        Self { stop, log, thread }
    }

    #[track_caller]
    fn hear(&self, words: &str) {
        crate::common::wait::wait_for(words, crate::common::wait::DEADLINE, || {
            self.log
                .lock()
                .unwrap()
                .iter()
                .any(|line| line.contains(words))
        });
    }

    fn stop(self) -> Vec<String> {
        self.stop.request();
        self.thread.join().unwrap();
        std::mem::take(&mut *self.log.lock().unwrap())
    }
}

#[test]
fn an_interface_that_comes_later_is_waited_for_and_said_once() {
    let Some(place) = Place::new() else { return };
    place.middle.run(|| Network::open()?.delete(WAN)).unwrap();
    let gateway = Waiting::start(&place.middle);
    gateway.hear("--wan wan: no such interface; the interfaces are lo, lan; waiting for it");
    // Longer than the interval between searches for the interface.
    thread::sleep(Duration::from_millis(500));
    place.connect("wan", WAN, &place.net, NET).unwrap();
    gateway.hear("--wan wan is back");
    assert_eq!(transfer(&place.home, &place.net, NET, 100_000), 100_000);
    let log = gateway.stop();
    let said = log.iter().filter(|line| line.contains("no such interface"));
    assert_eq!(said.count(), 1, "{log:?}");
}

#[test]
fn one_that_is_made_again_with_the_same_index_is_made_silent_too() {
    let Some(place) = Place::new() else { return };
    // Omits `up`: the gateway may hold the interface before it is set up, and then restores it as down.
    let settings = || {
        let mut settings = settings(&place, "wan", WAN);
        let offloads = settings.last_mut().unwrap();
        offloads.truncate(offloads.find(", up").unwrap());
        settings
    };
    let before = settings();
    let gateway = Waiting::start(&place.middle);
    let carries = || transfer(&place.home, &place.net, NET, 100_000) == 100_000;
    for _ in 0..2 {
        wait_until_silent(&place);
        assert!(carries());
        place.middle.run(|| Network::open()?.delete(WAN)).unwrap();
        gateway.hear("--wan wan is down");
        place.connect("wan", WAN, &place.net, NET).unwrap();
    }
    wait_until_silent(&place);
    assert!(carries());
    gateway.stop();
    assert_eq!(settings(), before);
}

/// Waits until a gateway has configured the interface towards the net.
#[track_caller]
fn wait_until_silent(place: &Place) {
    crate::common::wait::wait_for("a silent interface", crate::common::wait::DEADLINE, || {
        let now = settings(place, "wan", WAN).join(" ");
        now.contains("disable_ipv6 = 1") && now.contains("arp false")
    });
}

#[test]
fn one_that_comes_later_with_an_address_is_refused_until_that_is_gone() {
    let Some(place) = Place::new() else { return };
    place.middle.run(|| Network::open()?.delete(WAN)).unwrap();
    let gateway = Waiting::start(&place.middle);
    gateway.hear("waiting for it");
    let come = |address: Option<Ipv4Addr>| {
        let end = |name, mac| VethEnd {
            name,
            index: WAN,
            mac: [2, 0, 0, 0, mac, WAN as u8],
        };
        let add = || {
            let mut network = Network::open()?;
            network.add_veth(end("new", 0), end("eth", 1), place.net.as_fd())?;
            if let Some(address) = address {
                network.add_address(WAN, address, 24)?;
            }
            network.rename(WAN, "wan")
        };
        place.middle.run(add).unwrap();
    };
    come(Some(Ipv4Addr::new(192, 0, 2, 7)));
    gateway.hear("--wan wan: has the address 192.0.2.7/24");
    place.middle.run(|| Network::open()?.delete(WAN)).unwrap();
    come(None);
    gateway.hear("--wan wan is back");
    let log = gateway.stop();
    let said = log.iter().filter(|line| line.contains("192.0.2.7"));
    assert_eq!(said.count(), 1, "{log:?}");
}

#[test]
fn a_renamed_interface_is_followed_and_given_back_under_its_new_name() {
    let Some(place) = Place::new() else { return };
    place
        .middle
        .run(|| set_feature("wan", Feature::Gro, true))
        .unwrap();
    let gateway = Running::with(&place, config());
    gateway.hear("--wan wan: disabled GRO");
    let rename = || {
        let mut network = Network::open()?;
        network.set_down(WAN)?;
        network.rename(WAN, "uplink0")?;
        network.set_up(WAN)
    };
    place.middle.run(rename).unwrap();
    gateway.hear("--wan wan is back as uplink0");
    assert_eq!(transfer(&place.home, &place.net, NET, 100_000), 100_000);
    gateway.stop();
    let gro = place.middle.run(|| feature("uplink0", Feature::Gro));
    assert!(gro.unwrap(), "GRO is on again");
    let silent = || fs::read_to_string("/proc/sys/net/ipv6/conf/uplink0/disable_ipv6");
    assert_eq!(place.middle.run(silent).unwrap().trim(), "0");
}
