//! The disciplines: each is a short list of parts, to be compared with its paper.

use super::entry::{Entry, Group, Shown};
use super::role::Role;

const fn paper(name: &'static str, title: &'static str, summary: &'static str) -> Entry {
    Entry {
        title,
        group: Group::Paper,
        shown: Shown::All,
        ..Entry::part(Role::Qdisc, name, summary)
    }
}

/// Every discipline, in the order of `--help`.
pub(super) static DISCIPLINES: &[Entry] = &[
    Entry {
        group: Group::Peer,
        shown: Shown::Short,
        ..paper(
            "droptail",
            "DropTail",
            "One FIFO, arrivals over the limit are dropped",
        )
    },
    Entry {
        source: "Floyd and Jacobson 1993",
        brings: &[("aqm", "red")],
        ..paper("red", "RED", "RED on data in one FIFO")
    },
    Entry {
        source: "RFC 3449, sec. 4.3",
        brings: &[("aqm", "acc")],
        ..paper(
            "acc",
            "ACC",
            "ACK congestion control: RED on data and ACKs alike",
        )
    },
    Entry {
        source: "RFC 3449, sec. 5.4.1",
        brings: &[("classifier", "none"), ("data-queue", "fq")],
        ..paper("fq", "FQ", "A queue per flow, deficit round robin")
    },
    Entry {
        source: "RFC 3449, sec. 5.2.1; VAQ's comparison",
        brings: &[("ack-queue", "af")],
        ..paper("af", "AF", "ACK filtering in one FIFO")
    },
    Entry {
        source: "RFC 3449, sec. 5.4.2; DCBQ's comparison",
        brings: &[("service", "acks-first")],
        ..paper("acks-first", "ACKs-first", "ACKs first, strictly")
    },
    Entry {
        source: "DCBQ's comparison",
        brings: &[("service", "prr")],
        ..paper(
            "prr",
            "PRR",
            "Packets of each class in the ratio of the weights, in turn at equal ones",
        )
    },
    Entry {
        source: "ACQ's and DCBQ's comparison",
        brings: &[("service", "wrr")],
        ..paper(
            "wrr",
            "WRR",
            "ACKs and data share the link by bytes, each taking what the other leaves",
        )
    },
    Entry {
        source: "ACQ's comparison; SAD, sec. 4.2",
        brings: &[("service", "cbq")],
        ..paper(
            "cbq",
            "CBQ",
            "ACKs and data share the link by bytes, without borrowing",
        )
    },
    Entry {
        source: "AQ, sec. 3",
        brings: &[("service", "wrr"), ("controller", "aq")],
        shown: Shown::Usual,
        ..paper(
            "aq",
            "AQ",
            "Asymmetric Queueing: ACKs and data share link and buffer in a computed ratio",
        )
    },
    Entry {
        source: "AFVQ, abstract",
        // A short FIFO drops the ACKs of some flows for minutes.
        brings: &[
            ("ack-queue", "sad"),
            ("service", "acks-first"),
            ("controller", "afvq"),
        ],
        ..paper(
            "afvq",
            "AFVQ",
            "ACKs first, in a queue that shrinks as data queues up",
        )
    },
    Entry {
        source: "ACQ, sec. 3",
        // An idle class lends its share. With the paper's rule alone, the line idles.
        brings: &[
            ("service", "cbq"),
            ("borrow", "true"),
            ("controller", "acq"),
        ],
        ..paper(
            "acq",
            "ACQ",
            "Shares that climb the gradient of the user's utility",
        )
    },
    Entry {
        source: "DCBQ, sec. 4",
        brings: &[
            ("service", "cbq"),
            ("borrow", "true"),
            ("controller", "dcbq"),
        ],
        ..paper(
            "dcbq",
            "DCBQ",
            "The same, with the download measured by the number of ACKs that arrive",
        )
    },
    Entry {
        source: "DCBQ, sec. 5.2",
        // A delayed ACK acknowledges two packets; eq. 3 counts one.
        brings: &[
            ("service", "cbq"),
            ("borrow", "true"),
            ("controller", "dcbq"),
            ("data-per-ack", "2"),
        ],
        shown: Shown::All,
        ..paper("e-dcbq", "E-DCBQ", "DCBQ where receivers delay their ACKs")
    },
    Entry {
        source: "VAQ, sec. 4",
        // The paper's FIFO of 10 packets drops the ACKs of some flows for minutes.
        brings: &[
            ("ack-queue", "sad"),
            ("service", "vaq"),
            ("ack-limit", "30p"),
        ],
        shown: Shown::Usual,
        ..paper("vaq", "VAQ", "Data spends credit that passing ACKs earn")
    },
    Entry {
        source: "SAD, sec. 3",
        brings: &[("ack-queue", "sad"), ("service", "acks-first")],
        shown: Shown::Usual,
        ..paper(
            "sad",
            "SAD",
            "The smart ACK dropper: one slot per flow, served first",
        )
    },
    Entry {
        source: "VAQ's comparison",
        brings: &[("ack-queue", "af")],
        regenerates: true,
        ..paper(
            "fifo+af/ar",
            "FIFO+AF/AR",
            "ACK filtering in one FIFO, ACKs regenerated beyond the link",
        )
    },
    Entry {
        source: "ACQ, sec. 3.3.3",
        brings: &[("ack-queue", "af"), ("service", "cbq")],
        regenerates: true,
        ..paper(
            "cbq+af/ar",
            "CBQ+AF/AR",
            "CBQ with ACK filtering, ACKs regenerated beyond the link",
        )
    },
    Entry {
        source: "ACQ, sec. 3.3.3",
        brings: &[
            ("ack-queue", "af"),
            ("service", "cbq"),
            ("borrow", "true"),
            ("controller", "acq"),
        ],
        regenerates: true,
        ..paper(
            "acq+af/ar",
            "ACQ+AF/AR",
            "ACQ with ACK filtering, ACKs regenerated beyond the link",
        )
    },
    Entry {
        source: "SAD, sec. 4.2",
        brings: &[("ack-queue", "sad"), ("service", "cbq")],
        regenerates: true,
        ..paper(
            "sad+ar+cbq",
            "SAD+AR+CBQ",
            "CBQ with the smart ACK dropper, ACKs regenerated beyond the link",
        )
    },
];
