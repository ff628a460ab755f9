use crate::datagrams::Datagrams;
use crate::error::{Context as _, LabError};
use crate::flows::{BulkFlows, FlowSeen, QuicFlows};
use crate::path::{self, Path, Ports};
use crate::plan::{Conversation, Plan};
use crate::topology::{ACCESS, INTERNET, Topology};
use crate::uplink::Uplink;
use crate::window::{INTERVAL, Window};
use crate::{Halt, clock};
use asymq_core::TrafficClass;
use asymq_core::catalog::Build;
use asymq_core::units::Duration;
use asymq_gateway::{Frame, Port};
use asymq_scenario::{
    Direction, DirectionReport, FlowResult, FlowTotals, Grade, Run, Scenario, Series, Summary,
};
use std::{io, thread};

/// Runs a scenario once. Calls `progress` ten times a second.
pub(crate) fn run_once(
    catalog: &'static dyn Build<Frame>,
    scenario: &Scenario,
    seed: u64,
    series: bool,
    halt: &Halt,
    progress: &(dyn Fn(Duration) + Sync),
) -> Result<Run, LabError> {
    // Time for all threads to start before the first packet.
    const LEAD: Duration = Duration::from_millis(20);
    let drawn = scenario.drawn(seed);
    let scenario = drawn.as_ref().unwrap_or(scenario);
    let plan = Plan::new(scenario, seed);
    let topology = Topology::build(scenario.tc.is_some())?;
    let bulk = BulkFlows::open(scenario, &plan, &topology.home, &topology.servers)?;
    let quic = QuicFlows::open(scenario, &plan, &topology.home, &topology.servers)?;
    let datagrams = Datagrams::open(scenario, &plan, &topology.home, &topology.servers)?;
    let port = |name| Port::open(name).map_err(io::Error::other);
    let ports = topology
        .path
        .run(|| {
            Ok(Ports {
                access: port(ACCESS)?,
                internet: port(INTERNET)?,
            })
        })
        .during("opening the path's interfaces")?;
    let uplink = Uplink::open(catalog, scenario, &topology.gateway)?;
    let tap = uplink.tap();

    let start = clock::now() + LEAD;
    let window = Window {
        start,
        warm: start + scenario.warmup,
        end: start + scenario.duration,
    };
    let emulated = Path::new(catalog, scenario, &plan, window)?;
    let (seen, uplink, bulk, quic, probe) = thread::scope(|scope| {
        let path =
            scope.spawn(move || halt.guard(|| path::run(emulated, ports, tap, window, halt)));
        let uplink = scope.spawn(move || halt.guard(|| uplink.run(window, halt)));
        let bulk = scope.spawn(move || halt.guard(|| bulk.run(window, halt)));
        let quic = scope.spawn(move || halt.guard(|| quic.run(window, halt)));
        let datagrams = scope.spawn(move || halt.guard(|| datagrams.run(window, halt)));
        while clock::now() < window.end && !halt.is_set() {
            progress(clock::now().saturating_since(window.start));
            thread::sleep(Duration::from_millis(100).into());
        }
        Ok::<_, LabError>((
            finished(path)?,
            finished(uplink)?,
            finished(bulk)?,
            finished(quic)?,
            finished(datagrams)?,
        ))
    })?;
    if halt.is_asked() {
        return Err(LabError::Interrupted);
    }
    let losses = seen.losses + uplink.losses;
    let packets = losses.total();
    if packets > 0 {
        return Err(LabError::TooSlow { packets });
    }

    let (uploads, downloads) = bulk.split_at(plan.uploads.len());
    let (quic_uploads, quic_downloads) = quic.split_at(plan.quic[0].len());
    let flows = [
        flow_results(Direction::Up, &plan.uploads, uploads, window),
        flow_results(Direction::Down, &plan.downloads, downloads, window),
        flow_results(Direction::Up, &plan.quic[0], quic_uploads, window),
        flow_results(Direction::Down, &plan.quic[1], quic_downloads, window),
    ]
    .concat();
    let links = [&seen.path.up.meter, &seen.path.down.meter];
    let downlink = uplink.downlink.unwrap_or_else(|| links[1].queue());
    let queues = [&uplink.queue, &downlink];
    let (tcp, quic) = ([uploads, downloads], [quic_uploads, quic_downloads]);
    let report = |direction: Direction| {
        let way = direction as usize;
        let (link, queue) = (links[way], queues[way]);
        let of_flows = FlowTotals::of(&flows, direction);
        let payload: u64 = tcp[1 - way].iter().map(|flow| flow.payload).sum();
        let probe_ms = probe.as_ref().map(|probe| probe.delays[way]);
        DirectionReport {
            // Where packets leave the link, behind the queue.
            utilization: TrafficClass::ALL
                .map(|class| link.share(class))
                .iter()
                .sum(),
            data: link.share(TrafficClass::Data),
            ack: link.share(TrafficClass::Ack),
            acks_per_s: link.acks() as f64 / window.seconds(),
            delivered: link.delivered(tcp[way], TrafficClass::Data)
                + link.delivered(quic[way], TrafficClass::Other),
            bytes_per_ack: DirectionReport::bytes_per_ack(payload as f64, link.acks()),
            // At the hosts.
            longest_stall_s: of_flows.longest_stall_s,
            completion_s: None,
            retransmissions: of_flows.retransmissions,
            timeouts: of_flows.timeouts,
            probe_ms,
            probe_grade: probe_ms.map(Grade::of),
            // At the queue: the uplink's gateway or kernel qdisc; the downlink's path, or gateway before a modem.
            dropped: queue.fates.dropped,
            filtered: queue.fates.filtered,
            marked: queue.fates.marked,
            reasons: queue.fates.reasons.clone(),
            sojourn_ms: queue.sojourn_ms,
            // On the path.
            lost: seen.path.lost[way] as f64,
            // Not measured.
            access_dropped: None,
            sojourn_by_class_ms: None,
            unfiltered: queue.unfiltered.clone(),
            probe_lost: None,
        }
    };
    let (up, down) = (report(Direction::Up), report(Direction::Down));
    let mut summary = Summary::of(up, down, flows);
    let has_modems = scenario.modem_up.or(scenario.modem_down).is_some();
    let late = probe.as_ref().filter(|_| has_modems);
    summary.probe_late = late.map(|probe| probe.late);
    summary.set_probe(probe.map(|probe| probe.round_trips));
    let (all_up, data_up) = seen.path.up.meter.series();
    let (all_down, data_down) = seen.path.down.meter.series();
    // Repeats the last value for an interval that the end cuts short.
    let whole = |mut backlog: Vec<u32>| {
        let last = backlog.last().copied().unwrap_or(0);
        backlog.resize(window.intervals(), last);
        backlog
    };
    Ok(Run {
        seed,
        series: series.then(|| Series {
            interval_s: INTERVAL.as_secs_f64(),
            up: all_up,
            down: all_down,
            data_up,
            data_down,
            backlog_up: whole(uplink.queue.backlog),
            backlog_down: whole(downlink.backlog),
        }),
        lateness_ms: Some(seen.lateness.percentiles_ms()),
        summary,
    })
}

fn flow_results(
    direction: Direction,
    flows: &[Conversation],
    seen: &[FlowSeen],
    window: Window,
) -> Vec<FlowResult> {
    let of = |(flow, seen): (&Conversation, &FlowSeen)| FlowResult {
        direction,
        start_s: flow.start.as_secs_f64(),
        base_rtt_ms: flow.rtt.as_secs_f64() * 1e3,
        goodput: seen.payload as f64 * 8.0 / window.seconds(),
        longest_stall_s: seen.longest_stall.as_secs_f64(),
        completion_s: None,
        rtt_ms: None,
        lost: None,
        retransmissions: seen.retransmissions.map(f64::from),
        timeouts: seen.timeouts.map(f64::from),
        spurious: seen.spurious.map(f64::from),
        sojourn_ms: None,
    };
    flows.iter().zip(seen).map(of).collect()
}

fn finished<T>(thread: thread::ScopedJoinHandle<'_, Result<T, LabError>>) -> Result<T, LabError> {
    match thread.join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}
