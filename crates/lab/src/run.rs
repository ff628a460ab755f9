use crate::clock::{self, INTERVAL, Window};
use crate::datagrams::{Datagrams, ProbeResults};
use crate::error::{Context as _, LabError};
use crate::flows::{BulkFlows, FlowResults, QuicFlows};
use crate::halt::{Halt, joined};
use crate::measure::UplinkResults;
use crate::path::{self, Path, PathResults, Ports};
use crate::plan::{Conversation, Plan};
use crate::topology::{ACCESS, INTERNET, Topology};
use crate::uplink::Uplink;
use asymq_core::catalog::Build;
use asymq_core::{Duration, TrafficClass};
use asymq_gateway::{Frame, Port};
use asymq_scenario::{Direction, DirectionReport, FlowResult, Run, Scenario, Series, Summary};
use std::{io, thread};

/// Runs a scenario once, and calls `progress` ten times a second.
pub(crate) fn run_once(
    catalog: &'static dyn Build<Frame>,
    scenario: &Scenario,
    seed: u64,
    series: bool,
    halt: &Halt,
    progress: &(dyn Fn(Duration) + Sync),
) -> Result<Run, LabError> {
    let drawn = asymq_links::drawn(scenario, seed);
    let scenario = drawn.as_ref().unwrap_or(scenario);
    let plan = Plan::new(scenario, seed);
    let (window, results) = measure(catalog, scenario, &plan, halt, progress)?;
    if halt.is_asked() {
        return Err(LabError::Interrupted);
    }
    let losses = results.path.losses + results.uplink.losses;
    match losses.total() {
        0 => Ok(report(scenario, &plan, window, results, series)),
        packets => Err(LabError::TooSlow(packets)),
    }
}

/// Results of all parts of a run.
struct Results {
    path: PathResults,
    uplink: UplinkResults,
    /// Uploads, then downloads.
    bulk: Vec<FlowResults>,
    quic: Vec<FlowResults>,
    probe: Option<ProbeResults>,
}

/// Runs all parts in parallel.
fn measure(
    catalog: &'static dyn Build<Frame>,
    scenario: &Scenario,
    plan: &Plan,
    halt: &Halt,
    progress: &(dyn Fn(Duration) + Sync),
) -> Result<(Window, Results), LabError> {
    // Time for all threads to start before the first packet.
    const LEAD: Duration = Duration::from_millis(20);
    let topology = Topology::build(scenario.tc.is_some())?;
    let (home, servers) = (&topology.home, &topology.servers);
    let bulk = BulkFlows::open(scenario, plan, home, servers)?;
    let quic = QuicFlows::open(scenario, plan, home, servers)?;
    let datagrams = Datagrams::open(scenario, plan, home, servers)?;
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
    let path = Path::new(catalog, scenario, plan, window)?;
    let results = thread::scope(|scope| {
        let path = scope.spawn(move || halt.guard(|| path::run(path, ports, tap, window, halt)));
        let uplink = scope.spawn(move || halt.guard(|| uplink.run(window, halt)));
        let bulk = scope.spawn(move || halt.guard(|| bulk.run(window, halt)));
        let quic = scope.spawn(move || halt.guard(|| quic.run(window, halt)));
        let datagrams = scope.spawn(move || halt.guard(|| datagrams.run(window, halt)));
        while clock::now() < window.end && !halt.is_set() {
            progress(clock::now().saturating_since(window.start));
            thread::sleep(Duration::from_millis(100).into());
        }
        Ok::<_, LabError>(Results {
            path: joined(path)?,
            uplink: joined(uplink)?,
            bulk: joined(bulk)?,
            quic: joined(quic)?,
            probe: joined(datagrams)?,
        })
    })?;
    Ok((window, results))
}

fn report(scenario: &Scenario, plan: &Plan, window: Window, results: Results, series: bool) -> Run {
    let Results {
        path: PathResults {
            path,
            lateness,
            losses: _,
        },
        uplink,
        bulk,
        quic,
        probe,
    } = results;
    let (uploads, downloads) = bulk.split_at(plan.uploads.len());
    let (quic_uploads, quic_downloads) = quic.split_at(plan.quic[0].len());
    let flows = [
        flow_results(Direction::Up, &plan.uploads, uploads, window),
        flow_results(Direction::Down, &plan.downloads, downloads, window),
        flow_results(Direction::Up, &plan.quic[0], quic_uploads, window),
        flow_results(Direction::Down, &plan.quic[1], quic_downloads, window),
    ]
    .concat();
    let links = [&path.up.meter, &path.down.meter];
    let downlink = uplink.downlink.unwrap_or_else(|| links[1].queue());
    let queues = [&uplink.queue, &downlink];
    let (tcp, quic) = ([uploads, downloads], [quic_uploads, quic_downloads]);
    let report = |direction: Direction| {
        let this = direction as usize;
        let (link, queue) = (links[this], queues[this]);
        let payload: u64 = tcp[1 - this].iter().map(|flow| flow.payload).sum();
        DirectionReport {
            // Measured behind the queue, as packets leave the link.
            utilization: TrafficClass::ALL
                .map(|class| link.share(class))
                .iter()
                .sum(),
            data: link.share(TrafficClass::Data),
            ack: link.share(TrafficClass::Ack),
            acks_per_s: link.acks() as f64 / window.seconds(),
            delivered: link.delivered(tcp[this], TrafficClass::Data)
                + link.delivered(quic[this], TrafficClass::Other),
            bytes_per_ack: DirectionReport::bytes_per_ack(payload as f64, link.acks()),
            // Measured at the hosts.
            probe_ms: probe.as_ref().and_then(|probe| probe.delays[this]),
            // Measured at the queue. Uplink: gateway or kernel qdisc. Downlink: path, or gateway before a modem.
            sojourn_ms: queue.sojourn_ms,
            sojourn_by_class_ms: queue.sojourn_by_class_ms.clone(),
            unfiltered: queue.unfiltered.clone(),
            // Measured on the path.
            lost: path.lost[this] as f64,
            ..DirectionReport::of(&flows, direction, queue.fates.clone())
        }
    };
    let directions = Direction::ALL.map(report);
    let probe_ms = probe.as_ref().and_then(|probe| probe.round_trips);
    let mut summary = Summary::of(directions, flows, probe_ms);
    let has_modems = scenario.modem_up.or(scenario.modem_down).is_some();
    summary.probe_late = probe.filter(|_| has_modems).map(|probe| probe.late);
    let (all_up, data_up) = path.up.meter.series();
    let (all_down, data_down) = path.down.meter.series();
    // Repeats the last value for the last interval, if the end of the run shortens this interval.
    let whole = |mut backlog: Vec<u32>| {
        let last = backlog.last().copied().unwrap_or(0);
        backlog.resize(window.intervals(), last);
        backlog
    };
    Run {
        seed: plan.seed,
        series: series.then(|| Series {
            interval_s: INTERVAL.as_secs_f64(),
            up: all_up,
            down: all_down,
            data_up,
            data_down,
            backlog_up: whole(uplink.queue.backlog),
            backlog_down: whole(downlink.backlog),
        }),
        lateness_ms: lateness.percentiles_ms(),
        summary,
    }
}

fn flow_results(
    direction: Direction,
    flows: &[Conversation],
    results: &[FlowResults],
    window: Window,
) -> Vec<FlowResult> {
    let row = |(flow, of): (&Conversation, &FlowResults)| FlowResult {
        direction,
        start_s: flow.start.as_secs_f64(),
        base_rtt_ms: flow.rtt.as_secs_f64() * 1e3,
        goodput: of.payload as f64 * 8.0 / window.seconds(),
        longest_stall_s: of.longest_stall.as_secs_f64(),
        retransmissions: of.retransmissions.map(f64::from),
        timeouts: of.timeouts.map(f64::from),
        spurious: of.spurious.map(f64::from),
        ..FlowResult::default()
    };
    flows.iter().zip(results).map(row).collect()
}
