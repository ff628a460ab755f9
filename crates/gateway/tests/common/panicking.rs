//! A catalog such as another crate would define. Its `red` panics and its `acc` hangs.

use asymq_core::catalog::{BoxedQdisc, Catalog, Config, Entry, Standard};
use asymq_core::hold::BuildError;
use asymq_core::units::Instant;
use asymq_core::{Backlog, Dequeue, Packet, Qdisc, Sink};

#[derive(Clone, Copy)]
pub(crate) struct Panicking;

/// Fault that the first packet triggers.
enum Fault {
    Panic,
    Hang,
}

impl<P: Packet> Qdisc<P> for Fault {
    fn enqueue(&mut self, _: Instant, _: P, _: &mut dyn Sink<P>) {
        match self {
            Self::Panic => panic!("this discipline panics, as the test wants"),
            Self::Hang => loop {
                std::thread::park();
            },
        }
    }

    fn dequeue(&mut self, _: Instant, _: &mut dyn Sink<P>) -> Dequeue<P> {
        Dequeue::Empty
    }

    fn drain(&mut self) -> Option<P> {
        None
    }

    fn backlog(&self) -> Backlog {
        Backlog::default()
    }
}

impl Catalog for Panicking {
    fn entries(&self) -> Vec<&'static Entry> {
        Standard.entries()
    }

    fn build<P: Packet + Send + 'static>(
        &self,
        config: &Config,
    ) -> Result<BoxedQdisc<P>, BuildError> {
        match &*config.qdisc {
            "red" => Ok(Box::new(Fault::Panic)),
            "acc" => Ok(Box::new(Fault::Hang)),
            _ => Standard.build(config),
        }
    }
}
