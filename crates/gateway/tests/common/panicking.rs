//! A catalog from outside, whose `red` panics and whose `acc` hangs.

use asymq_core::catalog::{BoxedQdisc, BoxedQueue, Catalog, Config, Entry, Role, Standard};
use asymq_core::hold::BuildError;
use asymq_core::units::{Instant, Limit};
use asymq_core::{Backlog, Dequeue, Packet, Qdisc, Sink};

#[derive(Clone, Copy)]
pub(crate) struct Panicking;

struct Panics;

impl<P: Packet> Qdisc<P> for Panics {
    fn enqueue(&mut self, _: Instant, _: P, _: &mut dyn Sink<P>) {
        panic!("this discipline panics, as the test wants");
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

struct Hangs;

impl<P: Packet> Qdisc<P> for Hangs {
    fn enqueue(&mut self, _: Instant, _: P, _: &mut dyn Sink<P>) {
        loop {
            std::thread::park();
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

    fn queue<P: Packet + Send + 'static>(
        &self,
        role: Role,
        config: &Config,
        limit: Limit,
    ) -> Result<BoxedQueue<P>, BuildError> {
        Standard.queue(role, config, limit)
    }

    fn build<P: Packet + Send + 'static>(
        &self,
        config: &Config,
    ) -> Result<BoxedQdisc<P>, BuildError> {
        match config.qdisc.as_str() {
            "red" => Ok(Box::new(Panics)),
            "acc" => Ok(Box::new(Hangs)),
            _ => Standard.build(config),
        }
    }
}
