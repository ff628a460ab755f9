//! Tests that disciplines and congestion controls written in Python obey the laws of asymq's own (crate `asymq-laws`).

use crate::catalog::WithPython;
use crate::congestion::tried;
use crate::errors::bad_input;
use crate::simulate::interruptible;
use asymq_core::catalog::{Params, Place, resolve};
use asymq_laws::{Step, obey, strategy};
use asymq_sim::congestion::laws;
use proptest::test_runner::{
    Config as Cases, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner,
};
use pyo3::exceptions::PyAssertionError;
use pyo3::prelude::*;
use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Buffers for the tests: 20 packets, one packet, and byte limits above and below a full packet.
const BUFFERS: [&str; 4] = ["20p", "1p", "4000b", "1000b"];

/// Executes random steps on a registered discipline. Raises the first violation, with the fewest steps that cause it.
#[pyfunction]
pub(crate) fn check_laws(py: Python<'_>, name: &str, cases: u32) -> PyResult<()> {
    for buffer in BUFFERS {
        let rate = |text: &str| text.parse().expect("a rate");
        let place = Place {
            link: rate("1mbit"),
            reverse: Some(rate("10mbit")),
            limit: buffer.parse().expect("a limit"),
        };
        let none = Params::new();
        let config = resolve(&WithPython, name, &none, &none, place);
        let config = config.map_err(|error| bad_input(&error))?;
        let broken = interruptible(py, Some(1), |stop| {
            let settings = Cases {
                cases,
                failure_persistence: None,
                max_shrink_iters: 1000,
                ..Cases::default()
            };
            // Uses the same steps in each call. A repeated call therefore shows if a change fixed the fault.
            let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
            let mut runner = TestRunner::new_with_rng(settings, random);
            let hook = std::panic::take_hook();
            // Silences panics, because a violation is a result here.
            std::panic::set_hook(Box::new(|_| {}));
            let tried = runner.run(&strategy::steps(), |steps| {
                stop.check();
                let tried = catch_unwind(AssertUnwindSafe(|| obey(&WithPython, &config, &steps)));
                tried.map_err(|payload| TestCaseError::fail(said(&*payload)))
            });
            std::panic::set_hook(hook);
            match tried {
                Ok(()) => None,
                Err(TestError::Fail(reason, steps)) => Some(story(reason.message(), &steps)),
                Err(TestError::Abort(reason)) => Some(reason.message().to_owned()),
            }
        })?;
        if let Some(story) = broken {
            return Err(PyAssertionError::new_err(format!(
                "{name} with a buffer of {buffer}: {story}"
            )));
        }
    }
    Ok(())
}

/// Executes random events on a congestion control. Raises the first violation, with the fewest events that cause it.
#[pyfunction]
pub(crate) fn check_congestion(
    py: Python<'_>,
    name: &str,
    events: Vec<String>,
    paces: bool,
    class: Py<PyAny>,
    cases: u32,
) -> PyResult<()> {
    let (make, about) = tried(class, events, paces);
    let broken = interruptible(py, Some(1), |stop| {
        let cause = Cell::new(None);
        let checked = laws::check(cases, |steps| {
            stop.check();
            // An exception in a method is a violation.
            let obeyed = catch_unwind(AssertUnwindSafe(|| laws::obey(&make, about, steps)));
            obeyed
                .unwrap_or_else(|payload| Err(said_by(payload, &cause)))
                .err()
        });
        checked
            .err()
            .map(|broken| (broken.to_string(), cause.take()))
    })?;
    match broken {
        None => Ok(()),
        Some((story, cause)) => {
            let error = PyAssertionError::new_err(format!("{name}: {story}"));
            error.set_cause(py, cause);
            Err(error)
        }
    }
}

/// Returns the stored error of a method, or the text of a panic.
fn said_by(payload: Box<dyn Any + Send>, cause: &Cell<Option<PyErr>>) -> String {
    let text = said(&*payload);
    cause.set(payload.downcast().ok().map(|error| *error));
    text
}

fn story(reason: &str, steps: &[Step]) -> String {
    let mut story = format!("{reason}\nafter these steps:");
    for step in steps {
        story += &match step {
            Step::Enqueue(header) => format!(
                "\n  enqueue {} of flow {}, {} bytes",
                header.traffic_class().name(),
                header.flow.0,
                header.len
            ),
            Step::Observe(header) => format!("\n  observe {}", header.traffic_class().name()),
            Step::Dequeue => "\n  dequeue".to_owned(),
            Step::Wait(span) => format!("\n  wait {span}"),
            Step::DrainAll => "\n  drain until the queue is empty".to_owned(),
        };
    }
    story
}

/// Returns the text of a panic.
fn said(payload: &(dyn Any + Send)) -> String {
    if let Some(error) = payload.downcast_ref::<PyErr>() {
        return error.to_string();
    }
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message").to_owned()
}
