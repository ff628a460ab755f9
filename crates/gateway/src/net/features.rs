//! Offloads of an interface, as `ethtool -K` switches them.

use crate::sys::Interfaces;
use std::io;

/// An offload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Transmit checksums left to the hardware.
    TxChecksum,
    /// TCP superpackets left to the hardware to split.
    Tso,
    /// Superpackets of any protocol, split late.
    Gso,
    /// Received frames merged into superpackets by the kernel.
    Gro,
    /// Received frames merged into superpackets by the hardware.
    Lro,
}

/// Whether an offload of the interface is on.
///
/// # Errors
/// No such interface, or it does not have the offload.
pub fn feature(interface: &str, feature: Feature) -> io::Result<bool> {
    let (get, _, bit) = feature.commands();
    Ok(Interfaces::new()?.ethtool(interface, get, 0)? & bit != 0)
}

/// Switches an offload of the interface; returns what it was.
///
/// # Errors
/// No such interface, or it does not let itself be switched; CAP_NET_ADMIN is missing.
pub fn set_feature(interface: &str, feature: Feature, on: bool) -> io::Result<bool> {
    let interfaces = Interfaces::new()?;
    let (get, set, bit) = feature.commands();
    let was = interfaces.ethtool(interface, get, 0)?;
    let wanted = if on { was | bit } else { was & !bit };
    if wanted != was {
        interfaces.ethtool(interface, set, wanted)?;
    }
    Ok(was & bit != 0)
}

impl Feature {
    /// The commands that read and write it, and its bit there (`linux/ethtool.h`).
    const fn commands(self) -> (u32, u32, u32) {
        const ETH_FLAG_LRO: u32 = 1 << 15;
        match self {
            Self::TxChecksum => (0x16, 0x17, 1),
            Self::Tso => (0x1e, 0x1f, 1),
            Self::Gso => (0x23, 0x24, 1),
            Self::Gro => (0x2b, 0x2c, 1),
            Self::Lro => (0x25, 0x26, ETH_FLAG_LRO),
        }
    }
}
