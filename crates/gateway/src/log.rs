//! The log: lines for standard error, which costs nobody more than the lines if it is full, stalled or
//! gone.

use crate::sys::yield_to_forwarding;
use crate::writer::LineWriter;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

/// Lines that wait for a standard error that takes none.
const LINES: usize = 256;
/// Bytes of a line.
const MAX_LINE: usize = 2048;

static LOG: OnceLock<Option<SyncSender<Entry>>> = OnceLock::new();
static LOST: AtomicU64 = AtomicU64::new(0);

enum Entry {
    Line(String),
    /// Answers when all before it is written.
    Flush(SyncSender<()>),
}

/// Logs a line, which is lost and counted if too many wait. Never blocks, never fails.
pub(crate) fn line(text: &str) {
    let sent = sink().is_some_and(|log| log.try_send(Entry::Line(prefixed(text))).is_ok());
    if !sent {
        LOST.fetch_add(1, Ordering::Relaxed);
    }
}

/// Waits until what was logged is written, at most this long.
pub(crate) fn flush(patience: Duration) {
    let (done, written) = sync_channel(1);
    let log = LOG.get().and_then(Option::as_ref);
    if log.is_some_and(|log| log.try_send(Entry::Flush(done)).is_ok()) {
        // Nobody reads it; the process ends without its last lines.
        let _ = written.recv_timeout(patience);
    }
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

fn sink() -> Option<&'static SyncSender<Entry>> {
    let start = || {
        let (log, entries) = sync_channel(LINES);
        let writer = thread::Builder::new().name("log".into());
        writer.spawn(move || write(&entries)).ok().map(|_| log)
    };
    LOG.get_or_init(start).as_ref()
}

fn write(entries: &Receiver<Entry>) {
    yield_to_forwarding();
    let mut stderr = LineWriter::stderr();
    for entry in entries {
        match entry {
            Entry::Line(line) => {
                let written = stderr.as_mut().is_ok_and(|out| out.write(&line).is_ok());
                if !written {
                    LOST.fetch_add(1, Ordering::Relaxed);
                    continue;
                }
                let lost = LOST.swap(0, Ordering::Relaxed);
                let told = prefixed(&format!("{lost} lines of this log were lost"));
                if lost > 0 && stderr.as_mut().is_ok_and(|out| out.write(&told).is_err()) {
                    LOST.fetch_add(lost, Ordering::Relaxed);
                }
            }
            Entry::Flush(done) => {
                // Whoever asked may have lost patience.
                let _ = done.send(());
            }
        }
    }
}
