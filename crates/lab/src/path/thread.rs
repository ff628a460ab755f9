//! The thread that carries frames over the emulated path.

use super::{Frame, Path, Side};
use crate::error::{Context as _, LabError};
use crate::measure::{Delays, INTERVAL, Window};
use crate::{Halt, clock, sys};
use asymq_core::frame::FlowKey;
use asymq_core::units::Duration;
use asymq_gateway::{Losses, PacketIo as _, Port, poll, precise_timers};
use std::os::fd::AsFd as _;

/// The path's two interfaces.
pub(crate) struct Ports {
    /// Towards the gateway.
    pub(crate) access: Port,
    /// Towards the servers.
    pub(crate) internet: Port,
}

/// What the path saw.
pub(crate) struct Seen {
    pub(crate) path: Path,
    /// Frames that wait at the downlink at the end of every interval.
    pub(crate) backlog_down: Vec<u32>,
    /// How late frames left.
    pub(crate) lateness: Delays,
    /// Frames lost at the path's interfaces.
    pub(crate) losses: Losses,
}

/// Carries frames until the window ends or the run is halted.
pub(crate) fn run(
    mut path: Path,
    mut ports: Ports,
    window: Window,
    halt: &Halt,
) -> Result<Seen, LabError> {
    const LONGEST_WAIT: Duration = Duration::from_millis(50);
    const BATCH: usize = 64;
    precise_timers();
    sys::go_first();
    // Nobody hostile is on this path, and its flows are known by their ports.
    let key = FlowKey::new([0, 0]);
    let mut spare: Vec<Vec<u8>> = Vec::new();
    let mut backlog_down = Vec::new();
    let mut lateness = Delays::default();
    let mut next_interval = window.start + INTERVAL;
    loop {
        let now = clock::now();
        while next_interval <= now.min(window.end) {
            backlog_down.push(path.down.backlog());
            next_interval += INTERVAL;
        }
        if now >= window.end || halt.is_set() {
            break;
        }
        path.advance(now, &mut |exit, due, frame| {
            match exit {
                Side::Home => ports.access.send(&frame.bytes),
                Side::Servers => ports.internet.send(&frame.bytes),
            }
            if window.counts(now) {
                lateness.add(now.saturating_since(due));
            }
            spare.push(frame.bytes);
        });
        ports.access.flush().during("sending towards home")?;
        ports.internet.flush().during("sending towards servers")?;
        let wake = path
            .next()
            .map_or(next_interval, |next| next.min(next_interval));
        let wait = wake.saturating_since(clock::now()).min(LONGEST_WAIT);
        let waiting = [Some(ports.access.as_fd()), Some(ports.internet.as_fd())];
        poll(waiting, Some(wait)).during("waiting for frames")?;
        let now = clock::now();
        let mut take = |bytes: &[u8], from| {
            let mut copy = spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(bytes);
            Frame::read(copy, from, &key)
        };
        ports
            .access
            .receive(BATCH, &mut |bytes| {
                if let Some(frame) = take(bytes, Side::Home) {
                    path.send_up(now, frame);
                }
            })
            .during("receiving from home")?;
        ports
            .internet
            .receive(BATCH, &mut |bytes| {
                if let Some(frame) = take(bytes, Side::Servers) {
                    path.send_down(now, frame);
                }
            })
            .during("receiving from servers")?;
    }
    path.advance(window.end, &mut |_, _, _| {});
    Ok(Seen {
        path,
        backlog_down,
        lateness,
        losses: ports.access.losses() + ports.internet.losses(),
    })
}
