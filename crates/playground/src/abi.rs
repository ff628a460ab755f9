//! The simulator as a WebAssembly module: functions of numbers and pointers, with one run at a time.
//!
//! Input text is written to [`asymq_input`]; output text is at [`asymq_text`], output numbers at [`asymq_frames`] and
//! [`asymq_samples`]. Outputs are valid until the next call.

use crate::{Player, catalog};
use asymq_core::Duration;
use std::cell::RefCell;

/// The module's state between two calls.
#[derive(Default)]
struct State {
    input: Vec<u8>,
    text: String,
    player: Option<Player>,
}

impl State {
    /// The frames of the latest advance; empty without a run.
    fn frames(&self) -> &[u16] {
        self.player.as_ref().map_or(&[], |player| &player.frames)
    }

    /// The samples of the latest advance; empty without a run.
    fn samples(&self) -> &[f32] {
        self.player.as_ref().map_or(&[], |player| &player.samples)
    }
}

thread_local! {
    static STATE: RefCell<State> = RefCell::default();
}

fn with<R>(call: impl FnOnce(&mut State) -> R) -> R {
    STATE.with_borrow_mut(call)
}

/// Stores a result or an error as text. Returns true for a result.
fn answer(state: &mut State, answer: Result<String, String>) -> bool {
    let good = answer.is_ok();
    state.text = answer.unwrap_or_else(|error| error);
    good
}

/// Allocates `len` bytes for input text.
#[unsafe(no_mangle)]
pub extern "C" fn asymq_input(len: usize) -> *mut u8 {
    with(|state| {
        state.input.clear();
        state.input.resize(len, 0);
        state.input.as_mut_ptr()
    })
}

/// Opens the run of the arguments in the input. The text is then the run's header, or the error.
#[unsafe(no_mangle)]
pub extern "C" fn asymq_open() -> bool {
    with(|state| {
        let words = String::from_utf8_lossy(&state.input);
        let player = Player::new(&words);
        let head = player.as_ref().map(Player::head).map_err(String::clone);
        state.player = player.ok();
        answer(state, head)
    })
}

/// Advances to `until_ms` after the start; returns the time that the run has reached, in ms.
#[unsafe(no_mangle)]
pub extern "C" fn asymq_advance(until_ms: f64) -> f64 {
    with(|state| {
        let Some(player) = &mut state.player else {
            return 0.0;
        };
        player.forget();
        // An invalid time counts as 0.
        player.advance(Duration::from_nanos((until_ms * 1e6) as u64));
        player.now().as_secs_f64() * 1e3
    })
}

/// Completes and ends the run. The text is the output of `asymq sim --json`, or the error.
#[unsafe(no_mangle)]
pub extern "C" fn asymq_report() -> bool {
    with(|state| {
        let player = state.player.take();
        let report = player.ok_or_else(|| "no run is open; call asymq_open first".to_owned());
        answer(state, report.and_then(Player::report))
    })
}

/// Writes the catalog of choices as text.
#[unsafe(no_mangle)]
pub extern "C" fn asymq_catalog() {
    with(|state| state.text = catalog());
}

/// Address of the text.
#[unsafe(no_mangle)]
pub extern "C" fn asymq_text() -> *const u8 {
    with(|state| state.text.as_ptr())
}

/// Returns the length of the text in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn asymq_text_len() -> usize {
    with(|state| state.text.len())
}

/// Address of the frames of the latest advance.
#[unsafe(no_mangle)]
pub extern "C" fn asymq_frames() -> *const u16 {
    with(|state| state.frames().as_ptr())
}

/// Number of values in the frames.
#[unsafe(no_mangle)]
pub extern "C" fn asymq_frames_len() -> usize {
    with(|state| state.frames().len())
}

/// Address of the samples of the latest advance.
#[unsafe(no_mangle)]
pub extern "C" fn asymq_samples() -> *const f32 {
    with(|state| state.samples().as_ptr())
}

/// Number of values in the samples.
#[unsafe(no_mangle)]
pub extern "C" fn asymq_samples_len() -> usize {
    with(|state| state.samples().len())
}
