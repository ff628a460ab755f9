//! Locks of values that are consistent between statements.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the value. A panic in another thread leaves it usable.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
