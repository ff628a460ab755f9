//! The result of an inspection.

/// A place for asymq.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// A box between router and modem: a bridge.
    Box,
    /// This host is the router.
    Router,
    /// It is one that runs OpenWrt.
    OpenWrt,
    /// None of these: a computer for trying.
    Trying,
}

/// A fault, or a fact worth knowing.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// The flag or the part of the host that it is about.
    pub subject: String,
    /// The fault.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
    /// True if it keeps a gateway from working as it should.
    pub wrong: bool,
    /// The way that this host is, if the finding is about that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<Place>,
}

impl Finding {
    pub(crate) fn note(
        subject: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            wrong: false,
            ..Self::wrong(subject, problem, remedy)
        }
    }

    pub(crate) fn wrong(
        subject: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            subject: subject.into(),
            problem: problem.into(),
            remedy: remedy.into(),
            wrong: true,
            way: None,
        }
    }
}
