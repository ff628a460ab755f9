//! Log lines for standard error or for the live table. If the reader blocks, lines are lost; the program never blocks.

use crate::lock::lock;
use crate::sys::lower_priority;
use crate::writer::LineWriter;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, Once, PoisonError};
use std::thread;
use std::time::Duration;

/// Maximum number of queued lines.
const LINES: usize = 256;
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
    /// Lines lost since the last report.
    lost: u64,
    /// True while a line is being written.
    writing: bool,
    /// True while the live table shows the lines.
    in_table: bool,
}

/// Logs a line without blocking. Replaces control characters, because interface names may contain them. If too many
/// lines are queued, counts the line as lost.
pub(crate) fn line(text: &str) {
    WRITER.call_once(|| {
        // If the thread cannot start, lines are queued and then lost.
        let _ = thread::Builder::new().name("log".into()).spawn(write);
    });
    let mut log = lock(&LOG);
    match log.lines.len() < LINES {
        true => log.lines.push_back(text.replace(char::is_control, " ")),
        false => log.lost += 1,
    }
    drop(log);
    CHANGED.notify_all();
}

/// Directs lines to the live table, or back to standard error.
pub(crate) fn in_table(shown: bool) {
    lock(&LOG).in_table = shown;
    CHANGED.notify_all();
}

/// Removes and returns all lines that are queued for the table.
pub(crate) fn take() -> String {
    let mut log = lock(&LOG);
    let mut text = match std::mem::take(&mut log.lost) {
        0 => String::new(),
        lost => lost_lines(lost) + "\n",
    };
    log.lines.drain(..).for_each(|line| text += &(line + "\n"));
    text
}

/// Waits until all lines are written, or until `patience` has passed.
pub(crate) fn flush(patience: Duration) {
    let busy = |log: &mut Log| !log.in_table && (log.writing || !log.lines.is_empty());
    let _ = CHANGED.wait_timeout_while(lock(&LOG), patience, busy);
}

/// Writes a line from the calling thread, if standard error does not block.
pub(crate) fn write_now(text: &str) {
    if let Ok(mut stderr) = LineWriter::stderr()
        && stderr.is_ready()
    {
        let _ = stderr.write(&prefixed(text));
    }
}

fn prefixed(text: &str) -> String {
    let mut line = format!("asymq gateway: {text}").replace(char::is_control, " ");
    let mut ends = (0..=MAX_LINE.min(line.len())).rev();
    let end = ends.find(|&at| line.is_char_boundary(at));
    line.truncate(end.unwrap_or(0));
    line.push('\n');
    line
}

fn lost_lines(lost: u64) -> String {
    format!("{lost} log lines were lost")
}

fn write() {
    lower_priority();
    let mut stderr = LineWriter::stderr();
    loop {
        let idle = |log: &mut Log| log.in_table || log.lines.is_empty();
        let log = CHANGED.wait_while(lock(&LOG), idle);
        let mut log = log.unwrap_or_else(PoisonError::into_inner);
        let (lost, line) = (std::mem::take(&mut log.lost), log.lines.pop_front());
        log.writing = true;
        drop(log);
        let report = (lost > 0).then(|| lost_lines(lost));
        let text: String = report
            .iter()
            .chain(&line)
            .map(|line| prefixed(line))
            .collect();
        let written = stderr.as_mut().map(|out| out.write(&text));
        let mut log = lock(&LOG);
        log.writing = false;
        if !matches!(written, Ok(Ok(()))) {
            log.lost += lost + 1;
        }
        drop(log);
        CHANGED.notify_all();
    }
}
