//! The planner of variable ranges, seen from outside.

#[path = "lookup/oracle.rs"]
#[allow(dead_code)] // the lookup tests use the rest
mod oracle;

#[cfg(target_arch = "x86_64")]
#[path = "layout/bounds.rs"]
mod bounds;
#[path = "layout/brute.rs"]
mod brute;
#[path = "layout/cases.rs"]
mod cases;
#[path = "layout/check.rs"]
mod check;
#[path = "layout/edits.rs"]
mod edits;
#[path = "layout/exact.rs"]
mod exact;
#[path = "layout/maps.rs"]
mod maps;
#[path = "layout/naive.rs"]
mod naive;
#[path = "layout/random.rs"]
mod random;
#[path = "layout/small.rs"]
mod small;
#[cfg(target_arch = "x86_64")]
#[path = "layout/stack.rs"]
mod stack;
