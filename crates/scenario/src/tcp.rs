//! Congestion controls, and the drivers that offer them.

use asymq_core::units::suggestion;
use std::fmt;
use std::str::FromStr;

/// Declares the properties of congestion controls, and the functions of [`Tcp`] that return them. Every congestion
/// control defines all properties, so no other code depends on its name.
macro_rules! properties {
    ($($(#[$doc:meta])* $name:ident: $type:ty,)+) => {
        struct Properties {
            /// The name in flags, files and results.
            name: &'static str,
            /// The name in tables and charts.
            title: &'static str,
            $($name: $type,)+
        }

        impl Tcp {
            $($(#[$doc])*
            pub const fn $name(&self) -> $type {
                self.properties().$name
            })+
        }
    };
}

properties! {
    /// True if the simulator implements this congestion control.
    is_simulated: bool,
    /// Linux's name of this congestion control; `None` if Linux lacks it.
    kernel_name: Option<&'static str>,
    /// True if the simulator uses SACK by default. Without SACK, recovery repairs one loss per round-trip time, too
    /// slow for a window that grows fast.
    has_sack_by_default: bool,
    /// The response to ECN.
    ecn: TcpEcn,
    /// True if this congestion control can count acknowledged bytes instead of ACKs (RFC 3465).
    counts_bytes: bool,
    /// True if this congestion control can use HyStart++ (RFC 9406) in the first slow start.
    has_hystart: bool,
    /// True if this congestion control sets a pacing rate from measured delivery rates.
    paces: bool,
}

/// Response of a congestion control to ECN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpEcn {
    /// If the scenario enables ECN, a mark counts as a loss (RFC 3168).
    AsLoss,
    /// The congestion control needs ECN, and a receiver that reports each mark (RFC 8257, section 3.2).
    Required,
    /// The specification of the congestion control defines no response.
    Unspecified,
}

/// Declares asymq's congestion controls with their properties.
macro_rules! congestion_controls {
    ($($(#[$doc:meta])+ $name:ident: $properties:expr,)* outside: $outside:expr,) => {
        /// A TCP congestion control.
        ///
        /// To add one, add an entry to this list; the compiler then requires an implementation in the simulator.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Tcp {
            $($(#[$doc])* $name,)*
            /// A congestion control of another crate, which the simulator finds by its name.
            Outside(OutsideTcp),
        }

        impl Tcp {
            /// All of asymq's congestion controls.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            const fn properties(&self) -> &'static Properties {
                match self {
                    $(Self::$name => { const PROPERTIES: Properties = $properties; &PROPERTIES })*
                    Self::Outside(_) => { const PROPERTIES: Properties = $outside; &PROPERTIES }
                }
            }
        }
    };
}

congestion_controls! {
    /// Reno, RFC 5681 (simulator and lab).
    Reno: Properties {
        // No SACK by default, as in ns-2 and the papers.
        name: "reno", title: "Reno", is_simulated: true, kernel_name: Some("reno"),
        has_sack_by_default: false, ecn: TcpEcn::AsLoss, counts_bytes: true, has_hystart: true, paces: false,
    },
    /// NewReno, RFC 6582 (simulator).
    Newreno: Properties {
        // Linux recovers by SACK or RACK under any congestion control, so it has no NewReno.
        name: "newreno", title: "NewReno", is_simulated: true, kernel_name: None,
        has_sack_by_default: false, ecn: TcpEcn::AsLoss, counts_bytes: true, has_hystart: true, paces: false,
    },
    /// CUBIC, RFC 9438 (simulator and lab).
    Cubic: Properties {
        name: "cubic", title: "CUBIC", is_simulated: true, kernel_name: Some("cubic"),
        has_sack_by_default: true, ecn: TcpEcn::AsLoss, counts_bytes: true, has_hystart: true, paces: false,
    },
    /// CUBIC on a host like Linux 6 (simulator): HyStart, timestamps, an initial window of ten segments, delayed and
    /// quick ACKs. In the lab, the kernel's CUBIC.
    Linux: Properties {
        name: "linux", title: "CUBIC of Linux", is_simulated: true, kernel_name: Some("cubic"),
        has_sack_by_default: true, ecn: TcpEcn::AsLoss, counts_bytes: true, has_hystart: true, paces: false,
    },
    /// DCTCP, RFC 8257 (simulator).
    Dctcp: Properties {
        // Linux offers DCTCP only to hosts that use ECN on every connection.
        name: "dctcp", title: "DCTCP", is_simulated: true, kernel_name: None,
        has_sack_by_default: true, ecn: TcpEcn::Required, counts_bytes: true, has_hystart: false, paces: false,
    },
    /// TCP Prague, draft-briscoe-iccrg-prague-congestion-control (simulator).
    Prague: Properties {
        // Only the L4S tree of Linux has Prague, not mainline.
        name: "prague", title: "Prague", is_simulated: true, kernel_name: None,
        has_sack_by_default: true, ecn: TcpEcn::Required, counts_bytes: false, has_hystart: false, paces: false,
    },
    /// BBR (lab); the version in Linux is 1.
    Bbr: Properties {
        name: "bbr", title: "BBR", is_simulated: false, kernel_name: Some("bbr"),
        has_sack_by_default: true, ecn: TcpEcn::AsLoss, counts_bytes: false, has_hystart: false, paces: false,
    },
    /// BBRv3, draft-ietf-ccwg-bbr (simulator).
    Bbr3: Properties {
        // Linux's "bbr" is version 1.
        name: "bbr3", title: "BBRv3", is_simulated: true, kernel_name: None,
        has_sack_by_default: true, ecn: TcpEcn::Unspecified, counts_bytes: false, has_hystart: false, paces: true,
    },
    // The other crate provides the name and the pacing.
    outside: Properties {
        name: "", title: "", is_simulated: true, kernel_name: None,
        has_sack_by_default: true, ecn: TcpEcn::AsLoss, counts_bytes: false, has_hystart: false, paces: false,
    },
}

/// The name of another crate's congestion control: a lower-case letter, then lower-case letters, digits and '-'; at
/// most 40 characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct OutsideTcp {
    letters: [u8; 40],
    len: u8,
}

impl OutsideTcp {
    /// Creates a name. It must differ from the names of asymq's congestion controls.
    ///
    /// # Errors
    /// The text is not a valid name, or asymq uses it.
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
            own => own.properties().name,
        }
    }

    /// The name in tables and charts.
    pub fn title(&self) -> &str {
        match self {
            Self::Outside(outside) => outside.name(),
            own => own.properties().title,
        }
    }

    /// True if hosts with this congestion control have Linux's defaults for everything else.
    pub const fn is_linux(&self) -> bool {
        matches!(self, Self::Linux)
    }

    /// True if packets are ECT(1), which identifies a scalable sender (RFC 9331), and hosts use AccECN.
    pub const fn sends_ect1(&self) -> bool {
        matches!(self, Self::Prague)
    }

    /// True if this congestion control needs ECN.
    pub fn needs_ecn(&self) -> bool {
        self.ecn() == TcpEcn::Required
    }

    /// Returns the congestion controls of asymq for which `has` is true.
    pub fn all_that(has: impl Fn(&Self) -> bool) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(has)
    }

    /// Returns the congestion controls of asymq that the simulator implements.
    pub fn simulated() -> impl Iterator<Item = Self> {
        Self::all_that(Self::is_simulated)
    }

    /// Returns the congestion controls that the lab can use because Linux may have them.
    pub fn real() -> impl Iterator<Item = Self> {
        Self::all_that(|tcp| tcp.kernel_name().is_some())
    }

    /// Lists the names for an error message: "reno, cubic or bbr".
    pub fn either(choice: impl Iterator<Item = Self>) -> String {
        Self::joined(choice, "or")
    }

    /// Lists the names: "reno, cubic and bbr".
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

    /// Parses a congestion control's name. A name that asymq does not have is checked later, by the driver.
    fn from_str(name: &str) -> Result<Self, String> {
        let own = Self::ALL.iter().find(|tcp| tcp.name() == name);
        match own {
            Some(own) => Ok(*own),
            None => OutsideTcp::new(name).map(Self::Outside).map_err(|_| {
                let own = Self::ALL.iter().map(Self::name);
                format!("unknown{}", suggestion(name, own))
            }),
        }
    }
}

crate::text::serde_as_string!(Tcp);

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
        let error = "Cubic".parse::<Tcp>().unwrap_err();
        assert_eq!(error, "unknown; did you mean `cubic`?");
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
