//! A congestion control implemented by a Python object. Events call the object's methods; after each event, its window is
//! read. An exception, or a window or rate out of range, ends the run with an error.

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

/// Facts about a connection for its congestion control.
#[pyclass(frozen, module = "asymq", get_all)]
pub(crate) struct Connection {
    /// Payload bytes of a full segment.
    payload_bytes: u32,
    /// Random seed, different for each connection and run. All randomness must come from it.
    seed: u64,
}

/// Declares a class whose fields are copies of the fields of a type of the simulator.
macro_rules! shows {
    ($source:ty; $(#[$doc:meta])+ struct $class:ident { $($(#[$about:meta])+ $field:ident: $type:ty,)+ }) => {
        $(#[$doc])+
        #[pyclass(frozen, module = "asymq", get_all)]
        pub(crate) struct $class {
            $($(#[$about])+ $field: $type,)+
        }

        impl From<&$source> for $class {
            fn from(shown: &$source) -> Self {
                Self { $($field: shown.$field),+ }
            }
        }
    };
}

shows! {
    Sample;
    /// Measurements of one ACK. Times in ns, volumes in segments, the rate in segments per second.
    struct AckSample {
        /// Arrival time of the ACK.
        now: u64,
        /// The acknowledgement number.
        ack: u64,
        /// Number of the segment after the highest one sent.
        end: u64,
        /// Round-trip time; `None` if the ACK acknowledges only retransmitted segments.
        rtt: Option<u64>,
        /// Total number of delivered segments.
        total: u64,
        /// Segments that this ACK newly delivers.
        newly: u64,
        /// Total number of delivered segments when the newest segment of `newly` was sent.
        prior: u64,
        /// Segments delivered since that segment was sent.
        delivered: u64,
        /// Delivery rate since that segment was sent; 0 if unreliable.
        rate: f64,
        /// Segments lost since that segment was sent.
        lost: u64,
        /// Segments in flight when that segment was sent.
        sent_in_flight: u64,
        /// True if the application limited the sending when that segment was sent.
        app_limited: bool,
        /// Segments in flight now.
        in_flight: u64,
        /// True if the window was full at some time in the last round trip.
        window_limited: bool,
    }
}

shows! {
    Lost;
    /// A segment that is considered lost. Volumes in segments.
    struct LostSegment {
        /// Number of the segment; 0 is the SYN.
        number: u64,
        /// Segments in flight when this segment was sent, including this segment.
        in_flight: u64,
        /// Segments lost since this segment was sent, including this segment.
        lost: u64,
        /// Segments delivered so far.
        delivered: u64,
        /// True if the application limited the sending when this segment was sent.
        app_limited: bool,
    }
}

/// Python class of a congestion control, with the optional methods that the class has.
pub(crate) struct Class {
    class: Py<PyAny>,
    /// Optional methods that the class has.
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

    /// Creates the object for a connection. An error in its constructor ends the run.
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

/// The classes registered by Python.
struct Registered {
    catalog: Catalog,
    /// Names of the classes, for scenarios; never freed.
    names: &'static [OutsideTcp],
}

static REGISTERED: Mutex<Registered> = Mutex::new(Registered {
    catalog: Catalog::new(),
    names: &[],
});

fn registered() -> MutexGuard<'static, Registered> {
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the registered classes, for a simulator.
pub(crate) fn catalog() -> Catalog {
    registered().catalog.clone()
}

pub(crate) fn names() -> &'static [OutsideTcp] {
    registered().names
}

/// Returns defaults of scenarios, which may name the registered classes.
pub(crate) fn defaults() -> Defaults {
    Defaults::sim().with(names())
}

/// Registers a class under a name. Replaces a previous class of this name, as when a notebook's cell runs again.
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

/// Returns the input of the tests in `asymq-laws`: a function that creates a congestion control, and its description.
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
    /// Maximum window, in segments.
    largest: f64,
    // Values read after the latest event.
    window: f64,
    threshold: f64,
    pacing_rate: Option<f64>,
}

impl PyCongestion {
    /// Calls a method, and then reads the window, the threshold and the pacing rate.
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
        if self.events.iter().any(|known| known == event) {
            self.tell(event, arguments);
        }
    }

    fn read(&mut self, py: Python<'_>, event: &str) -> PyResult<()> {
        let object = self.object.bind(py);
        let wrong = |what: &str, value: &Bound<'_, PyAny>, right: &str| {
            let class = object.get_type().name()?;
            Err(broken(format!(
                "{class}.{event} set {what} = {}; it must be {right}",
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
            self.pacing_rate = (!rate.is_none()).then(|| number(&rate));
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

/// Implements events by calls of a method of [`PyCongestion`].
macro_rules! events {
    ($($tell:ident: $($event:ident($($argument:ident: $type:ty),*))+;)+) => {$($(
        fn $event(&mut self, $($argument: $type),*) {
            self.$tell(stringify!($event), ($($argument,)*));
        }
    )+)+};
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

    events! {
        tell: on_established(initial_window: f64) on_ack(acked: u64, now: u64, srtt: u64)
            on_fast_retransmit(flight: f64) on_selective_loss(flight: f64) on_mark(flight: f64) on_timeout(flight: f64);
        tell_optional: on_duplicate_ack() on_partial_ack(acked: u64) on_recovered() on_idle(restart_window: f64)
            on_echo(acked: u64, marked: u64, una: u64, end: u64);
    }

    fn on_sample(&mut self, sample: &Sample) {
        self.tell_optional("on_sample", (AckSample::from(sample),));
    }

    fn on_lost(&mut self, now: u64, lost: &Lost) {
        self.tell_optional("on_lost", (now, LostSegment::from(lost)));
    }
}
