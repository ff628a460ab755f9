//! Results of `asymq gateway check`.

/// Role of a host in the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostRole {
    /// Between router and modem: a bridge.
    Box,
    /// The router.
    Router,
    /// A router that runs OpenWrt.
    OpenWrt,
    /// Another host.
    Trying,
}

/// A fault or a fact about a host.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Flag, or part of the host.
    pub subject: String,
    /// Fault or fact.
    pub problem: String,
    /// Remedy, or advice.
    pub remedy: String,
    /// True if a gateway does not work correctly with it.
    pub wrong: bool,
    /// Role of this host, in the finding about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<HostRole>,
}

impl Finding {
    /// A fact worth knowing.
    pub fn note(subject: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            problem: problem.into(),
            remedy: remedy.into(),
            wrong: false,
            role: None,
        }
    }

    /// A fault.
    pub fn wrong(subject: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            wrong: true,
            ..Self::note(subject, problem, remedy)
        }
    }
}
