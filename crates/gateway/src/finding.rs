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
    /// Any other host, which can only be used to try asymq.
    Trying,
}

/// A problem or a fact about a host.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// Flag or part of the host that has the problem.
    pub subject: String,
    /// The problem or fact.
    pub problem: String,
    /// Remedy of the problem, or advice.
    pub remedy: String,
    /// True if a gateway cannot work correctly until the problem is remedied.
    pub wrong: bool,
    /// Role of this host, in the finding about the role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<HostRole>,
}

impl Finding {
    /// Creates a finding that is not a problem.
    pub fn note(subject: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            subject: subject.into(),
            problem: problem.into(),
            remedy: remedy.into(),
            wrong: false,
            role: None,
        }
    }

    /// Creates a finding that is a problem.
    pub fn wrong(subject: &str, problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self {
            wrong: true,
            ..Self::note(subject, problem, remedy)
        }
    }
}
