//! Probes that an `irtt server` echoes, in its own protocol: datagrams of a magic number, flags and a
//! token; parameters are pairs of variable-length integers.

use crate::error::{Doing as _, MeasureError};
use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// Port of an irtt server.
pub(crate) const PORT: u16 = 2112;

const MAGIC: [u8; 3] = [0x14, 0xa7, 0x5b];
const OPEN: u8 = 1;
const REPLY: u8 = 2;
const CLOSE: u8 = 4;

/// Bytes of a probe, and of its Echo with two times.
pub(crate) const LEN: usize = 32;

/// Numbers of the parameters that the client sets.
const VERSION: u64 = 1;
const DURATION: u64 = 2;
const INTERVAL: u64 = 3;
const LENGTH: u64 = 4;
const STAMP: u64 = 6;
const CLOCK: u64 = 7;
const SERVER_FILL: u64 = 9;

/// Times of arrival and departure, by the monotonic clock.
const BOTH_STAMPS: i64 = 3;
const MONOTONIC: i64 = 2;

/// Waits for an answer before an opening is sent again.
const TRIES: [Duration; 4] = [
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];

/// An open connection's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conn(u64);

/// The parameters to which a server agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Agreed {
    version: i64,
    duration: i64,
    interval: i64,
    length: i64,
    stamp: i64,
    clock: i64,
}

impl Conn {
    /// Opens a connection for a time, with probes no closer than an interval.
    pub(crate) fn open(
        server: SocketAddr,
        socket: &UdpSocket,
        time: Duration,
        interval: Duration,
    ) -> Result<Self, MeasureError> {
        let wrong = |message: &str| MeasureError::Protocol {
            server: server.to_string(),
            message: message.into(),
        };
        let wanted = Agreed {
            version: 1,
            duration: time.as_nanos() as i64,
            interval: interval.as_nanos() as i64,
            length: LEN as i64,
            stamp: BOTH_STAMPS,
            clock: MONOTONIC,
        };
        let opening = wanted.opening();
        let mut bytes = [0; 256];
        for time in TRIES {
            socket
                .send(&opening)
                .and(socket.set_read_timeout(Some(time)))
                .doing(|| format!("sending to {server}"))?;
            let length = match socket.recv(&mut bytes) {
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                    return Err(error).doing(|| format!("asking {server} (irtt server, there)"));
                }
                Err(_) => continue,
            };
            let Some((flags, conn, parameters)) = head(&bytes[..length]) else {
                continue;
            };
            if flags & (OPEN | REPLY) != OPEN | REPLY {
                continue;
            }
            let agreed = Agreed::read(parameters).ok_or_else(|| wrong("no irtt server"))?;
            return match () {
                () if agreed.version != 1 || flags & CLOSE != 0 => {
                    Err(wrong("irtt of another protocol; version 1 is known"))
                }
                () if agreed.duration < wanted.duration => Err(wrong(&format!(
                    "irtt allows {} s and {} are needed; use a shorter --duration, or irtt server -d 0 there",
                    agreed.duration / 1_000_000_000,
                    wanted.duration / 1_000_000_000,
                ))),
                () if agreed.interval > wanted.interval => Err(wrong(&format!(
                    "irtt wants {} ms between probes; use irtt server -i 10ms there",
                    agreed.interval / 1_000_000
                ))),
                () if (agreed.stamp, agreed.clock, agreed.length)
                    != (BOTH_STAMPS, MONOTONIC, LEN as i64) =>
                {
                    Err(wrong(
                        "irtt gives no times of arrival and departure; use irtt server --tstamp dual there",
                    ))
                }
                () => Ok(conn),
            };
        }
        Err(wrong(
            "no irtt server answers there, or it wants a key (irtt server without --hmac, there)",
        ))
    }

    /// The probe with a number.
    pub(crate) fn write(self, number: u64) -> [u8; LEN] {
        let mut bytes = self.packet(0);
        bytes[12..16].copy_from_slice(&(number as u32).to_le_bytes());
        bytes
    }

    /// Number, and seconds of arrival and departure of an Echo; `None` if it is none of this connection.
    pub(crate) fn read(self, bytes: &[u8]) -> Option<(u64, f64, f64)> {
        let bytes: &[u8; LEN] = bytes.try_into().ok()?;
        let (flags, conn, rest) = head(bytes)?;
        if flags != REPLY || conn != self {
            return None;
        }
        let (number, times) = rest.split_first_chunk()?;
        let (times, _) = times.as_chunks();
        let seconds = |index: usize| i64::from_le_bytes(times[index]) as f64 / 1e9;
        Some((u32::from_le_bytes(*number).into(), seconds(0), seconds(1)))
    }

    /// The datagram that ends the connection.
    pub(crate) fn close(self) -> [u8; 12] {
        let packet = self.packet(CLOSE);
        std::array::from_fn(|index| packet[index])
    }

    fn packet(self, flags: u8) -> [u8; LEN] {
        let mut bytes = [0; LEN];
        bytes[..3].copy_from_slice(&MAGIC);
        bytes[3] = flags;
        bytes[4..12].copy_from_slice(&self.0.to_le_bytes());
        bytes
    }
}

/// Flags, connection and the rest of a datagram without a key.
fn head(bytes: &[u8]) -> Option<(u8, Conn, &[u8])> {
    let (flags, rest) = bytes.strip_prefix(&MAGIC)?.split_first()?;
    let (token, rest) = rest.split_first_chunk()?;
    Some((*flags, Conn(u64::from_le_bytes(*token)), rest))
}

impl Agreed {
    fn opening(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.push(OPEN);
        for (number, value) in [
            (VERSION, self.version),
            (DURATION, self.duration),
            (INTERVAL, self.interval),
            (LENGTH, self.length),
            (STAMP, self.stamp),
            (CLOCK, self.clock),
        ] {
            write_integer(&mut bytes, number);
            // Signs are in the lowest bit.
            write_integer(&mut bytes, ((value << 1) ^ (value >> 63)) as u64);
        }
        bytes
    }

    /// `None` where the bytes are no parameters. Unknown ones are ignored.
    fn read(mut bytes: &[u8]) -> Option<Self> {
        let mut agreed = Self::default();
        while !bytes.is_empty() {
            let number = read_integer(&mut bytes)?;
            let value = read_integer(&mut bytes)?;
            if number == SERVER_FILL {
                bytes = bytes.get(usize::try_from(value).ok()?..)?;
                continue;
            }
            let value = (value >> 1) as i64 ^ -((value & 1) as i64);
            match number {
                VERSION => agreed.version = value,
                DURATION => agreed.duration = value,
                INTERVAL => agreed.interval = value,
                LENGTH => agreed.length = value,
                STAMP => agreed.stamp = value,
                CLOCK => agreed.clock = value,
                _ => {}
            }
        }
        Some(agreed)
    }
}

/// Seven bits a byte, the lowest first; the highest bit says that more follow.
fn write_integer(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn read_integer(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WANTED: Agreed = Agreed {
        version: 1,
        duration: 60_000_000_000,
        interval: 30_000_000,
        length: 32,
        stamp: 3,
        clock: 2,
    };

    #[test]
    fn an_opening_has_the_bytes_that_irtt_has() {
        // irtt client -d 1m -i 30ms -l 32 --stats=none --tstamp=both --clock=monotonic (0.9.0), captured.
        let captured = [
            0x14, 0xa7, 0x5b, 0x01, 1, 2, 2, 0x80, 0xe0, 0xba, 0x84, 0xbf, 0x03, 3, 0x80, 0x8e,
            0xce, 0x1c, 4, 0x40, 6, 6, 7, 4,
        ];
        assert_eq!(WANTED.opening(), captured);
        assert_eq!(Agreed::read(&captured[4..]), Some(WANTED));
    }

    #[test]
    fn unknown_parameters_and_a_fill_are_passed_over() {
        let mut bytes = vec![9, 4, b'r', b'a', b'n', b'd', 200, 1, 3];
        bytes.extend(&WANTED.opening()[4..]);
        assert_eq!(Agreed::read(&bytes), Some(WANTED));
        assert_eq!(Agreed::read(&[9, 200, 1, 0]), None);
        assert_eq!(Agreed::read(&[2, 0xff]), None);
        assert_eq!(Agreed::read(&[0xff; 20]), None);
    }

    #[test]
    fn an_echo_is_read_and_what_is_none_of_the_connection_is_not() {
        let conn = Conn(0x0102_0304_0506_0708);
        let mut echo = conn.write(7);
        assert_eq!(conn.read(&echo), None, "no reply");
        echo[3] = REPLY;
        echo[16..24].copy_from_slice(&1_500_000_000_i64.to_le_bytes());
        echo[24..].copy_from_slice(&1_500_250_000_i64.to_le_bytes());
        assert_eq!(conn.read(&echo), Some((7, 1.5, 1.50025)));
        assert_eq!(Conn(1).read(&echo), None);
        assert_eq!(conn.read(&echo[..31]), None);
        assert_eq!(conn.close()[..4], [0x14, 0xa7, 0x5b, CLOSE]);
    }

    proptest! {
        #[test]
        fn hostile_datagrams_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = Agreed::read(&bytes);
            let _ = Conn(0).read(&bytes);
            let mut datagram = MAGIC.to_vec();
            datagram.extend(&bytes);
            if let Some((_, conn, parameters)) = head(&datagram) {
                let _ = Agreed::read(parameters);
                let _ = conn.read(&datagram);
            }
        }

        #[test]
        fn parameters_read_as_written(duration: i64, interval: i64, length: i64) {
            let agreed = Agreed { duration, interval, length, ..WANTED };
            prop_assert_eq!(Agreed::read(&agreed.opening()[4..]), Some(agreed));
        }
    }
}
