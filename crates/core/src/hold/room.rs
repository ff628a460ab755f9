//! A place for one value.

/// A place for a value, with a separate tag. An [`Option`] would store the tag in the value's spare bits, so each move
/// would decode and encode the tag. The tag is a whole word: with a byte, a move copies the padding, which stalls.
#[derive(Clone, Debug)]
#[repr(u64)]
pub(super) enum Room<T> {
    Empty,
    Full(T),
}

impl<T> Room<T> {
    pub(super) const fn is_empty(&self) -> bool {
        matches!(self, Self::Empty)
    }

    pub(super) const fn get(&self) -> Option<&T> {
        match self {
            Self::Full(value) => Some(value),
            Self::Empty => None,
        }
    }
}
