//! A congestion control that is a Python object: events call its methods, and its window is read after
//! each event. A breach of the contract ends the run with an error.

use crate::discipline::{broken, raise};
use asymq_args::Defaults;
use asymq_scenario::OutsideTcp;
use asymq_sim::congestion::{self, About, AckSample as Sample, Catalog, CongestionControl, Lost};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A connection's facts, as its congestion control sees them.
#[pyclass(frozen, module = "asymq", get_all)]
pub(crate) struct Connection {
    /// Payload bytes of a full segment.
    payload_bytes: u32,
    /// Differs from connection to connection and from run to run; all that is random comes from it.
    seed: u64,
}

/// An ACK's measurements of the path. Times in ns, volumes in segments, the rate in segments per second.
#[pyclass(frozen, module = "asymq", get_all)]
pub(crate) struct AckSample {
    /// When it arrived.
    now: u64,
    /// The acknowledgement number.
    ack: u64,
    /// One past the highest segment sent.
    end: u64,
    /// The round-trip time, if it acknowledges a segment that was sent once.
    rtt: Option<u64>,
    /// Delivered in all.
    total: u64,
    /// Delivered newly by this ACK.
    newly: u64,
    /// Delivered in all as the newest of those was sent.
    prior: u64,
    /// Delivered since then.
    delivered: u64,
    /// Delivery rate; 0 if it is not reliable.
    rate: f64,
    /// Lost since then.
    lost: u64,
    /// In flight then.
    sent_in_flight: u64,
    /// True if the application limited what was sent then.
    app_limited: bool,
    /// In flight now.
    in_flight: u64,
    /// True if the window was full at any time in the last round trip.
    window_limited: bool,
}

/// A segment that is thought lost. Volumes in segments.
#[pyclass(frozen, module = "asymq", get_all)]
pub(crate) struct LostSegment {
    /// Which; 0 is the SYN.
    number: u64,
    /// In flight as it was sent, this one included.
    in_flight: u64,
    /// Lost since it was sent, this one included.
    lost: u64,
    /// Delivered by now.
    delivered: u64,
    /// True if the application limited what was sent then.
    app_limited: bool,
}

/// A class that keeps the contract.
pub(crate) struct Class {
    class: Py<PyAny>,
    /// The optional methods that it has.
    events: Arc<[String]>,
    paces: bool,
}

impl Class {
    fn new(class: Py<PyAny>, events: Vec<String>, paces: bool) -> Self {
        Self {
            class,
            events: events.into(),
            paces,
        }
    }

    fn about(&self) -> About {
        let deliveries = |event: &String| matches!(event.as_str(), "on_sample" | "on_lost");
        About {
            paces: self.paces,
            measures_deliveries: self.events.iter().any(deliveries),
        }
    }

    /// The object of a connection. A constructor that fails ends the run with its own error.
    fn make(&self, connection: &congestion::Connection) -> Box<dyn CongestionControl> {
        let made = Python::attach(|py| {
            let shown = Connection {
                payload_bytes: connection.payload,
                seed: connection.seed,
            };
            let object = self.class.bind(py).call1((shown,))?;
            let mut made = PyCongestion {
                object: object.unbind(),
                events: Arc::clone(&self.events),
                paces: self.paces,
                largest: connection.largest_window(),
                window: 1.0,
                threshold: f64::MAX,
                pacing_rate: None,
            };
            made.read(py, "__init__")?;
            Ok(made)
        });
        Box::new(made.unwrap_or_else(|error| raise(error)))
    }
}

/// The classes that Python has registered.
struct Registered {
    catalog: Catalog,
    /// Its names, as scenarios refer to them for as long as the process lives.
    names: &'static [OutsideTcp],
}

static REGISTERED: Mutex<Registered> = Mutex::new(Registered {
    catalog: Catalog::new(),
    names: &[],
});

fn registered() -> MutexGuard<'static, Registered> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The registered classes, for a simulator.
pub(crate) fn catalog() -> Catalog {
    registered().catalog.clone()
}

/// The names of the registered classes.
pub(crate) fn names() -> &'static [OutsideTcp] {
    registered().names
}

/// The defaults of scenarios, which may name the registered classes.
pub(crate) fn defaults() -> Defaults {
    Defaults::sim().with(names())
}

/// Registers a class under a name. Replaces a former class of that name, as when a notebook's cell runs again.
#[pyfunction]
pub(crate) fn register_congestion(
    name: &str,
    events: Vec<String>,
    paces: bool,
    class: Py<PyAny>,
) -> PyResult<()> {
    let class = Class::new(class, events, paces);
    let mut registered = registered();
    registered
        .catalog
        .add(name, class.about(), move |connection| {
            class.make(connection)
        })
        .map_err(PyValueError::new_err)?;
    registered.names = registered.catalog.names().leak();
    Ok(())
}

/// The input of the laws: a maker of one, and its description.
pub(crate) fn tried(
    class: Py<PyAny>,
    events: Vec<String>,
    paces: bool,
) -> (impl Fn() -> Box<dyn CongestionControl> + Send + Sync, About) {
    let class = Arc::new(Class::new(class, events, paces));
    let about = class.about();
    let connection = congestion::Connection {
        payload: 1460,
        seed: 1,
    };
    (move || class.make(&connection), about)
}

/// A Python object as a congestion control.
struct PyCongestion {
    object: Py<PyAny>,
    events: Arc<[String]>,
    paces: bool,
    /// No window is larger, in segments.
    largest: f64,
    // As read after the last event.
    window: f64,
    threshold: f64,
    pacing_rate: Option<f64>,
}

impl PyCongestion {
    /// Calls a method, and reads what follows.
    fn tell(&mut self, event: &'static str, arguments: impl for<'py> PyCallArgs<'py>) {
        let told = Python::attach(|py| {
            let object = self.object.bind(py);
            object.call_method1(PyString::intern(py, event), arguments)?;
            self.read(py, event)
        });
        told.unwrap_or_else(|error| raise(error));
    }

    /// Calls an optional method, if the class has it.
    fn tell_optional(&mut self, event: &'static str, arguments: impl for<'py> PyCallArgs<'py>) {
        if self.has(event) {
            self.tell(event, arguments);
        }
    }

    fn has(&self, event: &str) -> bool {
        self.events.iter().any(|known| known == event)
    }

    fn read(&mut self, py: Python<'_>, event: &str) -> PyResult<()> {
        let object = self.object.bind(py);
        let wrong = |what: &str, value: &Bound<'_, PyAny>, right: &str| {
            let class = object.get_type().name()?;
            Err(broken(format!(
                "{class}.{event} left {what} = {}; it is {right}",
                value.repr()?
            )))
        };
        let number = |value: &Bound<'_, PyAny>| value.extract::<f64>().unwrap_or(f64::NAN);
        let window = object.getattr(intern!(py, "window"))?;
        self.window = number(&window);
        if !(1.0..=self.largest).contains(&self.window) {
            let right = format!("a number of segments from 1 to {}", self.largest as u64);
            return wrong("window", &window, &right);
        }
        let threshold = object.getattr(intern!(py, "threshold"))?;
        self.threshold = number(&threshold);
        if self.threshold.is_nan() || self.threshold <= 0.0 {
            return wrong("threshold", &threshold, "a number of segments above 0");
        }
        if self.paces {
            let rate = object.getattr(intern!(py, "pacing_rate"))?;
            self.pacing_rate = if rate.is_none() {
                None
            } else {
                Some(number(&rate))
            };
            if self
                .pacing_rate
                .is_some_and(|rate| !(rate > 0.0 && rate.is_finite()))
            {
                let right = "a number of segments per second above 0, or None";
                return wrong("pacing_rate", &rate, right);
            }
        }
        Ok(())
    }
}

impl CongestionControl for PyCongestion {
    fn window(&self) -> f64 {
        self.window
    }

    fn threshold(&self) -> f64 {
        self.threshold
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.pacing_rate
    }

    fn on_established(&mut self, initial_window: f64) {
        self.tell("on_established", (initial_window,));
    }

    fn on_ack(&mut self, acked: u64, now: u64, srtt: u64) {
        self.tell("on_ack", (acked, now, srtt));
    }

    fn on_fast_retransmit(&mut self, flight: f64) {
        self.tell("on_fast_retransmit", (flight,));
    }

    fn on_selective_loss(&mut self, flight: f64) {
        self.tell("on_selective_loss", (flight,));
    }

    fn on_mark(&mut self, flight: f64) {
        self.tell("on_mark", (flight,));
    }

    fn on_timeout(&mut self, flight: f64) {
        self.tell("on_timeout", (flight,));
    }

    fn on_duplicate_ack(&mut self) {
        self.tell_optional("on_duplicate_ack", ());
    }

    fn on_partial_ack(&mut self, acked: u64) {
        self.tell_optional("on_partial_ack", (acked,));
    }

    fn on_recovered(&mut self) {
        self.tell_optional("on_recovered", ());
    }

    fn on_idle(&mut self, restart_window: f64) {
        self.tell_optional("on_idle", (restart_window,));
    }

    fn on_echo(&mut self, acked: u64, marked: u64, una: u64, end: u64) {
        self.tell_optional("on_echo", (acked, marked, una, end));
    }

    fn on_sample(&mut self, sample: &Sample) {
        if self.has("on_sample") {
            let sample = AckSample {
                now: sample.now,
                ack: sample.ack,
                end: sample.end,
                rtt: sample.rtt,
                total: sample.total,
                newly: sample.newly,
                prior: sample.prior,
                delivered: sample.delivered,
                rate: sample.rate,
                lost: sample.lost,
                sent_in_flight: sample.sent_in_flight,
                app_limited: sample.app_limited,
                in_flight: sample.in_flight,
                window_limited: sample.window_limited,
            };
            self.tell("on_sample", (sample,));
        }
    }

    fn on_lost(&mut self, now: u64, lost: &Lost) {
        if self.has("on_lost") {
            let lost = LostSegment {
                number: lost.number,
                in_flight: lost.in_flight,
                lost: lost.lost,
                delivered: lost.delivered,
                app_limited: lost.app_limited,
            };
            self.tell("on_lost", (now, lost));
        }
    }
}
