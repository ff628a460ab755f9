//! Every discipline, with any parts, parameters and traffic, keeps every law.

use asymq_core::catalog::{Catalog, Role, Standard};
use asymq_laws::{golden, obey, strategy};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_discipline_as_it_comes_keeps_every_law(steps in strategy::steps()) {
        for entry in Standard.of_role(Role::Qdisc) {
            let config = golden::config(&Standard, entry.name).expect("a discipline");
            obey(&Standard, &config, &steps);
        }
    }

    #[test]
    fn any_parts_and_parameters_keep_every_law(
        config in strategy::config(Standard),
        steps in strategy::steps(),
    ) {
        obey(&Standard, &config, &steps);
    }

    #[test]
    fn absurd_packets_and_leaps_of_time_break_no_law(
        config in strategy::config(Standard),
        steps in strategy::absurd_steps(),
    ) {
        obey(&Standard, &config, &steps);
    }
}
