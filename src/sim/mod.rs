//! A simulated machine: cores, threads, MSR scopes, faults, an event log and a cost model.

/// Told by every access of the crate's shared words that the running CPU touched shared memory.
pub(crate) fn shared_touch() {}
