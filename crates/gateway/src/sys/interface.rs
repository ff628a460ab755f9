//! What an interface is and may do, by ioctl in the calling thread's network namespace.

use super::check;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// Interfaces by name, in the network namespace of the thread that made this.
#[derive(Debug)]
pub(crate) struct Interfaces(OwnedFd);

impl Interfaces {
    pub(crate) fn new() -> io::Result<Self> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::socket(libc::AF_INET, kind, 0) })?;
        // SAFETY: the descriptor is new and owned by nobody else.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The largest network packet it carries.
    pub(crate) fn mtu(&self, name: &str) -> io::Result<u32> {
        let request = self.ask(name, libc::SIOCGIFMTU)?;
        // SAFETY: the kernel has filled this member.
        Ok(unsafe { request.ifr_ifru.ifru_mtu }.cast_unsigned())
    }

    /// Its speed in Mbit/s, if its driver knows.
    pub(crate) fn speed(&self, name: &str) -> io::Result<Option<u32>> {
        const ETHTOOL_GSET: u32 = 1;
        /// `ethtool_cmd` of `linux/ethtool.h`.
        #[repr(C)]
        #[derive(Default)]
        struct Settings {
            command: u32,
            supported: u32,
            advertised: u32,
            speed_low: u16,
            bytes: [u8; 6],
            words: [u32; 2],
            speed_high: u16,
            more_bytes: [u8; 2],
            more_words: [u32; 3],
        }
        let mut settings = Settings {
            command: ETHTOOL_GSET,
            ..Settings::default()
        };
        let mut request = named(name)?;
        request.ifr_ifru.ifru_data = (&raw mut settings).cast();
        self.call(libc::SIOCETHTOOL, &mut request)?;
        let speed = u32::from(settings.speed_high) << 16 | u32::from(settings.speed_low);
        // Unknown is all ones, in 16 bits for old drivers.
        Ok((speed != u32::MAX && speed != 0xffff && speed != 0).then_some(speed))
    }

    /// Reads (returns `Some`) or sets an ethtool switch.
    pub(crate) fn ethtool(&self, name: &str, command: u32, value: u32) -> io::Result<u32> {
        #[repr(C)]
        struct Value {
            command: u32,
            data: u32,
        }
        let mut value = Value {
            command,
            data: value,
        };
        let mut request = named(name)?;
        request.ifr_ifru.ifru_data = (&raw mut value).cast();
        self.call(libc::SIOCETHTOOL, &mut request)?;
        Ok(value.data)
    }

    /// The names of all interfaces.
    pub(crate) fn names() -> Vec<String> {
        // SAFETY: returns null, or a list that ends with index 0 and is ours to free.
        let list = unsafe { libc::if_nameindex() };
        if list.is_null() {
            return Vec::new();
        }
        let mut names = Vec::new();
        let mut entry = list;
        // SAFETY: every entry up to and with the one of index 0 is valid, and so are the names of
        // those before it; the list is freed once and not used after.
        unsafe {
            while (*entry).if_index != 0 {
                let name = std::ffi::CStr::from_ptr((*entry).if_name);
                names.push(name.to_string_lossy().into_owned());
                entry = entry.add(1);
            }
            libc::if_freenameindex(list);
        }
        names
    }

    fn ask(&self, name: &str, code: libc::Ioctl) -> io::Result<libc::ifreq> {
        let mut request = named(name)?;
        self.call(code, &mut request)?;
        Ok(request)
    }

    fn call(&self, code: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
        // SAFETY: every code used here takes an ifreq; a pointer in it is valid for the call.
        check(unsafe { libc::ioctl(self.0.as_raw_fd(), code, std::ptr::from_mut(request)) })?;
        Ok(())
    }
}

fn named(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all-zero is a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    let name = CString::new(name)?;
    // The last byte stays 0.
    if name.as_bytes().is_empty() || name.as_bytes().len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENODEV));
    }
    for (to, &from) in request.ifr_name.iter_mut().zip(name.as_bytes()) {
        *to = from.cast_signed();
    }
    Ok(request)
}
