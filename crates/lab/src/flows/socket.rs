//! TCP sockets of a scenario.

use crate::error::{Context as _, LabError};
use asymq_core::units::Limit;
use asymq_gateway::{set_number, set_receive_buffer};
use asymq_scenario::{Scenario, Tcp};
use socket2::{Domain, Socket, Type};
use std::{fs, io};

/// Limit of unsent bytes in a socket: enough for a burst, and small enough for a thousand flows.
const UNSENT: u32 = 256 * 1024;

/// Checks that the kernel has the congestion control.
pub(crate) fn check(tcp: Tcp) -> Result<(), LabError> {
    let refuse = |why: &str, instead: String| {
        let message = format!("{tcp}: {why}; use {instead}");
        Err(LabError::CongestionControl(message))
    };
    let Some(name) = tcp.kernel_name() else {
        let why = "only the simulator has it; real TCP always recovers with SACK";
        return refuse(why, Tcp::either(Tcp::real()));
    };
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).during("opening a TCP socket")?;
    match socket.set_tcp_congestion(name.as_bytes()) {
        Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
            let known = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
                .unwrap_or_default();
            let is_known = |tcp: &Tcp| {
                let mut known = known.split_whitespace();
                known.any(|known| Some(known) == tcp.kernel_name())
            };
            let available = Tcp::either(Tcp::real().filter(is_known));
            refuse("this kernel lacks it", available)
        }
        // This user may lack the privileges, but the lab's namespaces have them.
        _ => Ok(()),
    }
}

/// Creates a socket with the scenario's settings. Accepted sockets inherit the listener's settings.
pub(super) fn tcp_socket(scenario: &Scenario) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    reset_on_close(&socket)?;
    // Fails instead of using the kernel's default under another name.
    let name = scenario.tcp.kernel_name().ok_or_else(|| {
        let message = format!("Linux has no congestion control {}", scenario.tcp);
        io::Error::new(io::ErrorKind::Unsupported, message)
    })?;
    socket.set_tcp_congestion(name.as_bytes())?;
    socket.set_tcp_mss(scenario.mss)?;
    socket.set_tcp_notsent_lowat(UNSENT)?;
    if let Some(bytes) = receive_window(scenario) {
        // Memory of a full segment; the kernel doubles the value.
        const SEGMENT_MEMORY: u64 = 2304;
        let segments = bytes.div_ceil(scenario.mss.into());
        let memory = segments.saturating_mul(SEGMENT_MEMORY).min(1 << 30);
        set_receive_buffer(&socket, memory as usize)?;
        clamp_window(&socket, bytes)?;
    }
    Ok(socket)
}

/// Limits the receive window to `bytes`, at least about 2 kB. Newer kernels reset the limit when they remeasure
/// segments, so callers set the limit again as data arrives.
pub(super) fn clamp_window(socket: &Socket, bytes: u64) -> io::Result<()> {
    let clamp = bytes.min(1 << 30) as i32;
    set_number(socket, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, clamp)
}

/// Resets the connection on close. Otherwise unsent data would keep the namespace alive for minutes.
pub(super) fn reset_on_close(socket: &Socket) -> io::Result<()> {
    socket.set_linger(Some(std::time::Duration::ZERO))
}

/// Receive window in bytes of payload.
pub(super) fn receive_window(scenario: &Scenario) -> Option<u64> {
    scenario.window.map(|window| match window {
        Limit::Packets(packets) => u64::from(packets) * u64::from(scenario.mss),
        Limit::Bytes(bytes) => bytes,
    })
}
