//! Questions about a register file, each against an evaluator that does the obvious thing, and
//! against the answers stated with real machines.

mod compare;
mod diagnose;
mod layout;
mod lookup;
mod oracle;
mod pat_slots;
mod reserve;
