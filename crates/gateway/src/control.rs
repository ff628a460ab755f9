//! Changes that reach a running gateway from outside: its control socket, and SIGHUP.
//!
//! A request is the text of a settings file with what is to change, up to the end of the stream;
//! the answer is one line that begins with `ok:` or `error:`.

use crate::args::{GatewayArgs, LinkArgs, SetArgs, SettingsArgs};
use crate::change::Changer;
use crate::forwarder::Moved;
use crate::gateway::GatewayError;
use crate::stop::Bell;
use crate::sys::poll;
use asymq_scenario::{parse_flags, read_flags};
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A request longer than this is none.
const LONGEST_REQUEST: u64 = 1 << 16;
/// How long a client may think before it goes on.
const PATIENCE: Duration = Duration::from_secs(2);

/// What takes changes, on a thread of its own.
pub(crate) struct Control {
    socket: Option<Socket>,
    hangup: Option<(Bell, PathBuf)>,
    /// As on the command line, which overrides the file.
    typed: SettingsArgs,
    /// As in force.
    settings: SettingsArgs,
}

impl Control {
    /// Opens the socket and waits for SIGHUP, where `settings` ask for it.
    pub(crate) fn open(typed: &GatewayArgs, settings: &SettingsArgs) -> Result<Self, GatewayError> {
        let hangup = typed.config.clone().map(|file| {
            let bell = Bell::new()?;
            bell.on_signals(&[libc::SIGHUP])?;
            io::Result::Ok((bell, file))
        });
        let hangup = hangup.transpose().map_err(|source| GatewayError::System {
            action: "handling SIGHUP",
            source,
        })?;
        let socket = settings.control.as_deref().map(|path| {
            Socket::open(path).map_err(|source| GatewayError::Control {
                path: path.into(),
                source,
            })
        });
        Ok(Self {
            socket: socket.transpose()?,
            hangup,
            typed: typed.settings.clone(),
            settings: settings.clone(),
        })
    }

    /// Serves until `quit` rings. `changed` is told what is in force.
    pub(crate) fn serve(
        &mut self,
        changer: &Changer,
        quit: &Bell,
        changed: &dyn Fn(&LinkArgs),
        log: &dyn Fn(&str),
    ) {
        loop {
            let fds = [
                self.socket.as_ref().map(|socket| socket.listener.as_fd()),
                self.hangup.as_ref().map(|(bell, _)| bell.as_fd()),
                Some(quit.as_fd()),
            ];
            match poll(fds, None) {
                Ok([_, _, true]) | Err(_) => return,
                Ok([asked, hung_up, false]) => {
                    if asked {
                        self.answer(changer, changed);
                    }
                    if hung_up {
                        log(&self.read_again(changer, changed));
                    }
                }
            }
        }
    }

    fn answer(&mut self, changer: &Changer, changed: &dyn Fn(&LinkArgs)) {
        let Some(Ok((mut client, _))) = self.socket.as_ref().map(|s| s.listener.accept()) else {
            return;
        };
        let answer = match request(&mut client) {
            Ok(link) => self.apply(link.or(self.settings.link.clone()), changer, changed),
            Err(error) => Err(error),
        };
        let line = match answer {
            Ok(moved) => format!("ok: {}\n", described(moved)),
            Err(error) => format!("error: {error}\n"),
        };
        // A client that has gone is no concern of ours.
        let _ = client.write_all(line.as_bytes());
    }

    /// Reads the settings file again; answers what to say of it.
    fn read_again(&mut self, changer: &Changer, changed: &dyn Fn(&LinkArgs)) -> String {
        let Some((bell, file)) = &self.hangup else {
            return String::new();
        };
        bell.take();
        let (shown, old) = (file.display().to_string(), self.settings.clone());
        let read = read_flags::<SettingsArgs>(file)
            .map_err(|error| error.to_string())
            .and_then(|in_file| {
                let new = self.typed.clone().or(in_file);
                let moved = self.apply(new.link.clone(), changer, changed)?;
                Ok((new, moved))
            });
        match read {
            Ok((new, moved)) => {
                let later = [
                    (new.lan != old.lan, "lan"),
                    (new.wan != old.wan, "wan"),
                    (new.control != old.control, "control"),
                    (new.metrics != old.metrics, "metrics"),
                    (new.watch != old.watch, "watch"),
                    (new.json != old.json, "json"),
                ];
                let later: Vec<&str> = later
                    .iter()
                    .filter_map(|(is, key)| is.then_some(*key))
                    .collect();
                let later = match later.is_empty() {
                    true => String::new(),
                    false => format!("; takes a restart: {}", later.join(", ")),
                };
                format!("{shown} read again, {}{later}", described(moved))
            }
            Err(error) => format!("{error}; the settings stay as they were"),
        }
    }

    fn apply(
        &mut self,
        link: LinkArgs,
        changer: &Changer,
        changed: &dyn Fn(&LinkArgs),
    ) -> Result<Moved, String> {
        let config = link.config().map_err(|error| error.to_string())?;
        let moved = changer.change(config).ok_or("the gateway is stopping")?;
        changed(&link);
        self.settings.link = link;
        Ok(moved)
    }
}

fn described(moved: Moved) -> String {
    format!("{} packets moved, {} dropped", moved.packets, moved.dropped)
}

fn request(client: &mut UnixStream) -> Result<LinkArgs, String> {
    let mut read = || {
        client.set_read_timeout(Some(PATIENCE))?;
        client.set_write_timeout(Some(PATIENCE))?;
        let mut text = String::new();
        client.take(LONGEST_REQUEST).read_to_string(&mut text)?;
        io::Result::Ok(text)
    };
    let text = read().map_err(|error| format!("reading the request: {error}"))?;
    parse_flags(Path::new("request"), &text).map_err(|error| error.to_string())
}

/// A socket with a name, which goes with it.
struct Socket {
    listener: UnixListener,
    path: PathBuf,
}

impl Socket {
    fn open(path: &Path) -> io::Result<Self> {
        let listener = UnixListener::bind(path).or_else(|error| {
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
            UnixListener::bind(path)
        })?;
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
        Ok(Self {
            listener,
            path: path.into(),
        })
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Somebody may have removed it before us.
        let _ = fs::remove_file(&self.path);
    }
}

impl SetArgs {
    /// Tells the running gateway, and prints what it answers.
    pub(crate) fn run(&self) -> Result<(), GatewayError> {
        let control = |source| GatewayError::Control {
            path: self.control.clone(),
            source,
        };
        let settings = serde_json::to_value(&self.link).expect("flags are plain values");
        let lines = settings.as_object().into_iter().flatten();
        // A JSON value is one of TOML.
        let request: String = lines
            .filter(|(_, value)| !value.is_null() && **value != serde_json::json!([]))
            .map(|(key, value)| format!("{key} = {value}\n"))
            .collect();
        let mut stream = UnixStream::connect(&self.control).map_err(control)?;
        let mut answer = String::new();
        stream
            .write_all(request.as_bytes())
            .and_then(|()| stream.shutdown(Shutdown::Write))
            .and_then(|()| stream.read_to_string(&mut answer))
            .map_err(control)?;
        match answer.trim_end().strip_prefix("ok: ") {
            Some(done) => {
                // Done is done, whoever hears of it.
                let _ = writeln!(io::stdout(), "{done}");
                Ok(())
            }
            None => {
                let error = answer.trim_end().trim_start_matches("error: ");
                Err(GatewayError::Refused(error.into()))
            }
        }
    }
}
