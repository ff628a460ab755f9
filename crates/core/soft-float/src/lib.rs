//! Every queue, service and discipline of `decide` and `hold`, and the regenerator, for one kind of
//! packet: what a kernel would link. `scripts/soft-float` looks for floats in the result.
#![no_std]

extern crate alloc;

use alloc::boxed::Box;
use asymq_core::asymq::{DueFirst, Isolated, IsolatedParams, SlotWait, Slots, TargetParams};
use asymq_core::classify::Classifier;
use asymq_core::decide::aqm::{Aqm, CodelParams, Red, RedParams};
use asymq_core::decide::control::{Controller, Levels, Needs, Settings, Signals, Step};
use asymq_core::decide::service::{
    AckCredit, AcksFirst, AnyService, CreditPer, InOrder, MadeUp, PacedShares, RoundRobin,
    WeightedBytes,
};
use asymq_core::frame::{self, FlowKey, parse};
use asymq_core::hold::{
    AckFilter, Buffer, BuildError, Cake, CakeAckFilter, CakeParams, CodelQueue, Diffserv, DropTail,
    Egress, Fifo, Fifos, FilterBounds, FlowQueues, FqCodel, FqCodelParams, Isolation, Machine, Pair, Parts,
    Queue, Queues, Regenerator, RegeneratorParams, Survivor, Transmitter,
};
use asymq_core::overhead::Overhead;
use asymq_core::qdisc::{Discard, Reading};
use asymq_core::{Duration, Instant, Limit, Qdisc, Rate, Share};
use core::alloc::{GlobalAlloc, Layout};
use core::hint::black_box;

unsafe extern "C" {
    fn asymq_alloc(size: usize) -> *mut u8;
    fn asymq_free(place: *mut u8);
}

struct Host;

// SAFETY: the host's allocator aligns as C's malloc does, and nothing here wants more.
unsafe impl GlobalAlloc for Host {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: any size is allowed.
        unsafe { asymq_alloc(layout.size()) }
    }
    unsafe fn dealloc(&self, place: *mut u8, _: Layout) {
        // SAFETY: it came from `asymq_alloc`.
        unsafe { asymq_free(place) }
    }
}

#[global_allocator]
static HOST: Host = Host;

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// A frame of fixed size with its facts.
type Frame = frame::Frame<[u8; 128]>;

/// A controller that answers with what was measured: the real ones use floats, once an interval.
struct Fixed;

impl Controller for Fixed {
    fn step(&mut self, now: Instant, signals: &Signals) -> Step {
        black_box(signals);
        Step {
            settings: Settings::default(),
            next: now + Duration::from_millis(200),
        }
    }
    fn follow(&mut self, levels: &Levels) -> Settings {
        black_box(levels);
        Settings {
            data_share: Some(black_box(Share::HALF)),
            link: Rate::from_bits_per_sec(black_box(1_000_000)),
            ack_limit: Some(black_box(Limit::Packets(10))),
            target: Some(black_box(Duration::ZERO)),
            ack_wait: Some(black_box(Duration::from_millis(20))),
            ack_bytes: Some(black_box(19_200)),
            ack_ramp: Some(black_box(300_000)),
        }
    }
    fn needs(&self) -> Needs {
        Needs {
            reverse: true,
            acked_bytes: true,
            levels: true,
        }
    }
}

type Built<T> = Result<T, BuildError>;
type BoxedQueue = Box<dyn Queue<Frame> + Send>;

fn queue(kind: u8, link: Rate, limit: Limit) -> Built<BoxedQueue> {
    let bounds = FilterBounds::default();
    let rtt = Duration::from_millis(100);
    Ok(match kind % 9 {
        0 => Box::new(Fifo::new(limit)?),
        1 => Box::new(AckFilter::new(Survivor::AtTail, bounds, limit)?),
        2 => Box::new(AckFilter::new(Survivor::InSlot, bounds, limit)?),
        3 => Box::new(CodelQueue::new(CodelParams::new(), limit)?),
        4 => {
            let params = FqCodelParams {
                codel: CodelParams::new(),
                flows: 1024,
                quantum: 1514,
                memory_limit: 100_000,
                drop_batch: 64,
            };
            Box::new(FqCodel::new(params, limit)?)
        }
        5 => {
            let params = CakeParams {
                link,
                rtt,
                diffserv: black_box(Diffserv::Eight),
                isolation: black_box(Isolation::Triple),
                ack_filter: black_box(Some(CakeAckFilter::Conservative)),
                memory_limit: 100_000,
            };
            Box::new(Cake::new(params, limit)?)
        }
        6 => {
            let wait = SlotWait {
                time: Duration::from_millis(20),
                bytes: 19_200,
                ready: 8,
                ramp: 150_000,
                max_stretch: 93_440,
            };
            Box::new(Slots::new(wait, link, limit)?)
        }
        7 => {
            let target = TargetParams {
                start: Duration::from_millis(40),
                min: Duration::from_millis(5),
                max: Duration::from_millis(250),
                interval: Duration::from_millis(200),
                floor: 2920,
                full_packet: link.tx_time(1514),
            };
            let params = IsolatedParams {
                queues: 128,
                targets: 32,
                link,
                target,
                isolation: black_box(Isolation::Triple),
                bulk_limit: 25_000,
                flow_limit: 6_000,
            };
            Box::new(Isolated::new(params, limit)?)
        }
        _ => Box::new(FlowQueues::new(limit)?),
    })
}

fn service(kind: u8, link: Rate) -> AnyService {
    match kind % 7 {
        0 => InOrder.into(),
        1 => AcksFirst.into(),
        2 => RoundRobin::new(black_box(Share::HALF)).into(),
        3 => WeightedBytes::new(black_box(Share::HALF)).into(),
        5 => DueFirst::default().into(),
        4 => PacedShares::new(link, black_box(Share::HALF), MadeUp::Other).into(),
        _ => AckCredit::new(CreditPer::Byte(1500), link, link, 100_000).into(),
    }
}

fn machine<Q: Queues<Frame> + Send + 'static>(
    kind: u8,
    link: Rate,
    limit: Limit,
    queues: Q,
) -> Built<Box<dyn Qdisc<Frame> + Send>> {
    let red = Red::new(RedParams::for_limit(u32::from(kind), link.tx_time(1500)));
    let parts = Parts {
        opaque: None,
        classifier: black_box(Classifier::PureAck),
        queues,
        limits: [limit; 2],
        aqm: Some(Box::new(red) as Box<dyn Aqm + Send>),
        service: service(kind, link),
        controller: Some(Box::new(Fixed)),
        buffer: black_box(Buffer::InRatio(limit)),
    };
    Ok(Box::new(Machine::new(parts, Some(Share::HALF))?))
}

fn qdisc(kind: u8, link: Rate, limit: Limit) -> Built<Box<dyn Qdisc<Frame> + Send>> {
    match kind % 3 {
        0 => Ok(Box::new(DropTail::new(limit)?)),
        1 => {
            machine(kind, link, limit, Fifos::new(limit)?)
        }
        _ => {
            let queue = |shift: u32| queue(kind >> shift, link, limit);
            let queues = Pair {
                ack: queue(2)?,
                data: queue(5)?,
            };
            machine(kind, link, limit, queues)
        }
    }
}

fn run(kind: u8, bits: u64, bytes: [u8; 128]) -> Option<u64> {
    let link = Rate::from_bits_per_sec(bits)?;
    let now = Instant::from_nanos(bits);
    let limit = black_box(Limit::Packets(u32::from(kind)));
    let parsed = parse(&bytes, &FlowKey::new([bits, !bits]));
    let mut header = parsed.header;
    header.len = black_box(Overhead::default()).charge(&parsed, header.len);
    let frame = Frame {
        header,
        network: parsed.network,
        transport: parsed.transport,
        bytes,
    };
    let mut egress = Egress::new(qdisc(kind, link, limit).ok()?, link);
    egress.enqueue(now, frame.clone(), &mut Discard);
    egress.observe(now, &header);
    let sent = egress.dequeue(now, &mut Discard);
    let other = qdisc(!kind, link, limit).ok()?;
    egress.replace(
        now,
        other,
        link,
        |frame| frame.header.len += 1,
        &mut Discard,
    );
    egress.qdisc().probe(&mut |name, reading| {
        if let Reading::Count(count) = reading {
            black_box((name, count));
        }
    });
    let mut regenerator = Regenerator::new(black_box(RegeneratorParams::default())).ok()?;
    regenerator.observe(now, &frame.header);
    regenerator.push(now, sent.unwrap_or(frame), &mut Discard);
    let passed = regenerator.pop(now).map_or(0, |frame| frame.header.ack);
    let mut transmitter = Transmitter::new(link);
    transmitter.set_rate(now, link);
    let next = egress.next().or(regenerator.next_at())?;
    Some(next.as_nanos() + u64::from(passed) + egress.meters().sent.total().bytes)
}

/// The entry point.
///
/// # Safety
/// `bytes` points to 128 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn asymq_soft_float(kind: u8, bits: u64, bytes: *const [u8; 128]) -> u64 {
    // SAFETY: as the caller promises.
    run(kind, bits, unsafe { *bytes }).unwrap_or(0)
}
