//! TCP sockets as a scenario wants them.

use crate::error::{Context as _, LabError};
use crate::sys::{clamp_window, fix_receive_buffer};
use asymq_core::units::Limit;
use asymq_scenario::{Scenario, Tcp};
use socket2::{Domain, Socket, Type};
use std::os::fd::AsFd as _;
use std::{fs, io};

/// Bytes not yet sent that a sender's socket takes before it refuses more: enough for a burst,
/// little enough that a thousand flows fit into memory.
const UNSENT: u32 = 256 * 1024;

/// Checks that this kernel has the congestion control.
pub(crate) fn check(tcp: Tcp) -> Result<(), LabError> {
    let Some(name) = tcp.kernel_name() else {
        return Err(LabError::CongestionControl {
            name: tcp.to_string(),
            why: "only the simulator has it; kernels recover by SACK under any",
            instead: Tcp::either(Tcp::real()),
        });
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
            Err(LabError::CongestionControl {
                name: tcp.to_string(),
                why: "this kernel lacks it",
                instead: Tcp::either(Tcp::real().filter(is_known)),
            })
        }
        // Without the privilege to choose freely here, there is that privilege in the lab's own network.
        _ => Ok(()),
    }
}

/// A socket of the calling thread's namespace with the scenario's settings. What a listener has,
/// the sockets it accepts have too.
pub(super) fn tcp_socket(scenario: &Scenario) -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    reset_on_close(&socket)?;
    // None would leave the kernel's default, under another's name.
    let name = scenario.tcp.kernel_name().ok_or_else(|| {
        let message = format!("Linux has no congestion control {}", scenario.tcp);
        io::Error::new(io::ErrorKind::Unsupported, message)
    })?;
    socket.set_tcp_congestion(name.as_bytes())?;
    socket.set_tcp_mss(scenario.mss)?;
    socket.set_tcp_notsent_lowat(UNSENT)?;
    if let Some(bytes) = receive_window(scenario) {
        fix_receive_buffer(socket.as_fd(), bytes.div_ceil(scenario.mss.into()))?;
        clamp_window(socket.as_fd(), bytes)?;
    }
    Ok(socket)
}

/// Closing sends a reset and forgets the connection. Otherwise unsent data would keep it, and with
/// it the whole namespace, in the kernel for minutes after this process has gone.
pub(super) fn reset_on_close(socket: &Socket) -> io::Result<()> {
    socket.set_linger(Some(std::time::Duration::ZERO))
}

/// The scenario's receive window in bytes of payload.
pub(super) fn receive_window(scenario: &Scenario) -> Option<u64> {
    scenario.window.map(|window| match window {
        Limit::Packets(packets) => u64::from(packets) * u64::from(scenario.mss),
        Limit::Bytes(bytes) => bytes,
    })
}
