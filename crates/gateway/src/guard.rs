//! Ends the process if the gateway fails to stop, because a discipline hangs, a thread panics or a terminal blocks.
//!
//! Only commands use it: a program that runs a gateway through the library needs no guard.

use crate::error::GatewayError;
use crate::lock::lock;
use crate::log;
use crate::net::{Feature, set_feature};
use crate::stop::{DRAIN, Stop, Waker};
use crate::sys::{abort_after, ignore_write_signals, poll, to_core};
use std::os::fd::AsFd;
use std::panic;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// Time limit in addition to [`DRAIN`].
const GRACE: Duration = Duration::from_secs(1);
/// Time limit after a panic or a second stop request.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Offloads that a gateway disabled, by interface.
pub(crate) type DisabledOffloads = Vec<(String, Feature)>;

/// Ends the process if its gateway does not end in time. The limits are 3 s after SIGINT or SIGTERM, 0.5 s after a
/// second signal or a panic, and 1 s after this value is dropped. A panic is logged, stops the gateway and aborts the
/// process. SIGXFSZ and SIGTTOU are ignored, so that failing writes return errors.
#[derive(Debug)]
pub struct Guard {
    ended: Waker,
    panicked: Arc<AtomicBool>,
    disabled_offloads: Arc<Mutex<DisabledOffloads>>,
}

impl Guard {
    /// Starts the guard. Call it before the gateway is opened.
    pub fn install(stop: &Stop) -> Result<Self, GatewayError> {
        let system = GatewayError::during;
        ignore_write_signals();
        let asked = Waker::of_signals(&[libc::SIGINT, libc::SIGTERM]);
        let asked = asked.map_err(system("handling signals"))?;
        let waker = || Waker::new().map_err(system("making a pipe"));
        let (broken, ended) = (waker()?, waker()?);
        let wakers = [asked, broken.clone(), ended.clone()];
        let disabled_offloads = Arc::<Mutex<DisabledOffloads>>::default();
        let enable_on_abort = disabled_offloads.clone();
        thread::Builder::new()
            .name("guard".into())
            .spawn(move || watch(&wakers, &enable_on_abort))
            .map_err(system("starting a thread"))?;

        let panicked = Arc::new(AtomicBool::new(false));
        let (flag, stop) = (panicked.clone(), stop.clone());
        panic::set_hook(Box::new(move |info| {
            broken.wake();
            flag.store(true, Ordering::Relaxed);
            log::write_now(&format!("internal error, gateway ends: {info}"));
            // The second request skips draining the queue.
            stop.request();
            stop.request();
        }));
        Ok(Self {
            ended,
            panicked,
            disabled_offloads,
        })
    }

    /// Sets the offloads to enable again before a forced end of the process.
    pub(crate) fn enable_on_abort(&self, disabled_offloads: DisabledOffloads) {
        *lock(&self.disabled_offloads) = disabled_offloads;
    }
}

impl Drop for Guard {
    /// Starts the last time limit: the gateway has ended, so the process must end soon.
    fn drop(&mut self) {
        self.ended.wake();
        log::flush(AT_ONCE / 2);
        if self.panicked.load(Ordering::Relaxed) {
            process::abort();
        }
    }
}

/// Ends the process at a time limit. The time starts when one of these wakers wakes.
fn watch([asked, broken, ended]: &[Waker; 3], disabled_offloads: &Mutex<DisabledOffloads>) {
    let mut deadline: Option<Instant> = None;
    let (mut requests, mut panicked) = (0, false);
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            break;
        }
        let fds = [asked, broken, ended].map(|waker| Some(waker.as_fd()));
        let Ok([is_asked, is_broken, is_ended]) = poll(fds, left.map(to_core)) else {
            // `poll` failed (out of memory); forwarding may continue.
            thread::sleep(AT_ONCE);
            continue;
        };
        let mut within = |time: Duration| {
            let at = Instant::now() + time;
            deadline = Some(deadline.map_or(at, |already| already.min(at)));
        };
        if is_asked {
            requests += asked.take();
            within(match requests {
                1 => Duration::from(DRAIN) + GRACE,
                _ => AT_ONCE,
            });
        }
        if is_broken {
            broken.take();
            panicked = true;
            within(AT_ONCE);
        }
        if is_ended {
            ended.take();
            // The gateway stopped in time.
            if !panicked {
                deadline = Some(Instant::now() + GRACE);
            }
        }
    }
    // The calls below may block if the kernel hangs.
    abort_after(1);
    log::write_now("did not stop in time; aborted");
    for (interface, offload) in lock(disabled_offloads).iter() {
        // The interface may be gone.
        let _ = set_feature(interface, *offload, true);
    }
    process::abort();
}
