//! Progress bar on standard error; shown only on a terminal.

use std::io::{self, IsTerminal, Write as _};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Width of the bar in characters.
const WIDTH: u64 = 40;
/// Minimum time between two drawings.
const INTERVAL: Duration = Duration::from_millis(50);

/// A progress bar, shared between threads.
pub(crate) struct ProgressBar {
    shown: bool,
    start: Instant,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    position: u64,
    length: u64,
    message: String,
    drawn: Option<Instant>,
}

impl ProgressBar {
    pub(crate) fn new(length: u64) -> Self {
        Self {
            shown: io::stderr().is_terminal(),
            start: Instant::now(),
            state: Mutex::new(State {
                length,
                ..State::default()
            }),
        }
    }

    pub(crate) fn set_position(&self, position: u64) {
        self.update(|state| state.position = position);
    }

    #[cfg(feature = "research")]
    pub(crate) fn set_length(&self, length: u64) {
        self.update(|state| state.length = length);
    }

    /// Sets the text to the right of the bar.
    pub(crate) fn set_message(&self, message: impl Into<String>) {
        self.update(|state| state.message = message.into());
    }

    pub(crate) fn finish_and_clear(&self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        let now = Instant::now();
        let recent = |drawn: Instant| now.duration_since(drawn) < INTERVAL;
        if self.shown && !state.drawn.is_some_and(recent) {
            state.drawn = Some(now);
            let line = line(&state, now.duration_since(self.start));
            // Ignores a failed write to the terminal.
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        }
    }
}

/// Formats `████░░░░  50 %  10s left  message`.
fn line(state: &State, elapsed: Duration) -> String {
    let length = state.length.max(1);
    let position = state.position.min(length);
    let full = (position * WIDTH / length) as usize;
    let bar = "█".repeat(full) + &"░".repeat(WIDTH as usize - full);
    let percent = position * 100 / length;
    let left = match position {
        0 => String::new(),
        done => {
            let left = elapsed.as_secs_f64() * (length - done) as f64 / done as f64;
            format!("{left:.0}s left")
        }
    };
    format!("{bar} {percent:>3} %  {left:>9}  {}", state.message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_done_in_a_second_leaves_three() {
        let state = State {
            position: 5,
            length: 20,
            message: "aq".into(),
            drawn: None,
        };
        let line = line(&state, Duration::from_secs(1));
        assert_eq!(line.matches('█').count(), 10);
        assert!(line.ends_with(" 25 %    3s left  aq"), "{line}");
    }
}
