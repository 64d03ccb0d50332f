//! The planner of variable ranges, seen from outside.

#[path = "lookup/oracle.rs"]
mod oracle;

#[path = "layout/brute.rs"]
mod brute;
#[path = "layout/check.rs"]
mod check;
#[path = "layout/exact.rs"]
mod exact;
#[path = "layout/naive.rs"]
mod naive;
#[path = "layout/small.rs"]
mod small;
