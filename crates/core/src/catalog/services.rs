//! Services, and their parameters.

use super::{
    BORROW, Config, DATA_SHARE, DATA_SIZE, Either, Entry, FromValue, Kind, Maker, Role, Typed,
    Value, entries, listed, narrow, parameters, words,
};
use crate::decide::service::{
    AckCredit, AcksFirst, AnyService, CreditPer, InOrder, MadeUp, PacedShares, RoundRobin,
    WeightedBytes,
};
use crate::hold::BuildError;
use crate::{Bytes, Duration, Share};

parameters! {
    /// The default covers a packet of the other class; with less, a class of short packets gets less than its share.
    MADE_UP: MadeUp = "made-up", "other",
        "Lost time that a class without borrowing may make up for: a time, own (transmission time of one of its packets) or other (the larger of this time and that of the other class)";
    /// By default, the bytes of a full data queue. With more, an upload after a long download would block ACKs for
    /// minutes.
    MAX_CREDIT: Option<Bytes> = "max-credit", "150000b", "Maximum of VAQ's unspent credit, or none";
    CREDIT: Credit = "credit", "byte",
        "Credit that VAQ gives for an ACK: the acknowledged bytes with headers (byte) or without (payload), or one segment (segment). VAQ's text uses byte, its figures use segment";
}

/// CBQ's default of [`BORROW`].
const ALONE: Typed<bool> = BORROW.or("false");

/// Unit in which ACKs earn VAQ's credit.
#[derive(Clone, Copy)]
enum Credit {
    Byte,
    Payload,
    Segment,
}

words!(Credit:
    "byte" => (Self::Byte),
    "payload" => (Self::Payload),
    "segment" => (Self::Segment),
);

impl FromValue for MadeUp {
    const KIND: Kind = Kind::Either(&Either {
        words: &["own", "other"],
        label: "",
        kind: Kind::Time,
        name: "TIME|own|other",
    });

    fn from_value(value: &Value) -> Option<Self> {
        match value {
            Value::Word("own") => Some(Self::Own),
            Value::Word("other") => Some(Self::Other),
            value => Duration::from_value(value).map(Self::UpTo),
        }
    }
}

type Make = fn(&Config) -> Result<AnyService, BuildError>;

const fn service(name: &'static str, make: Make, summary: &'static str) -> Entry {
    Entry {
        maker: Maker::Service(make),
        ..Entry::part(Role::Service, name, summary)
    }
}

/// The services, in the order of `--help`.
pub(super) static SERVICES: &[Entry] = entries! {
    service("shared", |_| Ok(InOrder.into()), "Serves packets in the order of arrival"),
        brings: &[("buffer-split", "shared")];
    service("acks-first", |_| Ok(AcksFirst.into()), "Serves ACKs before data"), source: "RFC 3449, sec. 5.4.2";
    service("prr", |config| Ok(RoundRobin::new(data_share(config)).into()),
        "Counts packets and serves them in the ratio of the shares; with equal shares, ACKs and data alternate"), source: "DCBQ, sec. 5.1",
        parameters: listed![DATA_SHARE];
    service("wrr", by_bytes, "Serves bytes in the ratio of the shares; a class may use the other's unused share"), source: "ACQ, sec. 3; DCBQ, sec. 5",
        parameters: listed![DATA_SHARE, BORROW, MADE_UP], shares_bytes: true;
    service("cbq", by_bytes, "Serves bytes in the ratio of the shares; an unused share stays unused"),
        source: "ACQ, sec. 3; SAD, sec. 4.2", parameters: listed![DATA_SHARE, ALONE, MADE_UP], shares_bytes: true,
        needs_link: true;
    service("vaq", by_credit, "Serves data only against credit that passing ACKs have earned"), source: "VAQ, sec. 4",
        brings: &[("ack-limit", "10p"), ("data-limit", "100p")], parameters: listed![CREDIT, DATA_SIZE, MAX_CREDIT],
        needs_link: true, needs_reverse: true;
};

/// Returns data's share. A controller that changes the share has its own initial value.
fn data_share(config: &Config) -> Share {
    config.find(DATA_SHARE).unwrap_or(Share::HALF)
}

fn by_bytes(config: &Config) -> Result<AnyService, BuildError> {
    let share = data_share(config);
    Ok(match config.get(BORROW)? {
        true => WeightedBytes::new(share).into(),
        false => PacedShares::new(config.link, share, config.get(MADE_UP)?).into(),
    })
}

fn by_credit(config: &Config) -> Result<AnyService, BuildError> {
    let segment = narrow(config.get(DATA_SIZE)?);
    let per = match config.get(CREDIT)? {
        Credit::Byte => CreditPer::Byte(segment),
        Credit::Payload => CreditPer::Payload,
        Credit::Segment => CreditPer::Segment(segment),
    };
    let max = config.get(MAX_CREDIT)?.map_or(u64::MAX, |bytes| bytes.0);
    let reverse = config.needed_reverse()?;
    Ok(AckCredit::new(per, config.link, reverse, max).into())
}
