//! The planner of variable ranges, seen from outside.

#[cfg(target_arch = "x86_64")]
mod bounds;
mod brute;
mod cases;
mod check;
mod edits;
mod exact;
mod fit;
mod maps;
mod naive;
mod random;
mod small;
#[cfg(target_arch = "x86_64")]
mod stack;
