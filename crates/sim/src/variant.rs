//! TCP with and without options, chosen by type, so that plain TCP has no overhead.

use crate::congestion::{AnyCongestion, CongestionControl, Connection, Reno, TcpModel};
use crate::ecn::{Echo, EcnReceiver, EcnSender, Offer};
use crate::packets::{Options, TcpOptions};
use crate::receivers::{FullReceiving, Receiving};
use crate::senders::{Bursts, Deliveries, FullSending, Pacer, Repair, Sending};
use asymq_scenario::Scenario;

/// Types that implement TCP for all connections of a run.
pub(crate) trait Variant: 'static {
    type Options: Options;
    type Congestion: CongestionControl;
    type Sending: Sending<Options = Self::Options>;
    type Receiving: Receiving<Options = Self::Options>;
    fn congestion(model: &TcpModel, connection: &Connection) -> Self::Congestion;
    fn sending(scenario: &Scenario, model: &TcpModel) -> Self::Sending;
    /// Creates the option state of a new receiver.
    fn receiving(scenario: &Scenario) -> Self::Receiving;
}

/// Reno without options, for most experiments; has no overhead.
pub(crate) struct Plain;

impl Variant for Plain {
    type Options = ();
    type Congestion = Reno;
    type Sending = ();
    type Receiving = ();

    fn congestion(_model: &TcpModel, _connection: &Connection) -> Reno {
        Reno::new()
    }

    fn sending(_scenario: &Scenario, _model: &TcpModel) {}

    fn receiving(_scenario: &Scenario) {}
}

/// All congestion controls and options.
pub(crate) struct Full;

impl Variant for Full {
    type Options = TcpOptions;
    type Congestion = AnyCongestion;
    type Sending = FullSending;
    type Receiving = FullReceiving;

    fn congestion(model: &TcpModel, connection: &Connection) -> AnyCongestion {
        AnyCongestion::new(&*model.make, connection)
    }

    fn sending(scenario: &Scenario, model: &TcpModel) -> FullSending {
        FullSending {
            repair: scenario.sack.then(|| Repair::new(!scenario.tcp.paces())),
            timestamps: scenario.timestamps,
            ecn: scenario.tcp_ecn.then(|| {
                EcnSender::new(Offer {
                    accurate: scenario.accecn || scenario.tcp.sends_ect1(),
                    ect1: scenario.tcp.sends_ect1(),
                })
            }),
            deliveries: match scenario.sack {
                true => Some(Deliveries::with_rack()),
                false => model.measures_deliveries.then(Deliveries::default),
            },
            bursts: scenario.tcp.is_linux().then(Bursts::default),
            pacer: model.paces.then(Pacer::default),
            ..FullSending::default()
        }
    }

    fn receiving(scenario: &Scenario) -> FullReceiving {
        let echo = match scenario.tcp.needs_ecn() {
            true => Echo::Exact,
            false => Echo::Latched,
        };
        let receiving = FullReceiving::new(
            scenario.sack,
            scenario.timestamps,
            scenario.payload() as u16,
            scenario
                .tcp_ecn
                .then(|| match scenario.accecn || scenario.tcp.sends_ect1() {
                    true => EcnReceiver::new(echo).with_accurate(!scenario.ace_only),
                    false => EcnReceiver::new(echo),
                }),
        );
        match scenario.tcp.is_linux() {
            true => receiving.with_linux_delay(),
            false => receiving,
        }
    }
}
