//! The disciplines. Each is a short list of parts, easy to compare with its paper.

use super::{Entry, Group, Role, Shown, entries};

pub(super) const fn paper(name: &'static str, title: &'static str, summary: &'static str) -> Entry {
    Entry {
        title,
        group: Group::Paper,
        shown: Shown::All,
        ..Entry::part(Role::Qdisc, name, summary)
    }
}

/// Every discipline, in the order of `--help`.
pub(super) static DISCIPLINES: &[Entry] = entries! {
    paper("droptail", "DropTail", "One FIFO that drops arrivals above the limit"), group: Group::Peer,
        shown: Shown::Short;
    paper("red", "RED", "One FIFO with RED (random early detection) for data"), source: "Floyd and Jacobson 1993", brings: &[("aqm", "red")];
    paper("acc", "ACC", "ACK congestion control: applies RED to data and ACKs"), source: "RFC 3449, sec. 4.3",
        brings: &[("aqm", "acc")];
    paper("fq", "FQ", "A queue per flow, served by deficit round robin"), source: "RFC 3449, sec. 5.4.1",
        brings: &[("classifier", "none"), ("data-queue", "fq")];
    paper("af", "AF", "ACK filtering in one FIFO"), source: "RFC 3449, sec. 5.2.1; VAQ's comparison",
        brings: &[("ack-queue", "af")];
    paper("acks-first", "ACKs-first", "Serves ACKs before data (strict priority)"), source: "RFC 3449, sec. 5.4.2; DCBQ's comparison",
        brings: &[("service", "acks-first")];
    paper("prr", "PRR", "Serves ACKs and data in the ratio of their shares, counted in packets"),
        source: "DCBQ's comparison", brings: &[("service", "prr")];
    paper("wrr", "WRR", "ACKs and data share the link by bytes, with borrowing"),
        source: "ACQ's and DCBQ's comparison", brings: &[("service", "wrr")];
    paper("cbq", "CBQ", "ACKs and data share the link by bytes, without borrowing"),
        source: "ACQ's comparison; SAD, sec. 4.2", brings: &[("service", "cbq")];
    paper("aq", "AQ", "Asymmetric Queueing: ACKs and data share the link and the buffer in a computed ratio"),
        source: "AQ, sec. 3", brings: &[("service", "wrr"), ("controller", "aq")], shown: Shown::Usual;
    // `sad` instead of a FIFO: a short FIFO drops the ACKs of some flows for minutes.
    paper("afvq", "AFVQ", "Serves ACKs first; the ACK queue's limit falls as the data queue grows"), source: "AFVQ, abstract",
        brings: &[("ack-queue", "sad"), ("service", "acks-first"), ("controller", "afvq")];
    // `borrow`: without it, as in the paper, the share of an idle class stays unused. `sad`: at 1/20 Mbit/s, a FIFO of
    // ACKs drops all ACKs of some flows for minutes.
    paper("acq", "ACQ", "Adjusts the shares of ACKs and data along the gradient of a utility"), source: "ACQ, sec. 3",
        brings: &[("ack-queue", "sad"), ("service", "cbq"), ("borrow", "true"), ("controller", "acq")];
    paper("dcbq", "DCBQ", "ACQ that measures downloads by the number of arriving ACKs"),
        source: "DCBQ, sec. 4",
        brings: &[("ack-queue", "sad"), ("service", "cbq"), ("borrow", "true"), ("controller", "dcbq")];
    // A delayed ACK acknowledges two packets; eq. 3 assumes one packet per ACK.
    paper("e-dcbq", "E-DCBQ", "DCBQ for receivers that delay their ACKs"), source: "DCBQ, sec. 5.2",
        brings: &[("ack-queue", "sad"), ("service", "cbq"), ("borrow", "true"), ("controller", "dcbq"),
            ("data-per-ack", "2")];
    // `sad` and 30 packets: the paper's FIFO of 10 packets drops the ACKs of some flows for minutes.
    paper("vaq", "VAQ", "Each passing ACK earns credit that data may use"), source: "VAQ, sec. 4",
        brings: &[("ack-queue", "sad"), ("service", "vaq"), ("ack-limit", "30p")], shown: Shown::Usual;
    paper("sad", "SAD", "Smart ACK dropper: keeps the newest ACK of each flow, and serves ACKs before data"), source: "SAD, sec. 3",
        brings: &[("ack-queue", "sad"), ("service", "acks-first")], shown: Shown::Usual;
    paper("fifo+af/ar", "FIFO+AF/AR", "ACK filtering in one FIFO; ACKs are regenerated beyond the link"),
        source: "VAQ's comparison", brings: &[("ack-queue", "af")], regenerates: true;
    paper("cbq+af/ar", "CBQ+AF/AR", "CBQ with ACK filtering; ACKs are regenerated beyond the link"),
        source: "ACQ, sec. 3.3.3", brings: &[("ack-queue", "af"), ("service", "cbq")], regenerates: true;
    paper("acq+af/ar", "ACQ+AF/AR", "ACQ with ACK filtering; ACKs are regenerated beyond the link"),
        source: "ACQ, sec. 3.3.3",
        brings: &[("ack-queue", "af"), ("service", "cbq"), ("borrow", "true"), ("controller", "acq")],
        regenerates: true;
    paper("sad+ar+cbq", "SAD+AR+CBQ", "CBQ with the smart ACK dropper; ACKs are regenerated beyond the link"),
        source: "SAD, sec. 4.2", brings: &[("ack-queue", "sad"), ("service", "cbq")], regenerates: true;
};
