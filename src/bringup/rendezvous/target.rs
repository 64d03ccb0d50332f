//! The state every CPU is to have: words that everybody reads, and an epoch.
//!
//! They are replaced by the boot CPU while nobody reads them for itself: in a rendezvous that all CPUs
//! which may run have come to, or on the way to sleep, when no CPU is starting. Reading them at any
//! other moment is harmless too: who sees a word of another epoch sees that the epoch moved.

use super::slot::const_fn_unless_loom;
use crate::atomic::{Ordering, WideWord, Word};

/// `N` words and their epoch.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Target<const N: usize> {
    /// 0: there is no target, or it is being replaced. Written by the boot CPU only.
    epoch: Word,
    words: [WideWord; N],
}

impl<const N: usize> Target<N> {
    const_fn_unless_loom! {
        fn new() -> Self {
            Self {
                epoch: Word::new(0),
                #[cfg(not(loom))]
                words: [const { WideWord::new(0) }; N],
                #[cfg(loom)]
                words: core::array::from_fn(|_| WideWord::new(0)),
            }
        }
    }

    pub(crate) fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The words one after the other, to take as many as are wanted. They are of the epoch that was
    /// read before, if it is that still when they have been taken.
    pub(crate) fn words(&self) -> impl Iterator<Item = u64> {
        // Acquire: who sees a word of a newer target sees the epoch it wrote before.
        self.words.iter().map(|word| word.load(Ordering::Acquire))
    }

    /// Replaces the target and moves the epoch on: the new one. By the boot CPU.
    pub(crate) fn replace(&self, words: &[u64; N]) -> u32 {
        let epoch = self.epoch.own().wrapping_add(1).max(1);
        self.epoch.store(0, Ordering::Release);
        for (word, value) in self.words.iter().zip(words) {
            // Release: who sees it sees that the epoch moved.
            word.store(*value, Ordering::Release);
        }
        self.epoch.store(epoch, Ordering::Release);
        epoch
    }
}
