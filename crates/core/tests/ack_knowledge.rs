//! A sender behind an ACK filter has at least the information of a sender that gets every ACK.
//!
//! Receivers of several flows acknowledge segments from a path that loses and reorders. The ACKs pass AF, SAD and
//! asymq's slots as real frames, under every service. Arrivals and departures alternate at random. After each
//! survivor, the sender must have all information of the ACKs up to this survivor.
//!
//! `ASYMQ_HISTORIES` sets the number of histories, `ASYMQ_SEED` the seed, and `ASYMQ_FIRST` the number of the first
//! history (default 0). A failure names the history. The long run:
//! `cargo test --release -p asymq-core --test all ack_knowledge:: -- --ignored --nocapture`.

use crate::acks::{FLOW_RULES, RULES, Said};
use crate::mutate::Dice;
use crate::receiver::Receiver;
use crate::sender::Sender;
use crate::sent::{Bytes, Frame};
use asymq_core::catalog::{BoxedQdisc, Catalog, Params, Place, Role, Standard, resolve};
use asymq_core::decide::frame::{FlowKey, parse};
use asymq_core::qdisc::{Dequeue, Reason, Sink};
use asymq_core::units::{Duration, Instant, Limit};

const FLOWS: usize = 3;
/// Maximum bytes that one survivor acknowledges. Histories of a few ACKs reach the small value; within the large
/// value ACE wraps three times.
const MAX_STRETCH: [u32; 2] = [6000, 40_000];

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Waits,
    Left,
    Filtered,
    Refused,
}

/// State of one history on its way through a discipline.
#[derive(Default)]
struct Run {
    /// All ACKs that arrived, each with its flow.
    said: Vec<(usize, Said)>,
    fates: Vec<Fate>,
    spare: Vec<Vec<u8>>,
    /// Filtered ACKs, over all histories.
    filtered: u64,
    /// Number of ACKs that survived a filtered one and from which a sender counted marks.
    marked: u64,
}

impl Sink<Frame> for Run {
    fn dropped(&mut self, _: Instant, frame: Frame, reason: Reason) {
        self.fates[frame.bytes.index] = match reason {
            Reason::AckFiltered => {
                self.filtered += 1;
                // An arriving ACK filters queued ACKs.
                let (old_flow, old) = &self.said[frame.bytes.index];
                let (flow, new) = self.said.last().expect("an arrival");
                assert_eq!(old_flow, flow, "filtered for another flow");
                for rule in RULES {
                    assert!((rule.lets)(old, new), "{}: {old:?} for {new:?}", rule.name);
                }
                Fate::Filtered
            }
            Reason::OverLimit => Fate::Refused,
            other => panic!("dropped: {other:?}"),
        };
        self.spare.push(frame.bytes.bytes);
    }
}

/// A discipline, and the senders behind it.
struct Bench {
    name: String,
    max_stretch: u32,
    qdisc: BoxedQdisc<Frame>,
    now: Instant,
    key: FlowKey,
}

impl Bench {
    /// AF, SAD and asymq's slots under every service, with and without room, and with data in the ACK queue.
    fn all() -> Vec<Self> {
        let mut benches = Vec::new();
        for service in Standard.of_role(Role::Service) {
            for filter in ["af", "sad", "slots"] {
                for (limit, classifier, max_stretch) in [
                    (Limit::Packets(100), "pure-ack", MAX_STRETCH[0]),
                    (Limit::Packets(100), "pure-ack", MAX_STRETCH[1]),
                    (Limit::Packets(4), "pure-ack", MAX_STRETCH[0]),
                    (Limit::Bytes(300), "size<=1500", MAX_STRETCH[1]),
                ] {
                    let place = Place {
                        link: "1mbit".parse().unwrap(),
                        reverse: Some("10mbit".parse().unwrap()),
                        limit,
                    };
                    let stretch = format!("{max_stretch}b");
                    let given = Params::new()
                        .with("service", service.name)
                        .with("ack-queue", filter)
                        .with("classifier", classifier)
                        .with("max-stretch", stretch.as_str())
                        .with("ack-ramp", "0ms");
                    let config = resolve(&Standard, "droptail", &given, &Params::new(), place);
                    let config = config.unwrap_or_else(|error| panic!("{error}"));
                    benches.push(Self {
                        name: format!(
                            "{filter}, {}, {limit}, {classifier}, {max_stretch}",
                            service.name
                        ),
                        max_stretch,
                        qdisc: Standard.build(&config).unwrap(),
                        now: Instant::ZERO,
                        key: FlowKey::new([3, 4]),
                    });
                }
            }
        }
        benches
    }

    fn enqueue(&mut self, run: &mut Run, flow: usize, said: Said) {
        let index = run.said.len();
        let mut bytes = run.spare.pop().unwrap_or_default();
        said.write(&mut bytes);
        let parsed = parse(&bytes, &self.key);
        run.said.push((flow, said));
        run.fates.push(Fate::Waits);
        let bytes = Bytes { index, bytes };
        let frame = Frame::new(self.now, &parsed, parsed.header.len, bytes);
        self.qdisc.enqueue(self.now, frame, run);
    }

    /// Returns the next packet, if one is queued.
    fn dequeue(&mut self, run: &mut Run) -> Option<usize> {
        loop {
            match self.qdisc.dequeue(self.now, run) {
                Dequeue::Packet(frame) => {
                    let index = frame.bytes.index;
                    run.fates[index] = Fate::Left;
                    run.spare.push(frame.bytes.bytes);
                    return Some(index);
                }
                Dequeue::NotBefore(at) => self.now = at,
                Dequeue::Empty => return None,
            }
        }
    }
}

/// Two senders for each flow: one gets all ACKs, the other only the ACKs that leave the discipline.
#[derive(Default)]
struct Judge {
    all: [Sender; FLOWS],
    filtered: [Sender; FLOWS],
    /// Number of ACKs that each sender in `all` has received.
    read: [usize; FLOWS],
    /// True if ACKs of the flow were filtered since its last survivor.
    behind: [bool; FLOWS],
}

impl Judge {
    fn departs(&mut self, run: &mut Run, index: usize, max_stretch: u32) {
        let (flow, survivor) = run.said[index];
        if survivor.payload > 0 {
            return;
        }
        let (all, known) = (&mut self.all[flow], &mut self.filtered[flow]);
        assert!(self.read[flow] <= index, "ACKs of a flow left out of order");
        for before in self.read[flow]..=index {
            let (of, said) = &run.said[before];
            if *of != flow || said.payload > 0 {
                continue;
            }
            match run.fates[before] {
                Fate::Refused => {
                    all.misses_one();
                    continue;
                }
                Fate::Filtered => self.behind[flow] = true,
                Fate::Left => {}
                Fate::Waits => panic!("ACK {before} of the flow was overtaken by {index}"),
            }
            all.hears(said);
        }
        self.read[flow] = index + 1;
        let learned = known.hears(&survivor);
        if std::mem::take(&mut self.behind[flow]) {
            assert!(learned <= max_stretch, "learned {learned} at once");
            run.marked += u64::from(all.counts_marks());
        }
        known.assert_knows(all);
    }
}

/// Passes one random history through a discipline.
fn history(bench: &mut Bench, run: &mut Run, dice: &mut Dice, number: u64) {
    run.said.clear();
    run.fates.clear();
    let mut judge = Judge::default();
    let mut receivers: [Receiver; FLOWS] =
        std::array::from_fn(|flow| Receiver::new(dice, number * FLOWS as u64 + flow as u64));
    let flows = 1 + dice.below(FLOWS);
    let eager = 1 + dice.below(10);
    let length = [16, 16, 16, 80][dice.below(4)];
    for _ in 0..4 + dice.below(length) {
        bench.now += Duration::from_nanos(dice.next() % 8_000_000);
        let flow = dice.below(flows);
        let said = receivers[flow].next(dice);
        bench.enqueue(run, flow, said);
        if dice.below(10) < eager
            && dice.below(2) == 0
            && let Some(index) = bench.dequeue(run)
        {
            judge.departs(run, index, bench.max_stretch);
        }
    }
    while let Some(index) = bench.dequeue(run) {
        judge.departs(run, index, bench.max_stretch);
    }
    assert!(run.fates.iter().all(|fate| *fate != Fate::Waits));
}

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => default,
    }
}

fn histories(count: u64) {
    let seed = number("ASYMQ_SEED", 1);
    let mut benches = Bench::all();
    let mut run = Run::default();
    let mut acks = 0;
    let first = number("ASYMQ_FIRST", 0);
    for number in first..first + count {
        let mut dice = Dice::new(seed ^ number.rotate_left(32));
        let at = (number % benches.len() as u64) as usize;
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            history(&mut benches[at], &mut run, &mut dice, number);
        }));
        acks += run.said.len() as u64;
        if outcome.is_err() {
            for ((flow, said), fate) in run.said.iter().zip(&run.fates) {
                let fate = match fate {
                    Fate::Waits => "waits",
                    Fate::Left => "left",
                    Fate::Filtered => "filtered",
                    Fate::Refused => "refused",
                };
                eprintln!("{flow} {fate}: {said:?}");
            }
            panic!("{}: history {number} of seed {seed}", benches[at].name);
        }
    }
    println!(
        "{count} histories from {first} of seed {seed}: {acks} packets, {} filtered, {} survivors that told of marks",
        run.filtered, run.marked
    );
    // Histories without filtered ACKs would prove nothing.
    assert!(run.filtered * 10 > acks, "only {} filtered", run.filtered);
    assert!(run.marked * 2000 > acks, "only {} with marks", run.marked);
}

#[test]
fn a_sender_never_has_less_information_because_of_filtering() {
    histories(number("ASYMQ_HISTORIES", 20_000));
}

#[test]
#[ignore = "ten minutes in release mode"]
fn a_sender_never_has_less_information_in_ten_million_histories() {
    histories(number("ASYMQ_HISTORIES", 10_000_000));
}

#[test]
fn every_rule_has_a_name_of_its_own() {
    let mut names: Vec<_> = RULES.iter().map(|rule| rule.name).collect();
    names.extend(FLOW_RULES.iter().map(|(name, _)| name));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
