//! Offloads and speed of an interface (ethtool).

use crate::sys::ethtool;
use asymq_core::units::Rate;
use std::io;

/// An offload: work on packets that the hardware or the kernel does for a sender or receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Feature {
    /// Transmit checksums computed by the hardware.
    TxChecksum,
    /// TCP segmentation by the hardware.
    Tso,
    /// Generic segmentation offload: frames split late in the kernel.
    Gso,
    /// Generic receive offload: frames merged by the kernel.
    Gro,
    /// Large receive offload: frames merged by the hardware.
    Lro,
}

/// True if an offload of the interface is enabled. Fails if the driver does not report the offload.
pub fn feature(interface: &str, feature: Feature) -> io::Result<bool> {
    let (get, _, bit) = feature.commands();
    let [_, now] = ethtool(interface, [get, 0])?;
    Ok(now & bit != 0)
}

/// Enables or disables an offload of the interface. Returns the offload's previous state. Fails if the driver refuses.
pub fn set_feature(interface: &str, feature: Feature, on: bool) -> io::Result<bool> {
    let (get, set, bit) = feature.commands();
    let [_, was] = ethtool(interface, [get, 0])?;
    let wanted = if on { was | bit } else { was & !bit };
    if wanted != was {
        ethtool(interface, [set, wanted])?;
    }
    Ok(was & bit != 0)
}

impl Feature {
    /// Returns the commands to read and write the offload, and the offload's bit (`linux/ethtool.h`).
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

/// Speed of the interface, if it has a carrier and its driver reports one.
pub fn link_speed(interface: &str) -> Option<Rate> {
    const ETHTOOL_GSET: u32 = 1;
    // `ethtool_cmd`: the fourth and the eighth word contain the two halves of the speed in Mbit/s.
    let mut command = [0; 11];
    command[0] = ETHTOOL_GSET;
    let answer = ethtool(interface, command).ok()?;
    let half = |word: u32| {
        let [a, b, ..] = word.to_ne_bytes();
        u32::from(u16::from_ne_bytes([a, b]))
    };
    let speed = half(answer[7]) << 16 | half(answer[3]);
    // All ones mean unknown; old drivers use 16 bits.
    let known = speed != u32::MAX && speed != 0xffff;
    Rate::from_bits_per_sec(u64::from(speed) * 1_000_000).filter(|_| known)
}
