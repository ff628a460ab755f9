//! The disciplines by name.

use asymq_core::config::Config;
use asymq_core::disciplines::Entry;
use asymq_core::parts::controller::aq::AqParams;
use asymq_core::parts::service::CreditPer;

/// Every discipline that has a name, on one link.
pub(crate) fn named(entry: Entry, aq: AqParams, data_share: f64) -> Vec<(&'static str, Config)> {
    let limit = entry.limit;
    let mut configs = vec![
        ("droptail", Config::DropTail { limit }),
        ("fq", Config::FairQueue { limit }),
    ];
    let machines = [
        ("aq", entry.aq(aq)),
        ("fifo", entry.fifo()),
        ("acks-first", entry.acks_first()),
        ("afvq", entry.afvq(1.0)),
        ("prr", entry.prr()),
        ("wrr", entry.wrr(data_share)),
        ("cbq", entry.cbq(data_share)),
        ("acq", entry.acq()),
        ("dcbq", entry.dcbq(1500.0, 2.0)),
        ("vaq", entry.vaq(CreditPer::Byte)),
        ("vaq per segment", entry.vaq(CreditPer::Segment(1500))),
        ("af", entry.af()),
        ("sad", entry.sad()),
        ("sad+cbq", entry.sad_cbq(data_share)),
        ("acq+af", entry.acq_af()),
        ("cbq+af", entry.cbq_af(data_share)),
        ("red", entry.red_on_data()),
        ("acc", entry.acc()),
    ];
    configs.extend(machines.map(|(name, parts)| (name, Config::Machine(parts))));
    configs
}
