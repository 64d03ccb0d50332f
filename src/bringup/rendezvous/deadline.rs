//! How long a CPU waits.

use crate::atomic::Word;
use crate::cpu::CpuOps;

/// A bound of a wait, as a point of this CPU's time-stamp counter.
///
/// Whether it has passed is asked before the last look, never after: a CPU that was itself kept away
/// meanwhile, by its hypervisor or by SMM, must not take that for the silence of another.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline(u64);

impl Deadline {
    /// Nothing is given up.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    pub(crate) fn after(cpu: &mut impl CpuOps, ticks: u64) -> Self {
        Self(cpu.rdtsc().saturating_add(ticks))
    }

    pub(crate) fn passed(self, cpu: &mut impl CpuOps) -> bool {
        cpu.rdtsc() >= self.0
    }

    /// Pauses on `word` while it is `seen`, for a wait that watches this word alone.
    pub(crate) fn pause(self, cpu: &mut impl CpuOps, word: &Word, seen: u32) {
        cpu.pause_while(word, seen, self.0);
    }

    /// Pauses a moment: for a wait that must look at other words as well.
    pub(crate) fn pause_briefly(self, cpu: &mut impl CpuOps, word: &Word, seen: u32) {
        /// Ticks: some tens of microseconds.
        const MOMENT: u64 = 1 << 16;
        let until = cpu.rdtsc().saturating_add(MOMENT).min(self.0);
        cpu.pause_while(word, seen, until);
    }
}
