//! Bytes that a link charges for a packet: the arithmetic and the keywords of `tc-cake(8)`.

use crate::decide::frame::Parsed;
use crate::{UnitError, nearest};
use Framing::{Atm, Plain, Ptm};
use alloc::format;
use alloc::string::ToString;
use core::{fmt, str::FromStr};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Framing {
    #[default]
    Plain,
    /// Whole ATM cells of 53 bytes, each with 48 bytes of payload (ADSL).
    Atm,
    /// PTM's 64b/65b code (VDSL2): one byte more for every 64 bytes or part of 64 bytes, as in CAKE.
    Ptm,
}

/// Accounting of one link's overhead.
///
/// By default the link charges a frame's own length. If an overhead is given, the link charges the IP packet's length
/// plus the overhead. The overhead must therefore include *everything* that the link adds, such as VLAN tags and PPPoE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overhead {
    /// Bytes added to every packet, -64 to 256.
    bytes: i32,
    /// Minimum bytes charged for a packet before framing, 0 to 256.
    mpu: u32,
    framing: Framing,
    basis: Basis,
}

/// Length to which the overhead is added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Basis {
    /// The frame's length, because no overhead was given.
    #[default]
    Frame,
    Ip,
    /// The frame's length, because of the keyword `raw`.
    Raw,
}

/// Keywords, each with additional bytes, framing and minimum.
const KEYWORDS: &[(&str, i32, Option<Framing>, Option<u32>)] = &[
    ("conservative", 48, Some(Atm), None),
    ("ipoa-vcmux", 8, Some(Atm), None),
    ("ipoa-llcsnap", 16, Some(Atm), None),
    ("bridged-vcmux", 24, Some(Atm), None),
    ("bridged-llcsnap", 32, Some(Atm), None),
    ("pppoa-vcmux", 10, Some(Atm), None),
    ("pppoa-llc", 14, Some(Atm), None),
    ("pppoe-vcmux", 32, Some(Atm), None),
    ("pppoe-llcsnap", 40, Some(Atm), None),
    ("pppoe-ptm", 30, Some(Ptm), None),
    ("bridged-ptm", 22, Some(Ptm), None),
    ("ethernet", 38, None, Some(84)),
    ("docsis", 18, Some(Plain), Some(64)),
    ("ether-vlan", 4, None, None),
];

impl Overhead {
    /// AAL5 over ATM: the IP packet and a trailer of 8 bytes, in whole cells.
    pub const AAL5: Self = Self {
        bytes: 8,
        mpu: 0,
        framing: Atm,
        basis: Basis::Ip,
    };
    /// Like `AAL5`, with an LLC header of 8 bytes.
    pub const AAL5_LLC: Self = Self {
        bytes: 16,
        ..Self::AAL5
    };

    /// Returns the bytes charged for a frame; at least 1.
    pub fn charge(&self, parsed: &Parsed, frame_len: u32) -> u32 {
        self.charge_packet(parsed.header.ip_len, parsed.network, frame_len)
    }

    /// Like [`charge`](Self::charge), for a frame with an IP packet of `ip_len` bytes (0 for none) at offset `network`.
    pub fn charge_packet(&self, ip_len: u32, network: u16, frame_len: u32) -> u32 {
        self.charge_len(match self.basis {
            Basis::Frame | Basis::Raw => frame_len,
            // Non-IP frames are charged from the network offset.
            Basis::Ip if ip_len == 0 => frame_len.saturating_sub(network.into()),
            Basis::Ip => ip_len,
        })
    }

    /// Returns the bytes charged for a packet of `len` bytes: an IP packet, or a frame if the overhead is [relative to
    /// the frame](Self::counts_frames). At least 1.
    pub fn charge_len(&self, len: u32) -> u32 {
        let len = i64::from(len) + i64::from(self.bytes);
        let len = len.max(self.mpu.into()).max(1) as u64;
        let len = match self.framing {
            Plain => len,
            Atm => len.div_ceil(48) * 53,
            Ptm => len + len.div_ceil(64),
        };
        u32::try_from(len).unwrap_or(u32::MAX)
    }

    /// True if the overhead is added to the frame's length, not to the IP packet's length.
    pub const fn counts_frames(&self) -> bool {
        !matches!(self.basis, Basis::Ip)
    }

    /// Returns the overhead as four numbers: bytes added; minimum; framing (0 plain, 1 ATM, 2 PTM); basis (0 frame, 1
    /// IP packet, 2 frame by `raw`).
    pub const fn numbers(&self) -> (i32, u32, u32, u32) {
        (self.bytes, self.mpu, self.framing as u32, self.basis as u32)
    }

    /// Creates an overhead from the numbers of [`numbers`](Self::numbers); `None` if a number is out of range.
    pub fn of_numbers(bytes: i32, mpu: u32, framing: u32, basis: u32) -> Option<Self> {
        let (min, max) = OVERHEAD_RANGE;
        let is_valid = (min..=max).contains(&bytes) && mpu <= MPU_RANGE.1.unsigned_abs();
        is_valid.then_some(())?;
        Some(Self {
            bytes,
            mpu,
            framing: *[Plain, Atm, Ptm].get(framing as usize)?,
            basis: *[Basis::Frame, Basis::Ip, Basis::Raw].get(basis as usize)?,
        })
    }

    /// True if a word is a keyword of CAKE other than `overhead` and `mpu`, which take a number.
    pub fn is_keyword(word: &str) -> bool {
        Self::default().keyword(word)
    }

    /// Applies one of CAKE's keywords. Returns false if the word is not a keyword.
    fn keyword(&mut self, word: &str) -> bool {
        match word {
            "raw" => {
                *self = Self {
                    mpu: self.mpu,
                    basis: Basis::Raw,
                    ..Self::default()
                }
            }
            // CAKE ignores this keyword too: the Ethernet header is never part of the basis.
            "via-ethernet" => {}
            "atm" => self.framing = Atm,
            "ptm" => self.framing = Ptm,
            "noatm" => self.framing = Plain,
            _ => {
                let mut known = KEYWORDS.iter();
                let Some((_, bytes, framing, mpu)) = known.find(|known| known.0 == word) else {
                    return false;
                };
                if word == "conservative" {
                    self.bytes = 0;
                }
                self.add(*bytes);
                self.framing = framing.unwrap_or(self.framing);
                self.mpu = mpu.unwrap_or(self.mpu);
            }
        }
        true
    }

    fn add(&mut self, bytes: i32) {
        self.bytes += bytes;
        if self.basis == Basis::Frame {
            self.basis = Basis::Ip;
        }
    }
}

const OVERHEAD_RANGE: (i32, i32) = (-64, 256);
const MPU_RANGE: (i32, i32) = (0, 256);

impl FromStr for Overhead {
    type Err = UnitError;

    /// Reads keywords from left to right, as `tc` does: `docsis`, `pppoe-vcmux ether-vlan`, `overhead 44 mpu 64 atm`.
    /// The bytes of keywords are added up; `overhead N` resets the sum to `N`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let mut overhead = Self::default();
        let mut words = text.split_ascii_whitespace();
        while let Some(word) = words.next() {
            match word {
                "overhead" => {
                    overhead.bytes = 0;
                    overhead.add(number("overhead", words.next(), OVERHEAD_RANGE)?);
                }
                "mpu" => overhead.mpu = number("mpu", words.next(), MPU_RANGE)?.unsigned_abs(),
                word if overhead.keyword(word) => {}
                word => return Err(unknown(word)),
            }
        }
        overhead.bytes = within("overhead", overhead.bytes.into(), OVERHEAD_RANGE)?;
        Ok(overhead)
    }
}

fn unknown(word: &str) -> UnitError {
    let keywords = KEYWORDS.iter().map(|(keyword, ..)| *keyword);
    let help = nearest(word, keywords.chain(["overhead", "mpu"])).map_or_else(
        || "use overhead N, mpu N, or a keyword of tc-cake such as docsis".to_string(),
        |nearest| format!("did you mean {nearest}?"),
    );
    UnitError::new(format!("unknown keyword '{word}'; {help}"))
}

fn number(name: &str, word: Option<&str>, range: (i32, i32)) -> Result<i32, UnitError> {
    let number = word.and_then(|word| word.parse().ok()).ok_or_else(|| {
        UnitError::new(format!("no number after {name}; write it like {name} 44"))
    })?;
    within(name, number, range)
}

fn within(name: &str, number: i64, (min, max): (i32, i32)) -> Result<i32, UnitError> {
    let number = i32::try_from(number).ok();
    number
        .filter(|number| (min..=max).contains(number))
        .ok_or_else(|| UnitError::new(format!("{name} out of range; use {min} to {max}")))
}

impl fmt::Display for Overhead {
    /// Writes the overhead in numbers that [`from_str`](Self::from_str) reads: `overhead 18 mpu 64 noatm`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.basis {
            Basis::Frame => {}
            Basis::Ip => write!(f, "overhead {} ", self.bytes)?,
            Basis::Raw => write!(f, "raw overhead {} ", self.bytes)?,
        }
        if self.mpu > 0 {
            write!(f, "mpu {} ", self.mpu)?;
        }
        f.write_str(match self.framing {
            Plain => "noatm",
            Atm => "atm",
            Ptm => "ptm",
        })
    }
}

#[cfg(feature = "serde")]
crate::units::serde_impl::as_string!(Overhead);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Header;

    fn overhead(text: &str) -> Overhead {
        text.parse().unwrap()
    }

    #[test]
    fn an_adsl_line_charges_whole_cells() {
        // 52 + 40 bytes are 2 cells, 1500 + 40 are 33.
        let line = overhead("overhead 40 atm");
        assert_eq!(line.charge_len(52), 106);
        assert_eq!(line.charge_len(1500), 1749);
        // 40 + 8 bytes fill one cell, 41 + 8 need a second.
        let line = overhead("ipoa-vcmux");
        assert_eq!(line.charge_len(40), 53);
        assert_eq!(line.charge_len(41), 106);
    }

    #[test]
    fn cells_change_the_normalized_asymmetry_as_in_sad() {
        // The paper's table 6, 8000/64 kbit/s: K grows from 4.88 to 5.64. The paper counts part-filled cells of data as
        // parts (1174 bytes); whole cells are 22 * 53 = 1166 bytes, and K is 5.68.
        let line = overhead("ipoa-vcmux");
        let k = |ack: u32, data: u32| 8000.0 / 64.0 * f64::from(ack) / f64::from(data);
        assert_eq!(line.charge_len(1024), 1166);
        assert!((k(40, 1024) - 4.88).abs() < 0.005);
        let with_atm = k(line.charge_len(40), line.charge_len(1024));
        assert!((with_atm - 5.64).abs() / 5.64 < 0.01, "{with_atm}");
    }

    #[test]
    fn ptm_charges_a_byte_for_every_64_begun() {
        // 34 + 30 bytes get one more, 35 + 30 bytes two more, 1500 + 30 bytes 24 more.
        let line = overhead("pppoe-ptm");
        assert_eq!(line.charge_len(34), 65);
        assert_eq!(line.charge_len(35), 67);
        assert_eq!(line.charge_len(1500), 1554);
    }

    #[test]
    fn small_packets_are_charged_the_least_frame() {
        let cable = overhead("docsis");
        assert_eq!(cable.charge_len(40), 64);
        assert_eq!(cable.charge_len(46), 64);
        assert_eq!(cable.charge_len(47), 65);
        assert_eq!(cable.charge_len(1500), 1518);
        let ethernet = overhead("ethernet");
        assert_eq!(ethernet.charge_len(40), 84);
        assert_eq!(ethernet.charge_len(1500), 1538);
    }

    #[test]
    fn keywords_are_those_of_tc_cake() {
        for (keywords, numbers) in [
            ("", "noatm"),
            ("raw", "raw overhead 0 noatm"),
            ("conservative", "overhead 48 atm"),
            ("ipoa-vcmux", "overhead 8 atm"),
            ("ipoa-llcsnap", "overhead 16 atm"),
            ("bridged-vcmux", "overhead 24 atm"),
            ("bridged-llcsnap", "overhead 32 atm"),
            ("pppoa-vcmux", "overhead 10 atm"),
            ("pppoa-llc", "overhead 14 atm"),
            ("pppoe-vcmux", "overhead 32 atm"),
            ("pppoe-llcsnap", "overhead 40 atm"),
            ("pppoe-ptm", "overhead 30 ptm"),
            ("bridged-ptm", "overhead 22 ptm"),
            ("ethernet", "overhead 38 mpu 84 noatm"),
            ("docsis", "overhead 18 mpu 64 noatm"),
            ("ethernet ether-vlan", "overhead 42 mpu 84 noatm"),
            (
                "bridged-ptm via-ethernet ether-vlan ether-vlan",
                "overhead 30 ptm",
            ),
            ("pppoe-ptm noatm", "overhead 30 noatm"),
            (
                "ether-vlan overhead -10 mpu 60",
                "overhead -10 mpu 60 noatm",
            ),
            ("raw ether-vlan", "raw overhead 4 noatm"),
        ] {
            assert_eq!(overhead(keywords).to_string(), numbers, "{keywords}");
            assert_eq!(overhead(numbers), overhead(keywords), "{keywords}");
        }
    }

    #[test]
    fn overhead_is_added_to_the_ip_packet_and_raw_to_the_frame() {
        // An IP packet of 52 bytes in a VLAN, padded to a frame of 72.
        let parsed = Parsed {
            header: Header {
                ip_len: 52,
                ..Header::default()
            },
            network: 18,
            transport: 38,
        };
        let charge = |text: &str, parsed: &Parsed| overhead(text).charge(parsed, 72);
        assert_eq!(charge("", &parsed), 72);
        assert_eq!(charge("raw overhead 4", &parsed), 76);
        assert_eq!(charge("overhead 18", &parsed), 70);
        // ARP has no IP length; the bytes after the tag count.
        let arp = Parsed {
            network: 18,
            ..Parsed::default()
        };
        assert_eq!(charge("overhead 18", &arp), 72);
    }

    #[test]
    fn no_length_is_charged_nothing_or_wraps() {
        assert_eq!(overhead("overhead -64").charge_len(40), 1);
        assert_eq!(overhead("overhead -64 mpu 60").charge_len(40), 60);
        assert_eq!(overhead("conservative").charge_len(u32::MAX), u32::MAX);
    }

    #[test]
    fn errors_of_overheads_give_a_valid_form() {
        let error = |text: &str| text.parse::<Overhead>().unwrap_err().to_string();
        assert_eq!(
            error("docsys"),
            "unknown keyword 'docsys'; did you mean `docsis`?"
        );
        assert!(error("adsl").starts_with("unknown keyword 'adsl'; use overhead N, mpu N"));
        assert_eq!(
            error("overhead"),
            "no number after overhead; write it like overhead 44"
        );
        assert_eq!(error("mpu x"), "no number after mpu; write it like mpu 44");
        assert_eq!(
            error("overhead 257"),
            "overhead out of range; use -64 to 256"
        );
        assert_eq!(error("mpu -1"), "mpu out of range; use 0 to 256");
        assert_eq!(
            error(&"ethernet ".repeat(7)),
            "overhead out of range; use -64 to 256"
        );
    }
}
