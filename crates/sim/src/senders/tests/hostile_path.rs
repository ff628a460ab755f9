//! With any loss and reordering of data and ACKs, all data arrives in bounded time.

use crate::congestion::{AnyCongestion, Catalog, Connection, TcpModel};
use crate::receivers::{FullReceiving, Receiver};
use crate::senders::{FullSending, RttEstimator, Sender};
use crate::variant::{Full, Variant};
use crate::packets::{Segment, TcpOptions};
use asymq_args::{Defaults, ScenarioArgs, SimulatedArgs};
use asymq_scenario::{Scenario, Tcp, TcpEcn};
use proptest::prelude::*;
use std::collections::BTreeMap;

const MS: u64 = 1_000_000;
const SEGMENTS: u64 = 300;

/// Fate of one segment.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives,
    Lost,
    /// Arrives this many ms later than usual.
    Late(u64),
}

fn fates() -> impl Strategy<Value = Vec<Fate>> {
    let fate = prop_oneof![
        6 => Just(Fate::Arrives),
        2 => Just(Fate::Lost),
        1 => (1u64..80).prop_map(Fate::Late),
    ];
    prop::collection::vec(fate, 0..400)
}

/// Sender and receiver, and the segments in transit by arrival time.
struct Path {
    sender: Sender<AnyCongestion, FullSending>,
    receiver: Receiver<FullReceiving>,
    under_way: BTreeMap<(u64, u64), (bool, Segment<TcpOptions>)>,
    fates: [std::vec::IntoIter<Fate>; 2],
    ticket: u64,
    highest: u64,
}

impl Path {
    fn take(&mut self, now: u64, to_receiver: bool, sent: Vec<Segment<TcpOptions>>) {
        for segment in sent {
            let fate = self.fates[usize::from(to_receiver)].next();
            let delay = match fate.unwrap_or(Fate::Arrives) {
                Fate::Arrives => 20 * MS,
                Fate::Late(ms) => (20 + ms) * MS,
                Fate::Lost => continue,
            };
            let key = (now + delay + self.ticket % 1000, self.ticket);
            self.ticket += 1;
            self.under_way.insert(key, (to_receiver, segment));
        }
    }

    /// Executes the next event. Returns its time; `None` if there is no event.
    fn step(&mut self, window: u64) -> Option<u64> {
        let arrival = self
            .under_way
            .first_key_value()
            .map_or(u64::MAX, |((at, _), _)| *at);
        let (timer, delayed) = (self.sender.deadline(), self.receiver.deadline());
        let now = arrival.min(timer).min(delayed);
        if now == u64::MAX {
            return None;
        }
        let mut out = Vec::new();
        let to_receiver = if now == arrival {
            let (_, (to_receiver, segment)) = self.under_way.pop_first()?;
            if to_receiver {
                self.receiver.on_segment(now, segment, &mut out);
            } else {
                self.sender.on_ack(now, segment, &mut out);
            }
            !to_receiver
        } else if now == timer {
            self.sender.on_timeout(now, &mut out);
            true
        } else {
            self.receiver.on_timeout(now, &mut out);
            false
        };
        if to_receiver {
            for segment in &out {
                self.highest = self.highest.max(segment.number());
                let in_order = self.receiver.data_in_order() + 1;
                assert!(segment.number() <= SEGMENTS, "only what was written");
                assert!(
                    segment.number() < in_order + window,
                    "beyond the receiver's window"
                );
            }
        }
        self.take(now, to_receiver, out);
        Some(now)
    }
}

fn scenario(args: ScenarioArgs) -> Scenario {
    args.resolve(&Defaults::paper()).unwrap()
}

proptest! {
    #[test]
    fn all_data_arrives_despite_loss_delay_and_filtering(
        fates in [fates(), fates()],
        tcp in prop::sample::select(Tcp::simulated().collect::<Vec<_>>()),
        sack: bool,
        timestamps: bool,
        byte_counting: bool,
        tcp_ecn: bool,
        hystart: bool,
        pacing: bool,
        every in 1u32..8,
        window in 1u64..60,
    ) {
        // Impossible combinations: BBR needs SACK and has no ECN; DCTCP needs ECN.
        let (unspecified, needed) = (tcp.ecn() == TcpEcn::Unspecified, tcp.needs_ecn());
        let scenario = scenario(ScenarioArgs {
            tcp: Some(tcp),
            simulated: SimulatedArgs {
                sack: Some(sack || tcp.paces()),
                timestamps: Some(timestamps),
                byte_counting: Some(byte_counting && tcp.counts_bytes()),
                tcp_ecn: Some((tcp_ecn || needed) && !unspecified),
                hystart: Some(hystart && tcp.has_hystart()),
                pacing: Some(pacing),
                ..SimulatedArgs::default()
            },
            ack_every: Some(every),
            ..ScenarioArgs::default()
        });
        let model = TcpModel::of(&Catalog::new(), &scenario).unwrap();
        let connection = Connection { payload: scenario.payload(), seed: 0 };
        let mut sender = Sender::new(
            Full::congestion(&model, &connection),
            RttEstimator::new(0),
            model.recovery,
            window,
            Full::sending(&scenario, &model),
        );
        sender.limit_to(SEGMENTS);
        let mut path = Path {
            sender,
            receiver: Receiver::new(scenario.ack_policy, Full::receiving(&scenario)),
            under_way: BTreeMap::new(),
            fates: fates.map(Vec::into_iter),
            ticket: 0,
            highest: 0,
        };
        let mut out: Vec<Segment<TcpOptions>> = Vec::new();
        path.sender.connect(0, &mut out);
        path.take(0, true, out);
        // The backoff reaches a minute, and many consecutive retransmissions may be lost.
        let mut steps = 0;
        while let Some(now) = path.step(window) {
            steps += 1;
            prop_assert!(steps < 30_000, "{now}: {} of {SEGMENTS}", path.receiver.data_in_order());
        }
        prop_assert_eq!(path.receiver.data_in_order(), SEGMENTS);
        prop_assert!(path.sender.is_done());
        prop_assert_eq!(path.sender.deadline(), u64::MAX);
    }
}
