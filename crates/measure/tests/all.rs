//! Tests of the public interface. They are one program, because most tests wait and a program's tests run in parallel.

mod common;

mod attacks;
#[cfg(all(feature = "https", target_os = "linux"))]
mod attacks_https;
mod capacity;
mod hostile;
mod loopback;
#[cfg(feature = "https")]
mod responsiveness;
