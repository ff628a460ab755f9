//! A discipline implemented by a Python object. Packets stay in Rust: Python gets their fields, and selects the
//! packets that leave. An exception, or an invalid answer, ends the run with an error.

use asymq_core::catalog::{Config, Entry, Value};
use asymq_core::hold::BuildError;
use asymq_core::packet::{Header, Packet as CorePacket};
use asymq_core::qdisc::{Backlog, Dequeue, Probe, Qdisc, Reading, Reason};
use asymq_core::units::{Instant, Limit};
use asymq_core::{Ecn, Protocol};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};
use std::collections::{BTreeMap, HashMap};
use std::panic::resume_unwind;
use std::sync::{Mutex, PoisonError};

/// Fields of a packet that a discipline may read.
#[pyclass(frozen, module = "asymq", eq, hash, get_all)]
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Packet {
    /// Number of the packet, in the order of arrival at this discipline.
    number: u64,
    /// Time of arrival at the queue, in ns.
    arrival: u64,
    /// Number of the packet's conversation and direction.
    flow: u64,
    /// Bytes charged to the link.
    length: u32,
    /// TCP payload bytes; 0 unless TCP.
    payload: u32,
    /// TCP acknowledgement number; meaningful only for segments that have one.
    ack: u32,
    /// TCP flags; 0 unless TCP.
    flags: u16,
    /// True for a whole TCP segment.
    is_tcp: bool,
    /// True for a TCP segment with ACK set, no payload, and no SYN, FIN or RST.
    is_pure_ack: bool,
    /// True if the sender understands congestion marks.
    is_ecn_capable: bool,
}

impl Packet {
    fn of(number: u64, header: &Header) -> Self {
        Self {
            number,
            arrival: header.arrival.as_nanos(),
            flow: header.flow.0,
            length: header.len,
            payload: header.payload,
            ack: header.ack,
            flags: header.flags,
            is_tcp: header.protocol == Protocol::Tcp,
            is_pure_ack: header.is_pure_ack(),
            is_ecn_capable: header.ecn.is_capable(),
        }
    }
}

#[pymethods]
impl Packet {
    fn __repr__(&self) -> String {
        let kind = match (self.is_pure_ack, self.payload) {
            (true, _) => "ACK",
            (false, 0) => "other",
            (false, _) => "data",
        };
        format!(
            "<asymq.Packet {} of flow {}: {kind}, {} bytes>",
            self.number, self.flow, self.length
        )
    }
}

/// Link and buffer of a discipline.
#[pyclass(frozen, module = "asymq", get_all)]
pub(crate) struct Place {
    /// Capacity of the link in bit/s.
    link_bit_per_s: u64,
    /// Capacity of the reverse direction in bit/s.
    reverse_bit_per_s: u64,
    /// Maximum backlog in packets; `None` if the buffer is in bytes.
    limit_packets: Option<u32>,
    /// Maximum backlog in bytes; `None` if the buffer is in packets.
    limit_bytes: Option<u64>,
}

/// A drop or a mark, requested by a method of the discipline.
enum Act {
    Drop(u64, Reason),
    Mark(u64),
}

/// Receives drops and marks.
#[pyclass(frozen, module = "asymq")]
pub(crate) struct Sink {
    acts: Mutex<Vec<Act>>,
}

#[pymethods]
impl Sink {
    /// Drops a packet. Reasons: "over-limit" (full buffer), "aqm" (congestion signal), "ack-filtered" (pure ACK that a
    /// later one replaces), or "opaque-filtered" (the same for a packet that is not TCP).
    #[pyo3(signature = (packet, reason="over-limit"))]
    fn drop(&self, packet: &Packet, reason: &str) -> PyResult<()> {
        let known = Reason::ALL.iter().find(|known| known.name() == reason);
        let known = known.ok_or_else(|| {
            let names: Vec<&str> = Reason::ALL.iter().map(|reason| reason.name()).collect();
            broken(format!(
                "reason {reason:?}: unknown; use {}",
                names.join(", ")
            ))
        })?;
        let may_be_filtered = match known {
            Reason::AckFiltered => packet.is_pure_ack,
            Reason::OpaqueFiltered => !packet.is_tcp,
            _ => true,
        };
        if !may_be_filtered {
            return Err(broken(format!(
                "{}: filtered, but not an ACK; use \"aqm\" or \"over-limit\"",
                packet.__repr__()
            )));
        }
        self.put(Act::Drop(packet.number, *known));
        Ok(())
    }

    /// Sets the congestion mark (CE) if the packet is ECN-capable. Returns true if it is marked.
    fn mark(&self, packet: &Packet) -> bool {
        if packet.is_ecn_capable {
            self.put(Act::Mark(packet.number));
        }
        packet.is_ecn_capable
    }
}

impl Sink {
    fn put(&self, act: Act) {
        let mut acts = self.acts.lock().unwrap_or_else(PoisonError::into_inner);
        acts.push(act);
    }

    fn take(&self) -> Vec<Act> {
        let mut acts = self.acts.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut acts)
    }
}

/// Creates the error for an invalid answer or call of a class.
pub(crate) fn broken(message: String) -> PyErr {
    PyRuntimeError::new_err(message)
}

/// A Python object as a discipline.
pub(crate) struct PyQdisc<P> {
    object: Py<PyAny>,
    observes: bool,
    sink: Py<Sink>,
    /// Queued packets, by number.
    held: HashMap<u64, P>,
    next: u64,
    backlog: Backlog,
}

impl<P: CorePacket> PyQdisc<P> {
    /// Creates an object of the class for the place in `config`.
    pub(crate) fn new(
        class: Py<PyAny>,
        entry: &'static Entry,
        config: &Config,
    ) -> Result<Self, BuildError> {
        let (limit_packets, limit_bytes) = match config.limit {
            Limit::Packets(packets) => (Some(packets), None),
            Limit::Bytes(bytes) => (None, Some(bytes)),
        };
        let place = Place {
            link_bit_per_s: config.link.bits_per_sec(),
            reverse_bit_per_s: config.needed_reverse()?.bits_per_sec(),
            limit_packets,
            limit_bytes,
        };
        let made = Python::attach(|py| -> PyResult<_> {
            let parameters = PyDict::new(py);
            for parameter in entry.parameters {
                let key = parameter.name.replace('-', "_");
                match config.params.get(parameter.name) {
                    Some(Value::Flag(flag)) => parameters.set_item(key, flag)?,
                    Some(Value::Time(time)) => parameters.set_item(key, time.as_secs_f64())?,
                    Some(Value::Rate(rate)) => parameters.set_item(key, rate.bits_per_sec())?,
                    Some(Value::Number(number)) => parameters.set_item(key, number)?,
                    _ => return Err(broken(format!("{}: missing", parameter.name))),
                }
            }
            let object = class.bind(py).call((place,), Some(&parameters))?;
            let observes = object.hasattr("observe")?;
            let sink = Sink {
                acts: Mutex::new(Vec::new()),
            };
            Ok((object.unbind(), observes, Py::new(py, sink)?))
        });
        // An error in the constructor ends the run.
        let (object, observes, sink) = made.unwrap_or_else(|error| raise(error));
        Ok(Self {
            object,
            observes,
            sink,
            held: HashMap::new(),
            next: 0,
            backlog: Backlog::default(),
        })
    }

    /// Calls the object. An exception ends the run.
    fn ask<T>(&self, question: impl FnOnce(&Bound<'_, PyAny>) -> PyResult<T>) -> T {
        let answer = Python::attach(|py| question(self.object.bind(py)));
        answer.unwrap_or_else(|error| raise(error))
    }

    /// Executes the drops and marks of the last call.
    fn act(&mut self, now: Instant, sink: &mut dyn asymq_core::Sink<P>) {
        for act in self.sink.get().take() {
            match act {
                Act::Drop(number, reason) => {
                    let packet = self.release(number, "dropped");
                    sink.dropped(now, packet, reason);
                }
                Act::Mark(number) => match self.held.get_mut(&number) {
                    Some(packet) => {
                        if packet.header().ecn != Ecn::Ce && packet.mark_ce() {
                            sink.marked(now, packet.header());
                        }
                    }
                    None => raise(broken(format!(
                        "packet {number} is marked, but is not in the queue"
                    ))),
                },
            }
        }
    }

    /// Removes and returns the queued packet with this number.
    fn release(&mut self, number: u64, what: &str) -> P {
        let packet = self.held.remove(&number);
        let packet = packet.unwrap_or_else(|| {
            raise(broken(format!(
                "packet {number} is {what}, but is not in the queue"
            )))
        });
        self.backlog.leave(packet.header().len);
        packet
    }

    fn name(&self) -> String {
        Python::attach(|py| {
            let name = self.object.bind(py).get_type().name();
            name.map_or_else(|_| "discipline".into(), |name| name.to_string())
        })
    }
}

/// Ends the run with an error; [`interruptible`](crate::simulate::interruptible) raises it.
pub(crate) fn raise(error: PyErr) -> ! {
    resume_unwind(Box::new(error))
}

impl<P: CorePacket + Send + 'static> Qdisc<P> for PyQdisc<P> {
    fn enqueue(&mut self, now: Instant, packet: P, sink: &mut dyn asymq_core::Sink<P>) {
        let number = self.next;
        self.next += 1;
        let shown = Packet::of(number, packet.header());
        self.backlog.join(packet.header().len);
        self.held.insert(number, packet);
        self.ask(|object| {
            let arguments = (now.as_nanos(), shown, self.sink.clone_ref(object.py()));
            object.call_method1("enqueue", arguments).map(drop)
        });
        self.act(now, sink);
    }

    fn dequeue(&mut self, now: Instant, sink: &mut dyn asymq_core::Sink<P>) -> Dequeue<P> {
        enum Answer {
            Packet(u64),
            NotBefore(u64),
            Nothing,
        }
        let answer = self.ask(|object| {
            let arguments = (now.as_nanos(), self.sink.clone_ref(object.py()));
            let answer = object.call_method1("dequeue", arguments)?;
            if answer.is_none() {
                Ok(Answer::Nothing)
            } else if let Ok(packet) = answer.cast::<Packet>() {
                Ok(Answer::Packet(packet.get().number))
            } else if answer.is_instance_of::<PyInt>() {
                Ok(Answer::NotBefore(answer.extract()?))
            } else {
                Err(broken(format!(
                    "{}.dequeue returned {}; return a packet, the time in ns of the next departure, or None",
                    self.name(),
                    answer.repr()?
                )))
            }
        });
        self.act(now, sink);
        let waiting = self.backlog.packets;
        match answer {
            Answer::Packet(number) => Dequeue::Packet(self.release(number, "sent")),
            Answer::NotBefore(at) if at > now.as_nanos() && waiting > 0 => {
                Dequeue::NotBefore(Instant::from_nanos(at))
            }
            Answer::NotBefore(at) => raise(broken(format!(
                "{}.dequeue returned the time {at} at time {}, with {waiting} packets queued; the time must be \
                 in the future, and a packet must be queued",
                self.name(),
                now.as_nanos()
            ))),
            Answer::Nothing if waiting > 0 => raise(broken(format!(
                "{}.dequeue returned None, but {waiting} packets are queued and would never leave",
                self.name()
            ))),
            Answer::Nothing => Dequeue::Empty,
        }
    }

    fn observe(&mut self, now: Instant, reverse: &Header) {
        if !self.observes {
            return;
        }
        let shown = Packet::of(0, reverse);
        self.ask(|object| {
            let seen = object.call_method1("observe", (now.as_nanos(), shown));
            seen.map(drop)
        });
    }

    fn observes_reverse(&self) -> bool {
        self.observes
    }

    fn drain(&mut self) -> Option<P> {
        let number = self.ask(|object| {
            let packet = object.call_method0("drain")?;
            let packet = packet.extract::<Option<Py<Packet>>>()?;
            Ok(packet.map(|packet| packet.get().number))
        });
        let waiting = self.backlog.packets;
        if number.is_none() && waiting > 0 {
            raise(broken(format!(
                "{}.drain returned None, but {waiting} packets are queued",
                self.name()
            )));
        }
        number.map(|number| self.release(number, "drained"))
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn probe(&self, show: &mut Probe<'_>) {
        let shown = self.ask(|object| {
            if !object.hasattr("probe")? {
                return Ok(BTreeMap::new());
            }
            object
                .call_method0("probe")?
                .extract::<BTreeMap<String, f64>>()
        });
        for (name, value) in shown {
            show(interned(&name), Reading::Real(value));
        }
    }
}

/// Returns a copy of the name that is never freed.
fn interned(name: &str) -> &'static str {
    static NAMES: Mutex<Vec<&'static str>> = Mutex::new(Vec::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    match names.iter().find(|known| **known == name) {
        Some(known) => known,
        None => {
            names.push(leak(name));
            names[names.len() - 1]
        }
    }
}

/// Returns a name that lives until the process ends.
pub(crate) fn leak(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}
