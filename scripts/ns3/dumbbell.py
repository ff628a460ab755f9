"""Runs ns-3 (the wheel on PyPI) with given settings: the dumbbell of AQ, sec. 4, with one TCP variant per setting.

    python scripts/ns3/dumbbell.py < settings.json

Reads a list of settings and prints a line of JSON with each result. A setting has `up`, `down` in
bit/s, `flows_up`, `flows_down`, `rtt` in s, `buffer` in packets, `duration`, `warmup` in s, `tcp` (a
type of ns-3), `ecn`, `hystart`, `pacing` (booleans), `mark_above` in packets (0: DropTail) and `seed`. A
result has the share of each link that IP bytes took after the warm-up (`up`, `down`), the goodput of
each flow in bit/s, the median sojourn in each bottleneck queue in ms, and the packets lost and marked there.

Otherwise as in asymq's simulator: segments of 1460 bytes, SACK, an ACK for every segment, no timestamps, an
initial window of 2, access links of 100 Mbit/s, flows that start in the first second. One-way delays are 1 ms
at home and at the bottleneck; the servers' access links have the rest.
"""

import json
import random
import sys

from ns import ns

SETUP = """
#include <algorithm>
#include <vector>
#include "ns3/core-module.h"
#include "ns3/network-module.h"
#include "ns3/internet-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"
#include "ns3/applications-module.h"
namespace asymq {
struct Meter {
    uint64_t bytes = 0, dropped = 0, marked = 0;
    std::vector<double> sojourns;
    double from = 0;
    double median() {
        if (sojourns.empty()) { return 0; }
        auto middle = sojourns.begin() + sojourns.size() / 2;
        std::nth_element(sojourns.begin(), middle, sojourns.end());
        return *middle;
    }
    bool on() const { return ns3::Simulator::Now().GetSeconds() >= from; }
};
inline void sent(Meter* meter, ns3::Ptr<const ns3::Packet> packet) {
    // Without the two bytes of PPP.
    if (meter->on()) { meter->bytes += packet->GetSize() - 2; }
}
inline void waited(Meter* meter, ns3::Time time) {
    if (meter->on()) { meter->sojourns.push_back(time.GetSeconds()); }
}
inline void dropped(Meter* meter, ns3::Ptr<const ns3::QueueDiscItem>) {
    if (meter->on()) { meter->dropped += 1; }
}
inline void marked(Meter* meter, ns3::Ptr<const ns3::QueueDiscItem>, const char*) {
    if (meter->on()) { meter->marked += 1; }
}
inline void watch(Meter* meter, ns3::Ptr<ns3::NetDevice> device, ns3::Ptr<ns3::QueueDisc> disc) {
    auto link = ns3::DynamicCast<ns3::PointToPointNetDevice>(device);
    link->TraceConnectWithoutContext("PhyTxEnd", ns3::MakeBoundCallback(&sent, meter));
    disc->TraceConnectWithoutContext("SojournTime", ns3::MakeBoundCallback(&waited, meter));
    disc->TraceConnectWithoutContext("Drop", ns3::MakeBoundCallback(&dropped, meter));
    disc->TraceConnectWithoutContext("Mark", ns3::MakeBoundCallback(&marked, meter));
}
}
"""


def run(setting):
    """Runs one setting; returns its result."""
    draw = random.Random(setting["seed"])
    ns.RngSeedManager.SetSeed(1)
    ns.RngSeedManager.SetRun(setting["seed"])
    fixed = {
        "ns3::TcpL4Protocol::SocketType": ns.TypeIdValue(ns.TypeId.LookupByName(setting["tcp"])),
        "ns3::TcpSocket::SegmentSize": ns.UintegerValue(1460),
        "ns3::TcpSocket::InitialCwnd": ns.UintegerValue(2),
        "ns3::TcpSocket::DelAckCount": ns.UintegerValue(1),
        "ns3::TcpSocket::SndBufSize": ns.UintegerValue(1 << 24),
        "ns3::TcpSocket::RcvBufSize": ns.UintegerValue(1 << 24),
        "ns3::TcpSocketBase::Sack": ns.BooleanValue(True),
        "ns3::TcpSocketBase::Timestamp": ns.BooleanValue(False),
        "ns3::TcpSocketBase::MinRto": ns.TimeValue(ns.MilliSeconds(200)),
        "ns3::TcpSocketBase::UseEcn": ns.StringValue("On" if setting["ecn"] else "Off"),
        "ns3::TcpSocketState::EnablePacing": ns.BooleanValue(setting["pacing"]),
        "ns3::TcpSocketState::PaceInitialWindow": ns.BooleanValue(False),
        "ns3::TcpCubic::HyStart": ns.BooleanValue(setting["hystart"]),
    }
    for name, value in fixed.items():
        ns.Config.SetDefault(name, value)

    routers = ns.NodeContainer()
    routers.Create(2)
    count = setting["flows_up"] + setting["flows_down"]
    homes, servers = ns.NodeContainer(), ns.NodeContainer()
    homes.Create(count)
    servers.Create(count)
    stack = ns.InternetStackHelper()
    for nodes in (routers, homes, servers):
        stack.Install(nodes)

    def link(a, b, rate, delay):
        helper = ns.PointToPointHelper()
        helper.SetDeviceAttribute("DataRate", ns.StringValue(f"{int(rate)}bps"))
        helper.SetChannelAttribute("Delay", ns.StringValue(f"{int(delay * 1e9)}ns"))
        # The device holds only one packet, so that the discipline holds the queue.
        helper.SetQueue("ns3::DropTailQueue", "MaxSize", ns.StringValue("1p"))
        return helper.Install(a, b)

    # Home, bottleneck and server: half a round trip in total.
    bottleneck = link(routers.Get(0), routers.Get(1), setting["up"], 0.001)
    bottleneck.Get(1).SetAttribute("DataRate", ns.StringValue(f"{int(setting['down'])}bps"))
    control = ns.TrafficControlHelper()
    if setting["mark_above"]:
        step = str(setting["mark_above"])
        # RFC 8257, sec. 3.1: RED with a step, for the current backlog instead of its average.
        control.SetRootQueueDisc(
            "ns3::RedQueueDisc",
            "MaxSize", ns.StringValue(f"{setting['buffer']}p"),
            "MinTh", ns.StringValue(step), "MaxTh", ns.StringValue(step),
            "QW", ns.StringValue("1"), "UseEcn", ns.StringValue("true"),
            "UseHardDrop", ns.StringValue("false"), "Gentle", ns.StringValue("false"),
            "LinkBandwidth", ns.StringValue(f"{int(setting['down'])}bps"),
            "MeanPktSize", ns.StringValue("1500"),
        )
    else:
        control.SetRootQueueDisc(
            "ns3::FifoQueueDisc", "MaxSize", ns.StringValue(f"{setting['buffer'] - 1}p")
        )
    discs = control.Install(bottleneck)
    meters = [ns.cppyy.gbl.asymq.Meter() for _ in range(2)]
    for index, meter in enumerate(meters):
        setattr(meter, "from", setting["warmup"])
        ns.cppyy.gbl.asymq.watch(meter, bottleneck.Get(index), discs.Get(index))

    addresses = ns.Ipv4AddressHelper()
    addresses.SetBase(ns.Ipv4Address("10.0.0.0"), ns.Ipv4Mask("255.255.255.0"))
    addresses.Assign(bottleneck)
    sinks, starts = [], []
    for flow in range(count):
        rtt = setting["rtt"]
        for side, (node, router, delay) in enumerate(
            ((homes.Get(flow), routers.Get(0), 0.001),
             (servers.Get(flow), routers.Get(1), rtt / 2 - 0.002))
        ):
            access = link(node, router, 1e8, delay)
            plain = ns.TrafficControlHelper()
            plain.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", ns.StringValue("1000p"))
            plain.Install(access)
            addresses.SetBase(
                ns.Ipv4Address(f"10.{side + 1}.{flow}.0"), ns.Ipv4Mask("255.255.255.0")
            )
            assigned = addresses.Assign(access)
            if side == (0 if flow >= setting["flows_up"] else 1):
                receiver, address = node, assigned.GetAddress(0)
            else:
                sender = node
        port = 5001
        socket = ns.InetSocketAddress(address, port).ConvertTo()
        sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", ns.InetSocketAddress(
            ns.Ipv4Address.GetAny(), port).ConvertTo()).Install(receiver)
        sink.Start(ns.Seconds(0))
        bulk = ns.BulkSendHelper("ns3::TcpSocketFactory", socket)
        bulk.SetAttribute("SendSize", ns.UintegerValue(1460))
        application = bulk.Install(sender)
        application.Start(ns.Seconds(draw.random()))
        sinks.append(sink.Get(0).GetObject[ns.PacketSink]())
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()

    ns.Simulator.Stop(ns.Seconds(setting["warmup"]))
    ns.Simulator.Run()
    before = [sink.GetTotalRx() for sink in sinks]
    ns.Simulator.Stop(ns.Seconds(setting["duration"] - setting["warmup"]))
    ns.Simulator.Run()
    span = setting["duration"] - setting["warmup"]
    goodput = [(sink.GetTotalRx() - old) * 8 / span for sink, old in zip(sinks, before)]
    result = {
        "up": meters[0].bytes * 8 / span / setting["up"],
        "down": meters[1].bytes * 8 / span / setting["down"],
        "goodput": goodput,
        "sojourn_ms": [m.median() * 1e3 for m in meters],
        "dropped": [m.dropped for m in meters],
        "marked": [m.marked for m in meters],
    }
    ns.Simulator.Destroy()
    return result


def main():
    ns.cppyy.cppdef(SETUP)
    for setting in json.load(sys.stdin):
        print(json.dumps(run(setting)), flush=True)


main()
