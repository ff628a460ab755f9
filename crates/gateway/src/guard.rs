//! The last resort of a process that runs a gateway: it ends, whatever its threads do.
//!
//! A gateway ends by itself, in order. Where it does not (a discipline that hangs, a panic, a
//! terminal that takes no output), a thread that waits for nothing else ends the process.
//! It is for a command: a library that runs a gateway among other things goes without.

use crate::error::GatewayError;
use crate::log;
use crate::net::{Feature, set_feature};
use crate::stop::{DRAIN, Stop, Waker};
use crate::sys::{end_process_in, poll, take_no_signals_for_writes, whole};
use std::os::fd::AsFd;
use std::panic;
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// For a gateway that has been asked to stop, beyond the time that its queue has.
const GRACE: Duration = Duration::from_secs(1);
/// For a gateway that panics, or is asked to stop at once.
const AT_ONCE: Duration = Duration::from_millis(500);

/// Offloads that a gateway has switched off, by interface.
pub(crate) type SwitchedOff = Vec<(String, Feature)>;

/// Ends this process when its gateway has to end and does not: three seconds after SIGINT or SIGTERM,
/// half a second after a second one, half a second after a panic of any thread, and a second after this
/// is dropped. A panic is logged as a line, stops the gateway at once, and ends in `abort`. What cannot be
/// written is an error, never a signal: SIGXFSZ and SIGTTOU are ignored from then on.
#[derive(Debug)]
pub struct Guard {
    ended: Waker,
    panicked: Arc<AtomicBool>,
    switched_off: Arc<Mutex<SwitchedOff>>,
}

impl Guard {
    /// Watches over the gateway that `stop` stops, from before it is opened.
    ///
    /// # Errors
    /// Signals cannot be handled, or the process has no descriptors or threads left.
    pub fn install(stop: &Stop) -> Result<Self, GatewayError> {
        let system = GatewayError::during;
        take_no_signals_for_writes();
        let waker = || Waker::new().map_err(system("making a pipe"));
        let (asked, broken, ended) = (waker()?, waker()?, waker()?);
        asked
            .on_signals(&[libc::SIGINT, libc::SIGTERM])
            .map_err(system("handling signals"))?;
        let wakers = [asked, broken.clone(), ended.clone()];
        let switched_off = Arc::<Mutex<SwitchedOff>>::default();
        let gives_back = switched_off.clone();
        thread::Builder::new()
            .name("guard".into())
            .spawn(move || watch(&wakers, &gives_back))
            .map_err(system("starting a thread"))?;

        let panicked = Arc::new(AtomicBool::new(false));
        let (flag, stop) = (panicked.clone(), stop.clone());
        panic::set_hook(Box::new(move |info| {
            broken.wake();
            flag.store(true, Ordering::Relaxed);
            log::last_words(&format!("internal error, which ends the gateway: {info}"));
            // Twice: nothing that waits can be trusted to leave.
            stop.request();
            stop.request();
        }));
        Ok(Self {
            ended,
            panicked,
            switched_off,
        })
    }

    /// Switches these on again if the gateway cannot.
    pub(crate) fn gives_back(&self, switched_off: SwitchedOff) {
        *lock(&self.switched_off) = switched_off;
    }
}

impl Drop for Guard {
    /// The gateway has ended, and the process is to follow.
    fn drop(&mut self) {
        self.ended.wake();
        log::flush(AT_ONCE / 2);
        if self.panicked.load(Ordering::Relaxed) {
            process::abort();
        }
    }
}

/// Ends the process some time after the first wake.
fn watch([asked, broken, ended]: &[Waker; 3], switched_off: &Mutex<SwitchedOff>) {
    let mut deadline: Option<Instant> = None;
    let (mut requests, mut panicked) = (0, false);
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            break;
        }
        let fds = [asked, broken, ended].map(|waker| Some(waker.as_fd()));
        let Ok([asks, breaks, ends]) = poll(fds, left.map(whole)) else {
            // Short of memory, which is no reason to end what still forwards.
            thread::sleep(AT_ONCE);
            continue;
        };
        let mut within = |time: Duration| {
            let at = Instant::now() + time;
            deadline = Some(deadline.map_or(at, |already| already.min(at)));
        };
        if asks {
            requests += asked.take();
            within(match requests {
                1 => Duration::from(DRAIN) + GRACE,
                _ => AT_ONCE,
            });
        }
        if breaks {
            broken.take();
            panicked = true;
            within(AT_ONCE);
        }
        if ends {
            ended.take();
            // It has kept its time so far.
            if !panicked {
                deadline = Some(Instant::now() + GRACE);
            }
        }
    }
    // What follows may wait for a kernel that is stuck.
    end_process_in(1);
    log::last_words("does not end by itself, and is ended");
    for (interface, offload) in lock(switched_off).iter() {
        // An interface that is gone needs nothing back.
        let _ = set_feature(interface, *offload, true);
    }
    process::abort();
}

/// The list is only ever replaced, so that a panic leaves it whole.
fn lock(switched_off: &Mutex<SwitchedOff>) -> MutexGuard<'_, SwitchedOff> {
    switched_off.lock().unwrap_or_else(PoisonError::into_inner)
}
