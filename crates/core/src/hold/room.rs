//! One place for one value.

/// A place for a value, with a tag of its own: an [`Option`] hides its tag in the value's spare
/// bits, and then every move takes the value apart and puts it together again.
#[derive(Clone, Debug)]
#[repr(u8)]
pub(super) enum Room<T> {
    Empty,
    Full(T),
}

impl<T> Room<T> {
    #[inline]
    pub(super) const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    #[inline]
    pub(super) const fn get(&self) -> Option<&T> {
        match self {
            Self::Full(value) => Some(value),
            Self::Empty => None,
        }
    }
}
