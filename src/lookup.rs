//! The effective MTRR type of an address, of a range, of the whole space.
