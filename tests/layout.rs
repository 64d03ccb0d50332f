//! The planner of variable ranges, seen from outside.

#[path = "lookup/oracle.rs"]
mod oracle;

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
#[path = "layout/naive.rs"]
mod naive;
#[path = "layout/random.rs"]
mod random;
#[path = "layout/small.rs"]
mod small;
