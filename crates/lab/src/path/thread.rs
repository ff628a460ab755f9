//! Thread of the emulated path.

use super::Path;
use super::frame::{self, Side};
use crate::clock::Window;
use crate::error::{Context as _, LabError};
use crate::halt::Halt;
use crate::uplink::Tap;
use crate::{clock, sys};
use asymq_core::decide::frame::FlowKey;
use asymq_core::measure::Histogram;
use asymq_core::units::Duration;
use asymq_gateway::{Losses, PacketIo as _, Port, poll, precise_timers};
use std::os::fd::AsFd as _;

pub(crate) struct Ports {
    /// Interface towards the gateway.
    pub(crate) access: Port,
    /// Interface towards the servers.
    pub(crate) internet: Port,
}

pub(crate) struct PathResults {
    pub(crate) path: Path,
    pub(crate) lateness: Histogram,
    pub(crate) losses: Losses,
}

/// Carries frames until the window ends or the run is halted.
pub(crate) fn run(
    mut path: Path,
    mut ports: Ports,
    tap: Option<Tap>,
    window: Window,
    halt: &Halt,
) -> Result<PathResults, LabError> {
    const MAX_WAIT: Duration = Duration::from_millis(50);
    const BATCH: usize = 64;
    precise_timers();
    sys::set_realtime();
    // A fixed key: flows are identified by their ports, and no attack on the hash is possible here.
    let key = FlowKey::new([0, 0]);
    let mut lateness = Histogram::default();
    loop {
        let now = clock::now();
        if now >= window.end || halt.is_set() {
            break;
        }
        path.advance(now, &mut |exit, due, frame| {
            match exit {
                Side::Home => ports.access.send(&frame.bytes),
                Side::Servers => ports.internet.send(&frame.bytes),
            }
            if window.counts(now) {
                lateness.record(now.saturating_since(due));
            }
        });
        ports.access.flush().during("sending towards home")?;
        ports.internet.flush().during("sending towards servers")?;
        let wake = path.next().unwrap_or(window.end);
        let wait = wake.saturating_since(clock::now()).min(MAX_WAIT);
        let waiting = [Some(ports.access.as_fd()), Some(ports.internet.as_fd())];
        poll(waiting, Some(wait)).during("waiting for frames")?;
        let now = clock::now();
        ports
            .access
            .receive(BATCH, &mut |bytes| {
                if let Some(tap) = &tap {
                    tap.leaves(now, bytes, window);
                }
                if let Some(frame) = frame::read(bytes, Side::Home, &key) {
                    path.send_up(now, frame);
                }
            })
            .during("receiving from home")?;
        ports
            .internet
            .receive(BATCH, &mut |bytes| {
                if let Some(frame) = frame::read(bytes, Side::Servers, &key) {
                    path.send_down(now, frame);
                }
            })
            .during("receiving from servers")?;
    }
    path.advance(window.end, &mut |_, _, _| {});
    Ok(PathResults {
        path,
        lateness,
        losses: ports.access.losses() + ports.internet.losses(),
    })
}
