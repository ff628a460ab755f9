//! Disciplines by name, with their default parameters.

use asymq_core::catalog::{Catalog as _, Config, Params, Place, Role, Standard, resolve};
use asymq_core::units::{Limit, Rate};

pub(crate) fn names() -> Vec<&'static str> {
    let disciplines = Standard.of_role(Role::Qdisc);
    disciplines.iter().map(|entry| entry.name).collect()
}

/// A discipline whose queues hold `packets`.
pub(crate) fn discipline(name: &str, link: Rate, reverse: Rate, packets: u32) -> Config {
    let limit = Limit::Packets(packets);
    let params = Params::new()
        .with("ack-limit", limit.to_string())
        .with("data-limit", limit.to_string());
    let place = Place {
        link,
        reverse: Some(reverse),
        limit,
    };
    resolve(&Standard, name, &params, &Params::new(), place).unwrap()
}
