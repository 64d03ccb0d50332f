//! Drawn lives, drawn firmware, drawn faults.

mod cpu_numbers;
mod faults;
mod firmware;
