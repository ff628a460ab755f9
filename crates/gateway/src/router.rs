//! Takes over a router's port to the Internet. The port moves into its own network namespace. One end of a veth pair
//! replaces the port, with the same name, index, address and configuration. A gateway runs between the other end of
//! the pair and the port.

use crate::conntrack::{NatMap, NatTracker};
use crate::error::GatewayError;
use crate::gateway::{Gateway, GatewayConfig};
use crate::host::HostOptions;
use crate::interface_hold::{InterfaceHold, Lock, is_held};
use crate::io::Frame;
use crate::journal::{Identity, private_folder, read_json, write_json};
use crate::log;
use crate::net::{BypassRule, LinkInfo, Netns, Network, PortState, VethEnd, add_bypass};
use crate::port::find;
use crate::restore::{HELD, Restored, restore};
use crate::router_follow::{INNER, PortFollower};
use asymq_core::catalog::Build;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Version of the format; incremented when a key changes its meaning.
const FORMAT: u32 = 1;

/// Data for restoring a port, written before the first change.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Journal {
    format: u32,
    /// Identity of the port before it was taken over.
    identity: Identity,
    name: String,
    /// Name of the port's namespace.
    namespace: String,
    /// True once the veth pair has the port's configuration. Other programs may then change the pair's.
    complete: bool,
    /// True if the port stays taken over when the gateway ends; the service manager then restores it.
    keep: bool,
    state: PortState,
}

/// A port that was taken over.
#[derive(Debug)]
pub struct RouterPort {
    /// Namespace of the router.
    outer: Netns,
    /// Namespace of the port.
    inner: Netns,
    journal: Journal,
    folder: PathBuf,
}

/// Function that is called before each step, with the step's name. An error ends the take-over and restores the port.
pub type BeforeStep<'a> = &'a mut dyn FnMut(&str) -> io::Result<()>;

impl RouterPort {
    /// Takes over the port `name` of the calling thread's network namespace, or adopts a port that is already taken
    /// over. From then on, the kernel forwards the port's frames while no gateway runs. `folder` contains the
    /// journals. With `keep`, the port stays taken over when the gateway ends.
    ///
    /// # Errors
    /// There is no such Ethernet interface, a gateway already runs on it, or a step failed (everything is restored).
    pub fn take(name: &str, folder: &Path, keep: bool, before: BeforeStep<'_>) -> io::Result<Self> {
        private_folder(folder)?;
        let port = |inner, journal| {
            let outer = Netns::current()?;
            let folder = folder.into();
            Ok(Self {
                outer,
                inner,
                journal,
                folder,
            })
        };
        let mut network = Network::open()?;
        let path = journal_path(folder, name);
        if let Some(journal) = read_journal(&path) {
            match Netns::named(&journal.namespace)? {
                Some(inner) if journal.complete => {
                    is_free(&inner, name)?;
                    return port(inner, journal);
                }
                // An earlier take-over was killed before its last step.
                _ => drop(give_back(&journal, folder)?),
            }
        }
        let link = find(&mut network, name).map_err(io::Error::other)?;
        let _lock = Lock::take(link.index)?;
        let journal = Journal {
            format: FORMAT,
            identity: Identity::new(&link)?,
            name: name.into(),
            namespace: format!("asymq-{name}"),
            complete: false,
            keep,
            state: PortState::read(&mut network, link.index, name)?,
        };
        let taken = journal.take(&mut network, &link, folder, before);
        match taken {
            Ok((inner, journal)) => port(inner, journal),
            Err(error) => {
                if let Err(again) = journal.give_back(folder) {
                    log::line(&format!(
                        "{name}: not restored: {again}; retry with 'asymq gateway restore'"
                    ));
                }
                Err(error)
            }
        }
    }

    /// Opens connections to the namespaces of router and port. The calling thread is in the router's.
    fn follower(&self) -> io::Result<PortFollower> {
        Ok(PortFollower {
            outer: Network::open()?,
            inner: self.inner.run(Network::open)?,
            namespace: self.inner.try_clone()?,
            name: self.journal.name.clone(),
            index: self.journal.identity.index,
            mac: self.journal.identity.mac,
        })
    }

    /// True if a service manager restores the port.
    pub const fn is_kept(&self) -> bool {
        self.journal.keep
    }

    /// Restores the port with the veth pair's current configuration. `AddrInUse` if a gateway holds the port.
    pub fn give_back(&self) -> io::Result<()> {
        let restore = || give_back(&self.journal, &self.folder).map(drop);
        self.outer.run(restore)
    }

    /// True if the port `name` of the calling thread's network namespace is taken over.
    pub fn is_taken(name: &str, folder: &Path) -> bool {
        let journal = read_journal(&journal_path(folder, name));
        journal.is_some_and(|journal| journal.complete)
    }

    /// Waits, at most `timeout`, until the interface `name` exists and udev has renamed it. Returns true if it exists.
    pub fn wait_for(name: &str, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let is_ready = |link: &LinkInfo| {
            let udev = Path::new("/run/udev");
            !udev.join("control").exists() || udev.join(format!("data/n{}", link.index)).exists()
        };
        loop {
            let link = named_link(name).ok().flatten();
            match &link {
                Some(link) if is_ready(link) => return true,
                _ if Instant::now() > until => return link.is_some(),
                _ => thread::sleep(Duration::from_millis(20)),
            }
        }
    }
}

impl Gateway {
    /// Opens a gateway between a router and its port. The caller's thread stays in the router's network namespace until
    /// the gateway runs.
    ///
    /// # Errors
    /// See [`open`](Self::open).
    pub fn open_router(
        catalog: &'static dyn Build<Frame>,
        config: &GatewayConfig,
        host: &HostOptions,
        port: &RouterPort,
    ) -> Result<Self, GatewayError> {
        let system = GatewayError::during;
        let inner = port.inner.try_clone();
        let inner = inner.map_err(system("opening a network namespace"))?;
        inner
            .enter()
            .map_err(system("entering a network namespace"))?;
        let opened = Self::open(catalog, config, host);
        let back = port.outer.enter();
        let mut gateway = opened?;
        back.map_err(system("entering a network namespace"))?;
        gateway.namespace = Some(inner);
        gateway.follower = Some(port.follower().map_err(system("following the port"))?);
        let map = Arc::new(NatMap::new());
        gateway.nat = NatTracker::open(Arc::clone(&map));
        gateway.forwarder.nat = Some(map);
        Ok(gateway)
    }

    /// Enters the network namespace of the interfaces.
    pub(crate) fn enter(&self) -> Result<(), GatewayError> {
        let entered = self.namespace.as_ref().map_or(Ok(()), Netns::enter);
        entered.map_err(GatewayError::during("entering a network namespace"))
    }
}

impl Journal {
    fn take(
        &self,
        network: &mut Network,
        link: &LinkInfo,
        folder: &Path,
        before: BeforeStep<'_>,
    ) -> io::Result<(Netns, Self)> {
        let (name, index) = (self.name.as_str(), link.index);
        before("journal")?;
        self.write(folder)?;
        before("namespace")?;
        let inner = Netns::create(&self.namespace)?;
        inner.run(|| {
            // The port and the inner end of the pair must never send packets of this host.
            for of in ["all", "default"] {
                let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{of}/disable_ipv6"), "1");
            }
            Ok(())
        })?;
        before("move")?;
        let there = network.move_to(index, inner.as_fd(), (index, name));
        there.map_err(|error| {
            let text = "the kernel does not let this interface change its network namespace";
            io::Error::new(error.kind(), format!("{text}: {error}"))
        })?;
        before("veth")?;
        let mut mac = link.mac;
        mac[0] = 2;
        mac[5] ^= 1;
        let ends = [(name, index, link.mac), (INNER, 0, mac)];
        let [here, there] = ends.map(|(name, index, mac)| VethEnd { name, index, mac });
        network.add_veth(here, there, inner.as_fd())?;
        before("bridge")?;
        if let Err(error) = inner.run(|| bridge(name, folder)) {
            log::line(&format!(
                "{name}: the kernel cannot forward while no gateway runs ({error})"
            ));
        }
        before("configuration")?;
        self.state.apply(network, index, name)?;
        before("end")?;
        let done = Self {
            complete: true,
            ..self.clone()
        };
        done.write(folder)?;
        Ok((inner, done))
    }

    fn write(&self, folder: &Path) -> io::Result<()> {
        write_json(&journal_path(folder, &self.name), self)
    }

    /// Removes the veth pair, moves the port back, and configures it. Returns true if the port existed. Safe to call
    /// after any step of a take-over or a restoration.
    fn give_back(&self, folder: &Path) -> io::Result<bool> {
        let (name, index) = (self.name.as_str(), self.identity.index);
        let mut network = Network::open()?;
        let mut now = self.clone();
        let inner = Netns::named(&self.namespace)?;
        let mut is_here = false;
        if let Some(inner) = &inner {
            let (pair, port) = inner.run(|| Ok((named_link(INNER)?, named_link(name)?)))?;
            is_free(inner, name)?;
            // Uses the pair's configuration, which includes changes made after the take-over.
            if self.complete
                && pair.is_some()
                && network
                    .link_named(name)?
                    .is_some_and(|of| of.index == index)
            {
                now.state = PortState::read(&mut network, index, name)?;
            }
            now.complete = false;
            // A full disk must not prevent the restoration; the old journal then remains.
            if let Err(error) = now.write(folder) {
                log::line(&format!("{name}: restored without a new journal: {error}"));
            }
            inner.run(|| {
                restore(folder)?;
                let mut network = Network::open()?;
                pair.map_or(Ok(()), |pair| network.delete(pair.index))
            })?;
            if let Some(port) = port {
                let outer = Netns::current()?;
                inner.run(|| Network::open()?.move_to(port.index, outer.as_fd(), (index, name)))?;
            }
        }
        if let Some(port) = network.link(index)?.filter(|of| self.identity.is_of(of)) {
            if port.name != name {
                network.rename(index, name)?;
            }
            now.state.apply(&mut network, index, name)?;
            is_here = true;
        }
        Netns::remove(&self.namespace)?;
        match fs::remove_file(journal_path(folder, name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(is_here),
        }
    }
}

fn give_back(journal: &Journal, folder: &Path) -> io::Result<bool> {
    let _lock = Lock::take(journal.identity.index)?;
    journal.give_back(folder)
}

/// Fails with `AddrInUse` if a gateway holds the port in the namespace `inner`.
fn is_free(inner: &Netns, name: &str) -> io::Result<()> {
    match inner.run(|| Ok(named_link(name)?.is_some_and(|port| is_held(port.index))))? {
        true => Err(io::Error::new(io::ErrorKind::AddrInUse, HELD)),
        false => Ok(()),
    }
}

/// Makes the kernel forward between the port and the end of the veth pair in the port's namespace.
fn bridge(port: &str, folder: &Path) -> io::Result<()> {
    let mut network = Network::open()?;
    let mut links = Vec::new();
    let mut holds = Vec::new();
    for name in [INNER, port] {
        let link = named_link(name)?.ok_or(io::ErrorKind::NotFound)?;
        let hold = InterfaceHold::take(&mut network, &link, Some(folder), true);
        holds.push(hold?);
        links.push(link);
    }
    let rule = |from: usize, to: usize| BypassRule {
        from: links[from].index,
        name: &links[from].name,
        to: links[to].index,
    };
    add_bypass([rule(0, 1), rule(1, 0)])?;
    // A hold with a bridge keeps the interface's settings when dropped.
    drop(holds);
    Ok(())
}

fn named_link(name: &str) -> io::Result<Option<LinkInfo>> {
    Network::open()?.link_named(name)
}

fn journal_path(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("router-{name}.json"))
}

/// Reads the journal of a port of the calling thread's network namespace; `None` if there is no valid one.
fn read_journal(path: &Path) -> Option<Journal> {
    let is_valid = |of: &Journal| of.format == FORMAT && of.identity.is_here();
    read_json(path).filter(is_valid)
}

/// Restores all ports whose journals are in `folder`, in the calling thread's network namespace.
///
/// # Errors
/// The folder exists but cannot be read.
pub fn restore_router(folder: &Path) -> io::Result<Vec<Restored>> {
    // Root must not follow files in a folder that other users may write.
    if !folder.exists() || private_folder(folder).is_err() {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for file in fs::read_dir(folder)? {
        let path = file?.path();
        let journal = read_journal(&path);
        let Some(journal) = journal.filter(|of| path == journal_path(folder, &of.name)) else {
            continue;
        };
        let result = give_back(&journal, folder)
            .map(usize::from)
            .map_err(|error| error.to_string());
        found.push(Restored {
            interface: journal.name,
            result,
        });
    }
    Ok(found)
}
