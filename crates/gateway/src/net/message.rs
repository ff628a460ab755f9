//! Netlink messages.

use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read as _, Write as _};

const HEADER: usize = 16;

pub(super) struct Message(Vec<u8>);

impl Message {
    /// Request to create something.
    pub(super) fn create(kind: u16) -> Self {
        Self::new(kind, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
    }

    /// Content of a message without its header.
    pub(super) const fn bare() -> Self {
        Self(Vec::new())
    }

    /// Formats the content as hexadecimal digits.
    pub(super) fn hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Request to change the interface of this index.
    pub(super) fn link(index: u32) -> Self {
        Self::get(libc::RTM_NEWLINK).body(&interface(index, 0, 0))
    }

    /// Request to read, change or remove one object.
    pub(super) fn get(kind: u16) -> Self {
        Self::new(kind, 0)
    }

    /// Request for all objects of a kind.
    pub(super) fn dump(kind: u16) -> Self {
        Self::new(kind, libc::NLM_F_DUMP)
    }

    /// Request to which the kernel answers only on failure.
    pub(super) fn silent(kind: u16) -> Self {
        Self::with_flags(kind, libc::NLM_F_REQUEST)
    }

    /// Request with these flags, which the kernel acknowledges.
    pub(super) fn new(kind: u16, flags: libc::c_int) -> Self {
        Self::with_flags(kind, flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK)
    }

    fn with_flags(kind: u16, flags: libc::c_int) -> Self {
        // nlmsghdr: length (filled last), type, flags, sequence number, port.
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&(flags as u16).to_ne_bytes());
        Self(bytes)
    }

    /// Appends a fixed structure.
    pub(super) fn body(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self.aligned()
    }

    pub(super) fn attribute(self, kind: u16, value: &[u8]) -> Self {
        self.nest(kind, |mut message| {
            message.0.extend_from_slice(value);
            message
        })
    }

    pub(super) fn text(self, kind: u16, value: &str) -> Self {
        self.attribute(kind, &[value.as_bytes(), &[0]].concat())
    }

    /// Appends an attribute that contains the attributes added by `content`.
    pub(super) fn nest(mut self, kind: u16, content: impl FnOnce(Self) -> Self) -> Self {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        self = content(self);
        let len = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        self.0[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.aligned()
    }

    fn aligned(mut self) -> Self {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        let len = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0
    }
}

/// The struct `ifinfomsg`: family, padding, type (2), index, flags, mask of changed flags.
pub(super) fn interface(index: u32, flags: u32, changed: u32) -> [u8; 16] {
    let mut body = [0; 16];
    body[4..8].copy_from_slice(&index.to_ne_bytes());
    body[8..12].copy_from_slice(&flags.to_ne_bytes());
    body[12..].copy_from_slice(&changed.to_ne_bytes());
    body
}

#[derive(Debug)]
pub(super) struct Netlink(Socket);

impl Netlink {
    pub(super) fn open() -> io::Result<Self> {
        Self::open_family(libc::NETLINK_ROUTE)
    }

    pub(super) fn open_family(family: libc::c_int) -> io::Result<Self> {
        let protocol = Protocol::from(family);
        let family = Domain::from(libc::AF_NETLINK);
        Socket::new(family, Type::RAW, Some(protocol)).map(Self)
    }

    /// Sends a request and waits for its acknowledgement.
    pub(super) fn request(&mut self, message: Message) -> io::Result<()> {
        self.ask(message, &mut |_| ())
    }

    /// Sends requests together, and returns the first error. The kernel's answers are complete when the write returns.
    pub(super) fn request_all(
        &mut self,
        messages: impl IntoIterator<Item = Message>,
    ) -> io::Result<()> {
        let bytes: Vec<u8> = messages.into_iter().flat_map(Message::finish).collect();
        self.0.write_all(&bytes)?;
        self.0.set_nonblocking(true)?;
        let mut answers = vec![0; 1 << 16];
        let mut failed = None;
        while let Ok(len) = self.0.read(&mut answers) {
            for (kind, body) in split(&answers[..len]) {
                if kind == libc::NLMSG_ERROR && code(body) != 0 {
                    failed.get_or_insert_with(|| io::Error::from_raw_os_error(-code(body)));
                }
            }
        }
        self.0.set_nonblocking(false)?;
        failed.map_or(Ok(()), Err)
    }

    /// Sends a request, and calls `each` with the body of every answer.
    pub(super) fn ask(&mut self, message: Message, each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
        self.0.write_all(&message.finish())?;
        let mut answers = vec![0; 1 << 16];
        loop {
            let len = self.0.read(&mut answers)?;
            if len == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            for (kind, body) in split(&answers[..len]) {
                // The body of the last message begins with an error number.
                if [libc::NLMSG_ERROR, libc::NLMSG_DONE].contains(&kind) {
                    return match code(body) {
                        0 => Ok(()),
                        error => Err(io::Error::from_raw_os_error(-error)),
                    };
                }
                each(body);
            }
        }
    }

    pub(super) const fn socket(&self) -> &Socket {
        &self.0
    }

    /// Sends a request; [`receive`](Self::receive) reads its answers.
    pub(super) fn send(&mut self, message: Message) -> io::Result<()> {
        self.0.write_all(&message.finish())
    }

    /// Calls `each` with type and body of all messages that are pending at a non-blocking socket.
    pub(super) fn receive(&mut self, each: &mut dyn FnMut(u16, &[u8])) -> io::Result<()> {
        let mut answers = [0; 1 << 15];
        loop {
            let len = match self.0.read(&mut answers) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                len => len?,
            };
            split(&answers[..len]).for_each(|(kind, body)| each(kind as u16, body));
        }
    }
}

fn code(body: &[u8]) -> i32 {
    let code = body.first_chunk();
    code.map_or(0, |code| i32::from_ne_bytes(*code))
}

/// Iterates over the messages: type and body of each.
fn split(mut bytes: &[u8]) -> impl Iterator<Item = (libc::c_int, &[u8])> {
    std::iter::from_fn(move || {
        let len = word(bytes, 0)? as usize;
        let kind = u16::from_ne_bytes([*bytes.get(4)?, *bytes.get(5)?]);
        let body = bytes.get(HEADER..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind.into(), body))
    })
}

/// Iterates over the attributes after a message's fixed structure.
pub(super) fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let len = usize::from(u16::from_ne_bytes(*bytes.first_chunk()?));
        let kind = u16::from_ne_bytes([*bytes.get(2)?, *bytes.get(3)?]);
        let value = bytes.get(4..len)?;
        bytes = bytes.get(len.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind & !(libc::NLA_F_NESTED as u16), value))
    })
}

/// Returns the value of the first attribute of this kind.
pub(super) fn find(bytes: &[u8], kind: u16) -> Option<&[u8]> {
    attributes(bytes).find_map(|(of, value)| (of == kind).then_some(value))
}

/// Reads 32 bits at an offset.
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word = bytes.get(at..)?.first_chunk().copied();
    word.map(u32::from_ne_bytes)
}

/// Reads a text with or without its final zero.
pub(super) fn text(value: &[u8]) -> String {
    let value = value.strip_suffix(&[0]).unwrap_or(value);
    String::from_utf8_lossy(value).into_owned()
}
