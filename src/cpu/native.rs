//! The native CPU: the only inline assembly of the crate.
