//! Link models that the simulator and the lab share: times at which packets leave.
//!
//! All times are ns from the start of the run.

mod impairment;
mod modem_queue;
mod profile;
mod schedule;

pub use impairment::Impairment;
pub use modem_queue::{KnownRates, ModemQueue};
pub use profile::drawn;
pub use schedule::Schedule;
