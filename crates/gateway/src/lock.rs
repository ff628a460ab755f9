//! Locks for values that stay consistent if a holder panics.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks the value. It stays usable if another thread panicked.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
