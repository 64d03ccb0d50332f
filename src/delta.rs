//! From what a CPU has to what it should have: ordered register writes and changes by group.
