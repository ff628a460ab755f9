//! The log: lines for standard error, or for the table that stands there. A reader that is full, stalled
//! or gone costs no more than the lines.

use crate::sys::yield_to_forwarding;
use crate::writer::LineWriter;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::Duration;

/// Lines that wait for a reader that takes none.
const LINES: usize = 256;
/// Bytes of a line.
const MAX_LINE: usize = 2048;

static LOG: Mutex<Log> = Mutex::new(Log {
    lines: VecDeque::new(),
    lost: 0,
    writing: false,
    in_table: false,
});
static CHANGED: Condvar = Condvar::new();
static WRITER: Once = Once::new();

struct Log {
    lines: VecDeque<String>,
    /// Lines that found no room, or could not be written.
    lost: u64,
    /// A line is on its way to standard error.
    writing: bool,
    /// A table shows the lines.
    in_table: bool,
}

/// Logs a line, which is lost and counted if too many wait. Never blocks, never fails.
pub(crate) fn line(text: &str) {
    WRITER.call_once(|| {
        // Without a thread the lines wait, and are counted.
        let _ = thread::Builder::new().name("log".into()).spawn(write);
    });
    let mut log = lock();
    match log.lines.len() < LINES {
        true => log.lines.push_back(text.into()),
        false => log.lost += 1,
    }
    drop(log);
    CHANGED.notify_all();
}

/// Leaves the lines to a table, or writes them to standard error again.
pub(crate) fn in_table(shown: bool) {
    lock().in_table = shown;
    CHANGED.notify_all();
}

/// All lines that wait for a table.
pub(crate) fn take() -> String {
    let mut log = lock();
    let mut text = match std::mem::take(&mut log.lost) {
        0 => String::new(),
        lost => lost_lines(lost) + "\n",
    };
    log.lines.drain(..).for_each(|line| text += &(line + "\n"));
    text
}

/// Waits until what was logged is written, at most this long.
pub(crate) fn flush(patience: Duration) {
    let busy = |log: &mut Log| !log.in_table && (log.writing || !log.lines.is_empty());
    // Without a reader the process ends without its last lines.
    let _ = CHANGED.wait_timeout_while(lock(), patience, busy);
}

/// Writes a line without the log's thread, if standard error takes it at once.
pub(crate) fn last_words(text: &str) {
    if let Ok(mut stderr) = LineWriter::stderr()
        && stderr.is_ready()
    {
        // It was the last attempt.
        let _ = stderr.write(&prefixed(text));
    }
}

fn prefixed(text: &str) -> String {
    let mut line = format!("asymq gateway: {text}").replace('\n', " ");
    let mut ends = (0..=MAX_LINE.min(line.len())).rev();
    let end = ends.find(|&at| line.is_char_boundary(at));
    line.truncate(end.unwrap_or(0));
    line.push('\n');
    line
}

fn lost_lines(lost: u64) -> String {
    format!("{lost} lines of this log were lost")
}

/// The log is whole between its own statements, so that a panic elsewhere does no harm.
fn lock() -> MutexGuard<'static, Log> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

fn write() {
    yield_to_forwarding();
    let mut stderr = LineWriter::stderr();
    let mut write = |text: &str| {
        let written = stderr.as_mut().map(|out| out.write(&prefixed(text)));
        matches!(written, Ok(Ok(())))
    };
    loop {
        let idle = |log: &mut Log| log.in_table || log.lines.is_empty();
        let log = CHANGED.wait_while(lock(), idle);
        let mut log = log.unwrap_or_else(PoisonError::into_inner);
        let line = log.lines.pop_front().unwrap_or_default();
        log.writing = true;
        drop(log);
        let written = write(&line);
        let lost = match written {
            true => std::mem::take(&mut lock().lost),
            false => 0,
        };
        let reported = lost == 0 || write(&lost_lines(lost));
        let mut log = lock();
        log.writing = false;
        log.lost += if reported { 0 } else { lost } + u64::from(!written);
        drop(log);
        CHANGED.notify_all();
    }
}
