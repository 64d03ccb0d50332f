//! CPUs that share their registers, or may share them.

mod moved_place;
mod slow_window;
mod tlb_flush;
mod unknown_place;
