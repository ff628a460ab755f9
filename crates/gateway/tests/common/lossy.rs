//! A catalog such as another crate would define. Its `droptail` loses one of [`EACH`] data segments.

use asymq_core::catalog::{BoxedQdisc, Catalog, Config, Entry, Standard};
use asymq_core::hold::BuildError;
use asymq_core::units::Instant;
use asymq_core::{Backlog, Dequeue, Packet, Qdisc, Reason, Sink};

#[derive(Clone, Copy)]
pub(crate) struct Lossy;

/// One data segment out of this many is lost.
const EACH: u32 = 53;

struct Losing<P> {
    inner: BoxedQdisc<P>,
    segments: u32,
}

impl<P: Packet> Qdisc<P> for Losing<P> {
    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn Sink<P>) {
        self.segments += u32::from(packet.header().payload > 0);
        match packet.header().payload > 0 && self.segments.is_multiple_of(EACH) {
            true => sink.dropped(now, packet, Reason::OverLimit),
            false => self.inner.enqueue(now, packet, sink),
        }
    }

    fn dequeue(&mut self, now: Instant, sink: &mut dyn Sink<P>) -> Dequeue<P> {
        self.inner.dequeue(now, sink)
    }

    fn drain(&mut self) -> Option<P> {
        self.inner.drain()
    }

    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }
}

impl Catalog for Lossy {
    fn entries(&self) -> Vec<&'static Entry> {
        Standard.entries()
    }

    fn build<P: Packet + Send + 'static>(
        &self,
        config: &Config,
    ) -> Result<BoxedQdisc<P>, BuildError> {
        let inner = Standard.build(config)?;
        Ok(match &*config.qdisc {
            "droptail" => Box::new(Losing { inner, segments: 0 }),
            _ => inner,
        })
    }
}
