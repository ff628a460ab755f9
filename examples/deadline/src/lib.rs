//! An example of a discipline in another crate; `docs/research/extending.md` builds it step by step.
//!
//! [`deadline-slots`](WithDeadline) holds ACKs in SAD's slots and data in a [`Deadline`] queue. It serves ACKs first,
//! and a [`Feedback`] controller changes the deadline. asymq's crates do not name the discipline, yet it runs in the
//! simulator, the lab and the gateway. `asymq-laws` tests it, and tables and metrics show it.

mod deadline;
mod feedback;

/// Compiles the program in the documentation page.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/research/extending.md")]
pub struct Page;

pub use deadline::Deadline;
pub use feedback::Feedback;

use asymq_core::catalog::{BoxedQueue, Catalog, Config, Entry, Maker, Role, Standard, Typed};
use asymq_core::hold::BuildError;
use asymq_core::{Duration, Limit, Packet};

const DEADLINE: Typed<Duration> = Typed::new(
    "deadline",
    "Sojourn time above which data is dropped or marked; the controller changes it",
    "50ms",
);

const ECN: Typed<bool> = Typed::new(
    "ecn",
    "Mark ECN-capable packets instead of dropping them early",
    "true",
);

/// The discipline, and its two new parts.
static ENTRIES: [Entry; 3] = [
    Entry {
        title: "Deadline-slots",
        brings: &[
            ("ack-queue", "sad"),
            ("data-queue", "deadline"),
            ("service", "acks-first"),
            ("controller", "feedback"),
        ],
        ..Entry::part(
            Role::Qdisc,
            "deadline-slots",
            "A deadline for data, a slot per flow for ACKs",
        )
    },
    Entry {
        parameters: &[DEADLINE.parameter, ECN.parameter],
        ..Entry::part(
            Role::DataQueue,
            "deadline",
            "Drops or marks data that has waited too long",
        )
    },
    Entry {
        maker: Maker::Controller(|config| Ok((Box::new(Feedback::new(config.link)), None))),
        ..Entry::part(
            Role::Controller,
            "feedback",
            "Raises the deadline while the link idles, lowers it while it is full",
        )
    },
];

/// asymq's catalog with `deadline-slots` and its parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct WithDeadline;

impl Catalog for WithDeadline {
    fn entries(&self) -> Vec<&'static Entry> {
        let mut entries = Standard.entries();
        entries.extend(&ENTRIES);
        entries
    }

    fn queue<P: Packet + Send + 'static>(
        &self,
        role: Role,
        config: &Config,
        limit: Limit,
    ) -> Result<BoxedQueue<P>, BuildError> {
        if config.part(role)? == "deadline" {
            let deadline = Deadline::new(config.get(DEADLINE)?, config.get(ECN)?, limit)?;
            return Ok(Box::new(deadline));
        }
        Standard.queue(role, config, limit)
    }
}
