//! A discipline from outside asymq, as `docs/extending.md` builds it step by step.
//!
//! [`codel-slots`](WithCodel) holds ACKs in SAD's slots and data in a [`Codel`] queue, serves ACKs
//! first, and lets a [`Feedback`] controller move CoDel's target. Only this crate knows of it, and it
//! runs in the simulator, the lab and the gateway, under asymq's laws, and in its tables and metrics.

mod codel;
mod feedback;

pub use codel::Codel;
pub use feedback::Feedback;

use asymq_core::catalog::{
    BoxedQueue, Catalog, Config, Default as ParameterDefault, Entry, Group, Kind, Parameter, Role,
    Standard, StartedController,
};
use asymq_core::hold::BuildError;
use asymq_core::packet::Packet;
use asymq_core::units::Limit;

const TARGET: Parameter = Parameter {
    name: "target",
    help: "Sojourn time that CoDel aims at",
    kind: Kind::Time,
    default: ParameterDefault::Text("5ms"),
};

const CODEL_INTERVAL: Parameter = Parameter {
    name: "codel-interval",
    help: "Time for which the sojourn time must be above the target before CoDel drops",
    kind: Kind::Time,
    default: ParameterDefault::Text("100ms"),
};

const ECN: Parameter = Parameter {
    name: "ecn",
    help: "Mark ECN-capable packets instead of dropping them early",
    kind: Kind::Flag,
    default: ParameterDefault::Text("true"),
};

/// The discipline and its two new parts.
static ENTRIES: [Entry; 3] = [
    Entry {
        title: "CoDel-slots",
        group: Group::Other,
        brings: &[
            ("ack-queue", "sad"),
            ("data-queue", "codel"),
            ("service", "acks-first"),
            ("controller", "feedback"),
        ],
        ..Entry::part(
            Role::Qdisc,
            "codel-slots",
            "CoDel on data, a slot per flow for ACKs",
        )
    },
    Entry {
        source: "RFC 8289",
        parameters: &[TARGET, CODEL_INTERVAL, ECN],
        ..Entry::part(
            Role::DataQueue,
            "codel",
            "CoDel: drops or marks by sojourn time",
        )
    },
    Entry::part(
        Role::Controller,
        "feedback",
        "Raises CoDel's target while the link idles, lowers it while it is full",
    ),
];

/// asymq's catalog with `codel-slots` and its parts.
#[derive(Clone, Copy, Debug, Default)]
pub struct WithCodel;

impl Catalog for WithCodel {
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
        if role == Role::DataQueue && config.text(role.key())? == "codel" {
            let (target, interval) = (config.get("target")?, config.get("codel-interval")?);
            let codel = Codel::new(target, interval, config.get("ecn")?, limit)?;
            return Ok(Box::new(codel));
        }
        Standard.queue(role, config, limit)
    }

    fn controller(&self, config: &Config) -> Result<Option<StartedController>, BuildError> {
        match config.text("controller")? {
            "feedback" => Ok(Some((Box::new(Feedback::new(config.link)), None))),
            _ => Standard.controller(config),
        }
    }
}
