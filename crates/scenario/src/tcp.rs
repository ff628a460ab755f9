//! Congestion controls, and where each is available.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// TCP congestion control.
///
/// A new variant compiles only once this file says where it is available, and the simulator what
/// it runs for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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
}

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
    /// All of them.
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
        }
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

    /// All that the simulator implements.
    pub fn simulated() -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(|tcp| tcp.is_simulated())
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
        let mut all = Self::ALL.into_iter();
        all.find(|tcp| tcp.name() == name)
            .ok_or_else(|| format!("unknown; use {}", Self::either(Self::ALL.into_iter())))
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
