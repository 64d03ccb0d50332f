//! CPUs that share their registers, or may share them.

mod slow_window;
mod tlb_flush;
mod unknown_place;
