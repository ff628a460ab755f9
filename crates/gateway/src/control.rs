//! Changes the gateway on request: by the control socket, and by SIGHUP.
//!
//! A request is the word [`STATUS`], or settings as text up to the end of the stream. The answer is one line that
//! begins with `ok:` or `error:`.

use crate::change::Changer;
use crate::clients::{Clients, Limits, RequestState};
use crate::config::LinkConfig;
use crate::error::GatewayError;
use crate::log;
use crate::snapshot::{Shared, Snapshot};
use crate::stop::Waker;
use crate::sys::{lower_priority, poll};
use asymq_core::hold::Handover;
use socket2::{Domain, SockAddr, Socket as RawSocket, Type};
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const LIMITS: Limits = Limits {
    clients: 16,
    request: 1 << 16,
    time: Duration::from_secs(2),
};
/// Time limit of [`request_change`].
const REQUEST_TIMEOUT: Duration = Duration::from_secs(if cfg!(test) { 2 } else { 10 });
/// Maximum length of an answer in bytes.
const MAX_ANSWER: usize = 1 << 22;

/// Keeps the settings of a running gateway, and parses requests for new settings.
pub trait Settings: Send {
    /// Parses a request.
    ///
    /// # Errors
    /// The request is invalid; the error text is one line.
    fn request(&mut self, text: &str) -> Result<LinkConfig, String>;

    /// Reads the settings file again. Also returns a text for the log.
    ///
    /// # Errors
    /// The file is invalid; the error text is one line.
    fn read_again(&mut self) -> Result<(LinkConfig, String), String>;

    /// Records that the gateway now uses the settings that were parsed last.
    fn accept(&mut self, link: &LinkConfig);

    /// Returns the current settings as text.
    fn in_force(&self) -> String;
}

/// Request for a [`Status`].
const STATUS: &str = "status";

/// State of a running gateway, as the control socket returns it in JSON.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub struct Status {
    /// Current settings as TOML.
    pub settings: String,
    /// Latest snapshot.
    pub snapshot: Snapshot,
}

/// Control socket and SIGHUP handler of a running gateway, served by one thread.
pub struct Control {
    settings: Box<dyn Settings>,
    socket: Option<Socket>,
    hangup: Option<Waker>,
}

impl Control {
    /// Creates a control for these settings. At `path`, it listens on a Unix socket, to which only this user can connect;
    /// the socket's file is removed at the end. With `hangup`, SIGHUP makes it read the settings file again.
    pub fn new(
        settings: impl Settings + 'static,
        path: Option<&Path>,
        hangup: bool,
    ) -> Result<Self, GatewayError> {
        let socket = path.map(|path| Socket::open(path).map_err(at(path)));
        let hangup = hangup.then(|| Waker::of_signals(&[libc::SIGHUP]));
        Ok(Self {
            settings: Box::new(settings),
            socket: socket.transpose()?,
            hangup: hangup
                .transpose()
                .map_err(GatewayError::during("handling SIGHUP"))?,
        })
    }

    /// Serves until `quit` wakes. Calls `changed` after each change.
    pub(crate) fn serve(
        mut self,
        changer: &Changer,
        stats: &Shared,
        quit: &Waker,
        changed: &dyn Fn(&LinkConfig),
    ) {
        lower_priority();
        let apply = |settings: &mut dyn Settings, link: LinkConfig| {
            let moved = changer.change(&link).map_err(|error| error.to_string())?;
            changed(&link);
            settings.accept(&link);
            let Handover { packets, dropped } = moved;
            Ok(format!("{packets} packets moved, {dropped} dropped"))
        };
        let status = |settings: &dyn Settings| {
            let (settings, snapshot) = (settings.in_force(), stats.latest());
            let status = Status { settings, snapshot };
            serde_json::to_string(&status).map_err(|error| error.to_string())
        };
        // If SIGHUP is not handled, `quit` takes the place of its waker.
        let others = [quit.as_fd(), self.hangup.as_ref().unwrap_or(quit).as_fd()];
        loop {
            let ready = match &mut self.socket {
                Some(socket) => socket.clients.turn(others, &mut |request, state| {
                    let settings = &mut *self.settings;
                    Some(line(match whole_request(request, state)? {
                        Ok(text) if text.trim() == STATUS => status(settings),
                        text => text
                            .and_then(|text| settings.request(text))
                            .and_then(|link| apply(settings, link)),
                    }))
                }),
                None => poll(others.map(Some), None),
            };
            let Ok([false, hung_up]) = ready else {
                return;
            };
            if hung_up && let Some(waker) = &self.hangup {
                waker.take();
                let read = self.settings.read_again();
                let done =
                    read.and_then(|(link, more)| Ok(apply(&mut *self.settings, link)? + &more));
                log::line(&match done {
                    Ok(done) => format!("settings reloaded: {done}"),
                    Err(error) => format!("{error}; settings unchanged"),
                });
            }
        }
    }
}

/// Returns the request if it is complete; `None` if more bytes may arrive.
fn whole_request(request: &[u8], state: RequestState) -> Option<Result<&str, String>> {
    let refused = |why: String| Some(Err(format!("reading the request: {why}")));
    match state {
        RequestState::Partial => None,
        RequestState::Complete => match std::str::from_utf8(request) {
            Ok(text) => Some(Ok(text)),
            Err(error) => refused(error.to_string()),
        },
        RequestState::TooLong => refused(format!("longer than {} bytes", LIMITS.request)),
        RequestState::TimedOut => refused(format!("incomplete after {:?}", LIMITS.time)),
    }
}

fn line(answer: Result<String, String>) -> Vec<u8> {
    let mut line = match answer {
        Ok(done) => format!("ok: {done}"),
        Err(error) => format!("error: {error}"),
    };
    // An error may quote control characters of the request.
    line = line.replace(char::is_control, " ");
    line.push('\n');
    line.into_bytes()
}

/// Requests the [`Status`] of a running gateway, as JSON.
pub fn request_status(control: &Path) -> Result<String, GatewayError> {
    request_change(control, STATUS)
}

/// Sends settings to the control socket of a running gateway. Returns its answer.
///
/// # Errors
/// No gateway answers within ten seconds, or the gateway refuses the change.
pub fn request_change(control: &Path, settings: &str) -> Result<String, GatewayError> {
    let answer = exchange(control, settings).map_err(at(control))?;
    match answer.trim_end().split_once(": ") {
        Some(("ok", done)) => Ok(done.into()),
        Some(("error", error)) => Err(GatewayError::Refused(error.into())),
        _ => Err(GatewayError::Refused(answer)),
    }
}

/// Reads a whole answer of bounded length within [`REQUEST_TIMEOUT`].
fn read_answer(stream: &mut UnixStream) -> io::Result<String> {
    let end = Instant::now() + REQUEST_TIMEOUT;
    let (mut answer, mut part) = (Vec::new(), [0; 4096]);
    while answer.len() <= MAX_ANSWER {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part) {
            Ok(0) => return String::from_utf8(answer).map_err(io::Error::other),
            Ok(length) => answer.extend_from_slice(&part[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other("the answer is too long to be a gateway's"))
}

fn exchange(control: &Path, request: &str) -> io::Result<String> {
    let exchange = || {
        let mut stream = UnixStream::connect(control)?;
        stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
        stream.set_write_timeout(Some(REQUEST_TIMEOUT))?;
        stream.write_all(request.as_bytes())?;
        stream.shutdown(Shutdown::Write)?;
        let answer = read_answer(&mut stream)?;
        match answer.ends_with('\n') {
            true => Ok(answer),
            // The gateway is stopping, or has too many clients.
            false => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    };
    exchange().map_err(|error: io::Error| {
        use io::ErrorKind::{ConnectionRefused, NotFound, TimedOut, UnexpectedEof, WouldBlock};
        match error.kind() {
            WouldBlock | TimedOut => {
                io::Error::new(TimedOut, format!("no answer within {REQUEST_TIMEOUT:?}"))
            }
            kind @ (NotFound | ConnectionRefused) => io::Error::new(
                kind,
                "no gateway listens there; start one with --control and this path, as the service does",
            ),
            UnexpectedEof => {
                let text = "the gateway closed the connection; try again";
                io::Error::new(UnexpectedEof, text)
            }
            _ => error,
        }
    })
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> GatewayError {
    let flag = format!("--control {}", path.display());
    move |source| GatewayError::Output { flag, source }
}

/// Listens at `path`; only this user can connect.
fn listen(path: &Path) -> io::Result<RawSocket> {
    let socket = OwnedFd::from(RawSocket::new(Domain::UNIX, Type::STREAM, None)?);
    // Sets the mode before `bind`: Linux applies it to the file. A `chmod` by name could follow a foreign link.
    let socket = File::from(socket);
    socket.set_permissions(Permissions::from_mode(0o600))?;
    let socket = RawSocket::from(OwnedFd::from(socket));
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(128)?;
    Ok(socket)
}

/// A listening Unix socket; its file is removed on drop.
struct Socket {
    clients: Clients,
    path: PathBuf,
}

impl Socket {
    fn open(path: &Path) -> io::Result<Self> {
        let listener = listen(path).or_else(|error| {
            let is_left_behind = error.kind() == io::ErrorKind::AddrInUse
                && UnixStream::connect(path)
                    .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused)
                && fs::symlink_metadata(path).is_ok_and(|found| {
                    use std::os::unix::fs::FileTypeExt as _;
                    found.file_type().is_socket()
                });
            if !is_left_behind {
                return Err(error);
            }
            fs::remove_file(path)?;
            listen(path)
        })?;
        Ok(Self {
            clients: Clients::new(listener, LIMITS)?,
            path: path.into(),
        })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::thread;

    #[test]
    fn an_answer_is_one_line_for_any_request() {
        let error = "request:1: \n\x1b[31m: unknown key".to_owned();
        assert_eq!(line(Err(error)), b"error: request:1:   [31m: unknown key\n");
    }

    #[test]
    fn only_the_user_of_the_gateway_may_connect() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let _socket = Socket::open(&path).unwrap();
        let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_signal_does_not_end_the_wait_for_an_answer() {
        use std::os::unix::thread::JoinHandleExt as _;
        let signalled = Waker::of_signals(&[libc::SIGUSR1]).unwrap();
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let reader = thread::spawn(move || read_answer(&mut near));
        for _ in 0..10 {
            thread::sleep(std::time::Duration::from_millis(10));
            // SAFETY: the thread is not joined yet, and the signal has a handler.
            unsafe { libc::pthread_kill(reader.as_pthread_t(), libc::SIGUSR1) };
        }
        far.write_all(b"ok: done\n").unwrap();
        drop(far);
        assert_eq!(reader.join().unwrap().unwrap(), "ok: done\n");
        assert_eq!(signalled.take(), 10);
    }

    #[test]
    fn an_answer_has_a_time_and_a_length() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let flood = thread::spawn(move || while far.write_all(&[b'x'; 4096]).is_ok() {});
        let error = read_answer(&mut near).unwrap_err().to_string();
        assert!(error.contains("too long to be a gateway's"), "{error}");
        drop(near);
        flood.join().unwrap();
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let trickle = thread::spawn(move || {
            while far.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(500));
            }
        });
        let started = Instant::now();
        assert!(read_answer(&mut near).is_err());
        assert!(
            started.elapsed() < 2 * REQUEST_TIMEOUT,
            "{:?}",
            started.elapsed()
        );
        drop(near);
        trickle.join().unwrap();
    }

    /// Returns the error that a client reports for this answer.
    fn heard(answer: &'static [u8]) -> GatewayError {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let gateway = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
            stream.write_all(answer).unwrap();
        });
        let error = request_change(&path, "").unwrap_err();
        gateway.join().unwrap();
        error
    }

    #[test]
    fn without_a_gateway_the_error_names_the_flag_that_starts_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let ask = || request_change(&path, "").unwrap_err().to_string();
        let help = "no gateway listens there; start one with --control";
        assert!(ask().contains(help), "{}", ask());
        drop(UnixListener::bind(&path).unwrap());
        assert!(ask().contains(help), "{}", ask());
    }

    #[test]
    fn a_gateway_that_ends_without_an_answer_does_not_count_as_a_refusal() {
        for answer in [&b""[..], b"ok: 3 pack"] {
            let error = heard(answer);
            assert!(!error.is_bad_input(), "{error}");
            let error = error.to_string();
            assert!(
                error.ends_with(": the gateway closed the connection; try again"),
                "{error}"
            );
        }
        assert!(heard(b"error: up: no\n").is_bad_input());
    }
}
