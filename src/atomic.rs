//! The shared words CPUs signal through.
//!
//! One place swaps the plain atomics for a model checker's, and, with the `sim` feature, tells a
//! simulated machine, once there is one, that the running CPU touches shared memory, so that it can
//! object when a caches-off window does so.

#[cfg(not(loom))]
use core::sync::atomic as imp;
#[cfg(loom)]
use loom::sync::atomic as imp;

pub use core::sync::atomic::Ordering;

/// How a shared word is about to be accessed: what a simulated machine is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(feature = "sim"), allow(dead_code))]
pub(crate) enum Touch {
    /// A plain load.
    Load,
    /// A plain store.
    Store,
    /// A locked read-modify-write.
    Locked,
}

/// Who is told of every access, before it happens.
#[cfg(feature = "sim")]
static WATCHER: std::sync::OnceLock<fn(Touch, *const u8)> = std::sync::OnceLock::new();

/// Has `watcher` told of every access from now on. The first one stays.
#[cfg(feature = "sim")]
pub(crate) fn watch(watcher: fn(Touch, *const u8)) {
    let _ = WATCHER.set(watcher);
}

#[cfg(feature = "sim")]
fn touched(how: Touch, word: *const u8) {
    if let Some(watcher) = WATCHER.get() {
        watcher(how, word);
    }
}
#[cfg(not(feature = "sim"))]
#[inline(always)]
fn touched(_how: Touch, _word: *const u8) {}

macro_rules! word {
    ($(#[$doc:meta])* $name:ident, $atomic:ident, $int:ty) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[repr(transparent)]
        pub struct $name(imp::$atomic);

        impl $name {
            /// A word holding `value`.
            #[cfg(not(loom))]
            #[must_use]
            pub const fn new(value: $int) -> Self {
                Self(imp::$atomic::new(value))
            }

            /// A word holding `value`.
            #[cfg(loom)]
            #[must_use]
            pub fn new(value: $int) -> Self {
                Self(imp::$atomic::new(value))
            }

            /// Reads the word.
            #[inline]
            pub fn load(&self, order: Ordering) -> $int {
                touched(Touch::Load, self.address());
                self.0.load(order)
            }

            /// Reads a word that no other CPU writes now: the value this CPU left in it.
            #[cfg(not(loom))]
            #[inline]
            pub fn own(&self) -> $int {
                self.load(Ordering::Relaxed)
            }

            /// Reads a word that no other CPU writes now; the model checker objects if one does.
            ///
            /// Not an event to the checker, which is what it is for: after a thread's own load of
            /// a word, loom no longer tries that thread's next store before earlier loads of
            /// others.
            #[cfg(loom)]
            pub fn own(&self) -> $int {
                // SAFETY: loom panics if a store is not ordered before this load.
                unsafe { self.0.unsync_load() }
            }

            /// Writes the word.
            #[inline]
            pub fn store(&self, value: $int, order: Ordering) {
                touched(Touch::Store, self.address());
                self.0.store(value, order);
            }

            /// Replaces `current` by `new`, or returns what was there.
            ///
            /// # Errors
            /// The word's value, when it was not `current`.
            #[inline]
            pub fn compare_exchange(&self, current: $int, new: $int) -> Result<$int, $int> {
                touched(Touch::Locked, self.address());
                self.0
                    .compare_exchange(current, new, Ordering::AcqRel, Ordering::Acquire)
            }

            /// The word's address, for a cache-line flush.
            #[must_use]
            pub fn address(&self) -> *const u8 {
                core::ptr::from_ref(self).cast()
            }
        }
    };
}

word!(
    /// A 32-bit shared word: what [`CpuOps::pause_while`](crate::cpu::CpuOps::pause_while) waits on.
    Word, AtomicU32, u32
);
#[cfg(feature = "sim")]
impl Word {
    /// Reads the word without telling the simulated machine: for the machine itself.
    pub(crate) fn peek(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }
}

word!(
    /// A 64-bit shared word.
    WideWord, AtomicU64, u64
);
