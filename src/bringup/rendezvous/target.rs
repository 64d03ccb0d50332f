//! The state every CPU is to have, and who has it: an all-atomic copy under a sequence count, and
//! one word that holds the epoch of that copy and how many CPUs, at most 65,535, are online with it.
//!
//! A CPU comes online by a compare-exchange on that word, made after it was programmed: if the
//! epoch moved since it copied the target, it fails and the CPU copies again. A sequence count
//! alone would lose a change made between the copy and the coming online.

use super::slot::{Deadline, const_fn_unless_loom, flush_lines};
use crate::atomic::{Ordering, WideWord, Word};
use crate::cpu::CpuOps;

/// The target moved, or a CPU came online, since the caller looked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moved;

/// The epoch, the number of CPUs online, and how often that number was written, as one word: a CPU
/// that came while another went does not go unnoticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Online(u64);

impl Online {
    pub(crate) const fn epoch(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(crate) const fn count(self) -> u32 {
        self.0 as u16 as u32
    }

    /// The same CPUs in another epoch.
    pub(super) const fn moved_to(self, epoch: u32) -> Self {
        Self((epoch as u64) << 32 | self.0 as u32 as u64)
    }

    /// The same epoch with another count.
    const fn counting(self, count: u32) -> Self {
        let written = ((self.0 >> 16) as u16).wrapping_add(1);
        let epoch = self.0 >> 32 << 32;
        Self(epoch | (written as u64) << 16 | count as u16 as u64)
    }
}

/// The words of a target, one after the other.
#[derive(Debug)]
pub(crate) struct Words<'a>(core::slice::Iter<'a, WideWord>);

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        // Acquire: if it sees a word of a newer target, it sees the serial before it.
        self.0.next().map(|word| word.load(Ordering::Acquire))
    }
}

/// `N` words and who holds them.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Target<const N: usize> {
    /// Pairs with itself: `join` on a CPU coming online, `replace` on the boot CPU.
    online: WideWord,
    /// Odd while the words are being written. Written by the boot CPU only.
    serial: Word,
    words: [WideWord; N],
}

impl<const N: usize> Target<N> {
    const_fn_unless_loom! {
        fn new() -> Self {
            Self {
                online: WideWord::new(0),
                serial: Word::new(0),
                #[cfg(not(loom))]
                words: [const { WideWord::new(0) }; N],
                #[cfg(loom)]
                words: core::array::from_fn(|_| WideWord::new(0)),
            }
        }
    }

    /// The epoch and count now. Epoch 0: there is no target yet.
    pub(crate) fn online(&self) -> Online {
        Online(self.online.load(Ordering::Acquire))
    }

    /// Gives the words of the target to `take`, which takes as many as it wants, and returns the epoch
    /// they belong to, or an earlier one: coming online with them then fails. Gives them again when
    /// they change meanwhile.
    ///
    /// `None` when the boot CPU does not finish writing it in `bound` ticks.
    pub(crate) fn read<C: CpuOps>(
        &self,
        cpu: &mut C,
        bound: u64,
        mut take: impl FnMut(&mut C, Words<'_>),
    ) -> Option<u32> {
        let mut deadline = None;
        let mut last = false;
        loop {
            let epoch = self.online().epoch();
            let before = self.serial.load(Ordering::Acquire);
            if before & 1 == 0 {
                take(cpu, Words(self.words.iter()));
                if self.serial.load(Ordering::Relaxed) == before {
                    return Some(epoch);
                }
            }
            if last {
                return None;
            }
            // Not before there is something to wait for.
            let deadline = *deadline.get_or_insert_with(|| Deadline::after(cpu, bound));
            last = deadline.passed(cpu);
            deadline.pause(cpu, &self.serial, before);
        }
    }

    /// Counts this CPU as online with the target of `epoch`.
    pub(crate) fn join(&self, epoch: u32) -> Result<(), Moved> {
        self.count(Some(epoch), |count| count.wrapping_add(1))
    }

    /// Counts a CPU off.
    pub(crate) fn part(&self) {
        // Without an epoch to hold on to it cannot fail.
        let _ = self.count(None, |count| count.saturating_sub(1));
    }

    fn count(&self, epoch: Option<u32>, change: impl Fn(u32) -> u32) -> Result<(), Moved> {
        let mut seen = self.online();
        // Each failed exchange means another CPU's succeeded: it ends after at most as many
        // rounds as CPUs come or go.
        loop {
            if epoch.is_some_and(|epoch| epoch != seen.epoch()) {
                return Err(Moved);
            }
            let next = seen.counting(change(seen.count()));
            match self.online.compare_exchange(seen.0, next.0) {
                Ok(_) => return Ok(()),
                Err(now) => seen = Online(now),
            }
        }
    }

    /// Replaces the target and moves the epoch on, unless a CPU came or went, or the epoch moved,
    /// since `seen`. By the boot CPU, alone.
    ///
    /// The words are marked as changing before the epoch moves: who sees the new epoch cannot
    /// copy the old words.
    pub(crate) fn replace(
        &self,
        cpu: &mut impl CpuOps,
        words: &[u64; N],
        seen: Online,
    ) -> Result<u32, Moved> {
        let serial = self.serial.own();
        self.serial.store(serial.wrapping_add(1), Ordering::Release);
        let epoch = seen.epoch().wrapping_add(1).max(1);
        let next = seen.moved_to(epoch);
        let moved = self.online.compare_exchange(seen.0, next.0).is_err();
        if !moved {
            for (word, value) in self.words.iter().zip(words) {
                // Release: who sees it sees the odd serial.
                word.store(*value, Ordering::Release);
            }
        }
        self.serial.store(serial.wrapping_add(2), Ordering::Release);
        self.flush(cpu);
        if moved { Err(Moved) } else { Ok(epoch) }
    }

    /// Sets the number of CPUs online. By the boot CPU, while nobody comes or goes: all others
    /// lost their state, or are in a meeting.
    pub(crate) fn recount(&self, online: u32) {
        let _ = self.count(None, |_| online);
    }

    /// Pushes every line to memory, for CPUs that do not read what a cache holds.
    pub(crate) fn flush(&self, cpu: &mut impl CpuOps) {
        flush_lines(cpu, self);
    }
}
