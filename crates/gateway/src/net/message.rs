//! Netlink messages to the kernel's routing family (rtnetlink).

use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, Read as _, Write as _};

const HEADER: usize = 16;

/// A request with its attributes.
#[derive(Debug)]
pub(super) struct Message(Vec<u8>);

impl Message {
    /// A request to make something that is not there yet.
    pub(super) fn create(kind: u16) -> Self {
        Self::new(kind, libc::NLM_F_CREATE | libc::NLM_F_EXCL)
    }

    /// A request to change something that is there.
    pub(super) fn change(kind: u16) -> Self {
        Self::new(kind, 0)
    }

    fn new(kind: u16, flags: libc::c_int) -> Self {
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        // nlmsghdr: length, filled last; type, flags, sequence number, port.
        let mut bytes = vec![0; HEADER];
        bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        Self(bytes)
    }

    /// Appends a fixed structure.
    pub(super) fn body(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        self.align();
    }

    /// Appends an attribute.
    pub(super) fn attribute(&mut self, kind: u16, value: &[u8]) {
        self.nest(kind, |message| message.0.extend_from_slice(value));
    }

    /// Appends a text attribute, with its final zero.
    pub(super) fn text(&mut self, kind: u16, value: &str) {
        self.nest(kind, |message| {
            message.0.extend_from_slice(value.as_bytes());
            message.0.push(0);
        });
    }

    /// Appends an attribute that holds what `content` appends.
    pub(super) fn nest(&mut self, kind: u16, content: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        self.0.extend_from_slice(&[0; 4]);
        content(self);
        let len = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&len.to_ne_bytes());
        self.0[start + 2..start + 4].copy_from_slice(&kind.to_ne_bytes());
        self.align();
    }

    fn align(&mut self) {
        self.0.resize(self.0.len().next_multiple_of(4), 0);
    }

    fn finish(mut self) -> Vec<u8> {
        let len = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0
    }
}

/// A netlink socket of the routing family.
#[derive(Debug)]
pub(super) struct Route(Socket);

impl Route {
    pub(super) fn open() -> io::Result<Self> {
        let family = Domain::from(libc::AF_NETLINK);
        let protocol = Protocol::from(libc::NETLINK_ROUTE);
        Socket::new(family, Type::RAW, Some(protocol)).map(Self)
    }

    /// Sends a request and waits for the kernel's word on it.
    pub(super) fn request(&mut self, message: Message) -> io::Result<()> {
        self.0.write_all(&message.finish())?;
        // The answer repeats the request behind the error number.
        let mut answer = [0; 4096];
        let len = self.0.read(&mut answer)?;
        let error = answer[..len]
            .get(HEADER..HEADER + 4)
            .and_then(|code| code.try_into().ok())
            .map(i32::from_ne_bytes)
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        match error {
            0 => Ok(()),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }
}
