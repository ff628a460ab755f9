//! Congestion controls, and where each is available.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::sync::{PoisonError, RwLock};

/// TCP congestion control.
///
/// A new variant compiles only once this file says where it is available, and the simulator what
/// it runs for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tcp {
    /// RFC 5681 (simulator and lab).
    Reno,
    /// RFC 6582 (simulator).
    Newreno,
    /// RFC 9438 (simulator and lab).
    Cubic,
    /// RFC 8257 (simulator).
    Dctcp,
    /// BBR (lab); Linux' own is version 1.
    Bbr,
    /// BBRv3, draft-ietf-ccwg-bbr (simulator).
    Bbr3,
    /// From outside of asymq, under the name that [`Tcp::register`] was given (simulator).
    Outside(OutsideTcp),
}

/// A congestion control from outside of asymq.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutsideTcp {
    /// The name in flags, files and results: lower-case letters, digits and '-'.
    pub name: &'static str,
    /// The name in tables and charts.
    pub title: &'static str,
    /// Whether it sets a pace of its own.
    pub paces: bool,
    /// Whether it asks what each ACK says of the path, and which segments are lost.
    pub measures_deliveries: bool,
}

/// Those that this process knows.
static OUTSIDE: RwLock<Vec<OutsideTcp>> = RwLock::new(Vec::new());

/// What there is to say of a congestion control.
struct Entry {
    /// The name in flags, files and results.
    name: &'static str,
    /// The name as its RFC spells it.
    title: &'static str,
    /// Whether the simulator implements it.
    simulated: bool,
    /// What Linux calls it, if Linux has it.
    kernel_name: Option<&'static str>,
    /// Whether the simulator runs it with SACK unless told otherwise.
    with_sack: bool,
}

impl Tcp {
    /// All of asymq's own.
    pub const ALL: [Self; 6] = [
        Self::Reno,
        Self::Newreno,
        Self::Cubic,
        Self::Dctcp,
        Self::Bbr,
        Self::Bbr3,
    ];

    const fn entry(self) -> Entry {
        match self {
            Self::Reno => Entry {
                name: "reno",
                title: "Reno",
                simulated: true,
                kernel_name: Some("reno"),
                // As ns-2's, and the papers'.
                with_sack: false,
            },
            Self::Newreno => Entry {
                name: "newreno",
                title: "NewReno",
                simulated: true,
                // Linux recovers by SACK or RACK, under any congestion control.
                kernel_name: None,
                with_sack: false,
            },
            Self::Cubic => Entry {
                name: "cubic",
                title: "CUBIC",
                simulated: true,
                kernel_name: Some("cubic"),
                with_sack: true,
            },
            Self::Dctcp => Entry {
                name: "dctcp",
                title: "DCTCP",
                simulated: true,
                // Linux has it, for hosts whose every connection is set to ECN.
                kernel_name: None,
                with_sack: true,
            },
            Self::Bbr3 => Entry {
                name: "bbr3",
                title: "BBRv3",
                simulated: true,
                // Linux' "bbr" is version 1.
                kernel_name: None,
                with_sack: true,
            },
            Self::Bbr => Entry {
                name: "bbr",
                title: "BBR",
                simulated: false,
                kernel_name: Some("bbr"),
                with_sack: true,
            },
            Self::Outside(outside) => Entry {
                name: outside.name,
                title: outside.title,
                simulated: true,
                kernel_name: None,
                with_sack: true,
            },
        }
    }

    /// Makes a name known to flags, files and results of this process; one from outside that had it gives
    /// way. The simulator must be told what runs under it: `asymq_sim::congestion::register` does both.
    ///
    /// # Errors
    /// The name is taken by one of asymq's own, or is not one.
    pub fn register(outside: OutsideTcp) -> Result<Self, String> {
        let name = outside.name;
        let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(legal) {
            return Err(format!(
                "name {name:?}: use lower-case letters, digits and '-', a letter first"
            ));
        }
        if Self::ALL.iter().any(|tcp| tcp.name() == name) {
            return Err(format!(
                "name {name:?}: taken by a congestion control of asymq; use another"
            ));
        }
        let mut known = OUTSIDE.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|known| known.name != name);
        known.push(outside);
        Ok(Self::Outside(outside))
    }

    /// All that this process knows: asymq's own, then those from outside.
    pub fn known() -> impl Iterator<Item = Self> {
        let outside = OUTSIDE.read().unwrap_or_else(PoisonError::into_inner);
        let outside: Vec<Self> = outside.iter().copied().map(Self::Outside).collect();
        Self::ALL.into_iter().chain(outside)
    }

    /// The name in flags, files and results.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// The name as its RFC spells it.
    pub const fn title(self) -> &'static str {
        self.entry().title
    }

    /// Whether the simulator implements it.
    pub const fn is_simulated(self) -> bool {
        self.entry().simulated
    }

    /// What Linux calls it; `None` if Linux does not have it.
    pub const fn kernel_name(self) -> Option<&'static str> {
        self.entry().kernel_name
    }

    /// Whether the simulator runs it with SACK unless told otherwise: those that fill a window past
    /// what one retransmission per round-trip time can repair.
    pub const fn has_sack_by_default(self) -> bool {
        self.entry().with_sack
    }

    /// Whether it may start by HyStart++.
    pub const fn has_hystart(self) -> bool {
        matches!(self, Self::Reno | Self::Newreno | Self::Cubic)
    }

    /// Whether it may count bytes in place of ACKs.
    pub const fn counts_bytes(self) -> bool {
        self.has_hystart() || matches!(self, Self::Dctcp)
    }

    /// Whether it sets a pace of its own.
    pub const fn paces(self) -> bool {
        match self {
            Self::Bbr3 => true,
            Self::Outside(outside) => outside.paces,
            _ => false,
        }
    }

    /// Whether it asks what each ACK says of the path, and which segments are lost.
    pub const fn measures_deliveries(self) -> bool {
        match self {
            Self::Outside(outside) => outside.measures_deliveries,
            _ => self.paces(),
        }
    }

    /// All that the simulator implements.
    pub fn simulated() -> impl Iterator<Item = Self> {
        Self::known().filter(|tcp| tcp.is_simulated())
    }

    /// All that Linux may have, and so the lab.
    pub fn real() -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(|tcp| tcp.kernel_name().is_some())
    }

    /// The names as a choice, for an error: "reno, cubic or bbr".
    pub fn either(choice: impl Iterator<Item = Self>) -> String {
        let names: Vec<&str> = choice.map(Self::name).collect();
        match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
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

    fn from_str(name: &str) -> Result<Self, String> {
        Self::known()
            .find(|tcp| tcp.name() == name)
            .ok_or_else(|| format!("unknown; use {}", Self::either(Self::known())))
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
        for tcp in Tcp::ALL {
            assert_eq!(tcp.name().parse(), Ok(tcp));
            assert_eq!(serde_json::to_value(tcp).unwrap(), tcp.name());
        }
        let error = "red".parse::<Tcp>().unwrap_err();
        assert_eq!(
            error,
            "unknown; use reno, newreno, cubic, dctcp, bbr or bbr3"
        );
    }
}
