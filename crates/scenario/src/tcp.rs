//! Congestion controls, and where each is available.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

/// Description of a congestion control. Every field must be given: nothing that differs between congestion
/// controls is decided elsewhere by name.
struct Entry {
    /// The name in flags, files and results.
    name: &'static str,
    /// The name as its RFC spells it.
    title: &'static str,
    /// Availability in the simulator.
    simulated: bool,
    /// Linux's name, if Linux has it.
    kernel_name: Option<&'static str>,
    /// ns-2's name of its sender, if ns-2 runs it without Linux's code.
    ns2_name: Option<&'static str>,
    /// SACK in the simulator unless a scenario says otherwise: for those that fill a window past what one
    /// retransmission per round-trip time can repair.
    with_sack: bool,
    ecn: TcpEcn,
    /// Appropriate byte counting (RFC 3465) in place of ACKs, if asked for.
    counts_bytes: bool,
    /// A start by HyStart++ (RFC 9406), if asked for.
    has_hystart: bool,
    /// A pace of its own, set by the deliveries that it measures.
    paces: bool,
}

/// Response of a congestion control to ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpEcn {
    /// A mark counts as a loss (RFC 3168), if a scenario asks for ECN.
    AsLoss,
    /// It needs ECN, and a receiver that echoes each mark (RFC 8257, section 3.2).
    Required,
    /// Its specification has none.
    Unspecified,
}

/// Declares the congestion controls of asymq, each with its entry.
macro_rules! congestion_controls {
    ($($(#[$doc:meta])* $name:ident: $entry:expr,)*) => {
        /// TCP congestion control.
        ///
        /// A new one is an entry here, and compiles once the simulator says what it runs for it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Tcp {
            $($(#[$doc])* $name,)*
            /// From outside of asymq: the simulator's catalog says what runs under its name.
            Outside(OutsideTcp),
        }

        impl Tcp {
            /// All of asymq's own.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            const fn entry(&self) -> &'static Entry {
                match self {
                    $(Self::$name => { const ENTRY: Entry = $entry; &ENTRY })*
                    Self::Outside(_) => &OUTSIDE,
                }
            }
        }
    };
}

congestion_controls! {
    /// RFC 5681 (simulator and lab).
    Reno: Entry {
        name: "reno",
        title: "Reno",
        simulated: true,
        kernel_name: Some("reno"),
        ns2_name: Some("Reno"),
        // As ns-2's, and the papers'.
        with_sack: false,
        ecn: TcpEcn::AsLoss,
        counts_bytes: true,
        has_hystart: true,
        paces: false,
    },
    /// RFC 6582 (simulator).
    Newreno: Entry {
        name: "newreno",
        title: "NewReno",
        simulated: true,
        // Linux recovers by SACK or RACK, under any congestion control.
        kernel_name: None,
        ns2_name: Some("Newreno"),
        with_sack: false,
        ecn: TcpEcn::AsLoss,
        counts_bytes: true,
        has_hystart: true,
        paces: false,
    },
    /// RFC 9438 (simulator and lab).
    Cubic: Entry {
        name: "cubic",
        title: "CUBIC",
        simulated: true,
        kernel_name: Some("cubic"),
        ns2_name: None,
        with_sack: true,
        ecn: TcpEcn::AsLoss,
        counts_bytes: true,
        has_hystart: true,
        paces: false,
    },
    /// CUBIC at hosts as Linux 6 has them: HyStart, timestamps, ten segments to begin with, delayed and quick
    /// ACKs (simulator; in the lab the kernel's CUBIC).
    Linux: Entry {
        name: "linux",
        title: "CUBIC of Linux",
        simulated: true,
        kernel_name: Some("cubic"),
        ns2_name: None,
        with_sack: true,
        ecn: TcpEcn::AsLoss,
        counts_bytes: true,
        has_hystart: true,
        paces: false,
    },
    /// RFC 8257 (simulator).
    Dctcp: Entry {
        name: "dctcp",
        title: "DCTCP",
        simulated: true,
        // Linux has it, for hosts whose every connection is set to ECN.
        kernel_name: None,
        ns2_name: None,
        with_sack: true,
        ecn: TcpEcn::Required,
        counts_bytes: true,
        has_hystart: false,
        paces: false,
    },
    /// TCP Prague, draft-briscoe-iccrg-prague-congestion-control (simulator).
    Prague: Entry {
        name: "prague",
        title: "Prague",
        simulated: true,
        // L4S' tree of Linux has it, mainline not.
        kernel_name: None,
        ns2_name: None,
        with_sack: true,
        ecn: TcpEcn::Required,
        counts_bytes: false,
        has_hystart: false,
        paces: false,
    },
    /// BBR (lab); Linux' own is version 1.
    Bbr: Entry {
        name: "bbr",
        title: "BBR",
        simulated: false,
        kernel_name: Some("bbr"),
        ns2_name: None,
        with_sack: true,
        ecn: TcpEcn::AsLoss,
        counts_bytes: false,
        has_hystart: false,
        paces: false,
    },
    /// BBRv3, draft-ietf-ccwg-bbr (simulator).
    Bbr3: Entry {
        name: "bbr3",
        title: "BBRv3",
        simulated: true,
        // Linux' "bbr" is version 1.
        kernel_name: None,
        ns2_name: None,
        with_sack: true,
        ecn: TcpEcn::Unspecified,
        counts_bytes: false,
        has_hystart: false,
        paces: true,
    },
}

/// The entry of all from outside; name and pace are their own.
const OUTSIDE: Entry = Entry {
    name: "",
    title: "",
    simulated: true,
    kernel_name: None,
    ns2_name: None,
    with_sack: true,
    ecn: TcpEcn::AsLoss,
    counts_bytes: false,
    has_hystart: false,
    paces: false,
};

/// The name of a congestion control from outside of asymq: lower-case letters, digits and '-', a letter
/// first, at most 40 in all.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutsideTcp {
    letters: [u8; 40],
    len: u8,
}

impl OutsideTcp {
    /// A name that none of asymq's own has.
    ///
    /// # Errors
    /// It is no such name, or taken.
    pub fn new(name: &str) -> Result<Self, String> {
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(legal) {
            return Err(format!(
                "name {name:?}: use lower-case letters, digits and '-', a letter first"
            ));
        }
        if Tcp::ALL.iter().any(|tcp| tcp.name() == name) {
            return Err(format!(
                "name {name:?}: taken by a congestion control of asymq; use another"
            ));
        }
        let mut letters = [0; 40];
        let Some(room) = letters.get_mut(..name.len()) else {
            return Err(format!("name {name:?}: too long; use at most 40 letters"));
        };
        room.copy_from_slice(name.as_bytes());
        let len = name.len() as u8;
        Ok(Self { letters, len })
    }

    /// The name.
    pub fn name(&self) -> &str {
        let letters = &self.letters[..self.len.into()];
        std::str::from_utf8(letters).expect("ASCII by construction")
    }
}

impl fmt::Debug for OutsideTcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Tcp {
    /// The name in flags, files and results.
    pub fn name(&self) -> &str {
        match self {
            Self::Outside(outside) => outside.name(),
            own => own.entry().name,
        }
    }

    /// The name in tables and charts, as its RFC spells it.
    pub fn title(&self) -> &str {
        match self {
            Self::Outside(outside) => outside.name(),
            own => own.entry().title,
        }
    }

    /// True if the simulator implements it.
    pub const fn is_simulated(&self) -> bool {
        self.entry().simulated
    }

    /// Linux's name of it; `None` if Linux does not have it.
    pub const fn kernel_name(&self) -> Option<&'static str> {
        self.entry().kernel_name
    }

    /// ns-2's name of its sender; `None` if ns-2 has it as Linux's code only, or not.
    pub const fn ns2_name(&self) -> Option<&'static str> {
        self.entry().ns2_name
    }

    /// True if the simulator runs it with SACK unless a scenario says otherwise.
    pub const fn has_sack_by_default(&self) -> bool {
        self.entry().with_sack
    }

    /// Its response to ECN.
    pub const fn ecn(&self) -> TcpEcn {
        self.entry().ecn
    }

    /// True if its hosts have the defaults of Linux beside its congestion control.
    pub const fn is_linux(&self) -> bool {
        matches!(self, Self::Linux)
    }

    /// True if its segments are ECT(1), which marks them as a scalable sender's (RFC 9331), and its hosts speak
    /// AccECN.
    pub const fn sends_ect1(&self) -> bool {
        matches!(self, Self::Prague)
    }

    /// True if it needs ECN.
    pub fn needs_ecn(&self) -> bool {
        self.ecn() == TcpEcn::Required
    }

    /// True if it may start by HyStart++.
    pub const fn has_hystart(&self) -> bool {
        self.entry().has_hystart
    }

    /// True if it may count bytes in place of ACKs.
    pub const fn counts_bytes(&self) -> bool {
        self.entry().counts_bytes
    }

    /// True if one of asymq's own sets a pace of its own, by the deliveries that it measures.
    pub const fn paces(&self) -> bool {
        self.entry().paces
    }

    /// Those of asymq's own that `has` holds for.
    pub fn all_that(has: impl Fn(&Self) -> bool) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(has)
    }

    /// Those of asymq's own that the simulator implements.
    pub fn simulated() -> impl Iterator<Item = Self> {
        Self::all_that(Self::is_simulated)
    }

    /// All that Linux may have, and so the lab.
    pub fn real() -> impl Iterator<Item = Self> {
        Self::all_that(|tcp| tcp.kernel_name().is_some())
    }

    /// The names as a choice, for an error: "reno, cubic or bbr".
    pub fn either(choice: impl Iterator<Item = Self>) -> String {
        Self::joined(choice, "or")
    }

    /// The names in words: "reno, cubic and bbr".
    pub fn joined(choice: impl Iterator<Item = Self>, last_by: &str) -> String {
        let names: Vec<String> = choice.map(|tcp| tcp.to_string()).collect();
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => {
                format!("{} {last_by} {last}", rest.join(", "))
            }
            _ => names.concat(),
        }
    }
}

impl fmt::Display for Tcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Tcp {
    type Err = String;

    /// One of asymq's own, or a name from outside: a driver that does not know that refuses it.
    fn from_str(name: &str) -> Result<Self, String> {
        let own = Self::ALL.iter().find(|tcp| tcp.name() == name);
        match own {
            Some(own) => Ok(*own),
            None => OutsideTcp::new(name).map(Self::Outside).map_err(|_| {
                let own = Self::ALL.iter().copied();
                format!("unknown; use {}", Self::either(own))
            }),
        }
    }
}

impl Serialize for Tcp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Tcp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = Cow::<str>::deserialize(deserializer)?;
        let named: Result<Self, String> = name.parse();
        named.map_err(|error| D::Error::custom(format_args!("{name}: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_congestion_control_is_available_somewhere() {
        for tcp in Tcp::ALL {
            assert!(tcp.is_simulated() || tcp.kernel_name().is_some(), "{tcp}");
        }
    }

    #[test]
    fn names_are_those_of_results_and_read_back() {
        let outside = Tcp::Outside(OutsideTcp::new("my-tcp-2").unwrap());
        for tcp in Tcp::ALL.iter().chain([&outside]) {
            assert_eq!(tcp.name().parse(), Ok(*tcp));
            assert_eq!(serde_json::to_value(tcp).unwrap(), tcp.name());
        }
        let error = "Red".parse::<Tcp>().unwrap_err();
        assert_eq!(
            error,
            "unknown; use reno, newreno, cubic, linux, dctcp, prague, bbr or bbr3"
        );
    }

    #[test]
    fn names_from_outside_are_words_that_are_free() {
        let long = "a".repeat(41);
        for (name, wrong) in [
            ("cubic", "taken"),
            ("Mine", "lower-case"),
            ("", "lower-case"),
            ("7up", "a letter first"),
            (&long, "at most 40"),
        ] {
            let error = OutsideTcp::new(name).unwrap_err();
            assert!(error.contains(wrong), "{error}");
        }
    }
}
