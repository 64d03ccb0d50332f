//! A static that one CPU at a time uses, by the kernel's own order of events rather than by a lock.
//!
//! APs must not take locks here: before its sync a CPU may have its MTRRs off, where a locked instruction is a bus lock.

use core::cell::UnsafeCell;

/// A cell whose accesses the kernel orders itself; each use says how.
#[repr(transparent)]
pub struct Racy<T>(UnsafeCell<T>);

// SAFETY: reaching the value takes `unsafe` at each use, and each use names the order that keeps it exclusive.
unsafe impl<T> Sync for Racy<T> {}

impl<T> Racy<T> {
    pub const fn new(value: T) -> Self {
        Self(UnsafeCell::new(value))
    }

    pub const fn get(&self) -> *mut T {
        self.0.get()
    }
}
