//! TCP with and without options, chosen by type: plain TCP does not pay for what it does not use.

use crate::congestion::{AnyCongestion, Prototype, Reno};
use crate::packets::{Options, TcpOptions};
use crate::receivers::{FullReceiving, Receiving};
use crate::senders::{
    Deliveries, Echo, EcnReceiver, EcnSender, FullSending, Pacer, Scoreboard, Sending,
};
use asymq_scenario::{Scenario, Tcp};

/// Nothing but acknowledgement numbers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Nothing;

impl Sending for Nothing {
    type Options = ();
}

impl Receiving for Nothing {
    type Options = ();
}

/// The parts of TCP that all connections of a run use.
pub(crate) trait Variant: 'static {
    type Options: Options;
    type Congestion: Prototype;
    type Sending: Sending<Options = Self::Options>;
    type Receiving: Receiving<Options = Self::Options>;
    /// A new sender's part.
    fn sending(scenario: &Scenario) -> Self::Sending;
    /// A new receiver's part.
    fn receiving(scenario: &Scenario) -> Self::Receiving;
}

/// Reno's window and no options: what most experiments need, without the cost of the rest.
pub(crate) struct Plain;

impl Variant for Plain {
    type Options = ();
    type Congestion = Reno;
    type Sending = Nothing;
    type Receiving = Nothing;

    fn sending(_scenario: &Scenario) -> Nothing {
        Nothing
    }

    fn receiving(_scenario: &Scenario) -> Nothing {
        Nothing
    }
}

/// Every window and option.
pub(crate) struct Full;

impl Variant for Full {
    type Options = TcpOptions;
    type Congestion = AnyCongestion;
    type Sending = FullSending;
    type Receiving = FullReceiving;

    fn sending(scenario: &Scenario) -> FullSending {
        FullSending {
            scoreboard: scenario.sack.then(Scoreboard::default),
            timestamps: scenario.timestamps,
            sample_beyond: 0,
            ecn: scenario.tcp_ecn.then(EcnSender::default),
            deliveries: match scenario.tcp {
                // As Linux' RACK repairs for BBR; the others do as RFC 6675 says.
                Tcp::Bbr3 => Some(Deliveries::with_repairs()),
                _ => scenario.measures_deliveries().then(Deliveries::default),
            },
            pacer: scenario.paces().then(Pacer::default),
        }
    }

    fn receiving(scenario: &Scenario) -> FullReceiving {
        let echo = match scenario.tcp {
            Tcp::Dctcp => Echo::Exact,
            _ => Echo::Latched,
        };
        FullReceiving::new(
            scenario.sack,
            scenario.timestamps,
            scenario.payload() as u16,
            scenario.tcp_ecn.then(|| EcnReceiver::new(echo)),
        )
    }
}
