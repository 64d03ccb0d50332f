//! The answers: registers and outcomes.

use core::fmt;

use super::error::LayoutError;
use super::loss::Lost;
use super::states::{TYPES, of_rank, rank};
use crate::memtype::MemType;
use crate::ranges::PhysBits;
use crate::regs::{MAX_VARIABLE, MtrrDefType, VariableMtrr};
use crate::snapshot::Snapshot;

/// The fewest registers for each default type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fewest([u32; TYPES]);

impl Fewest {
    pub(super) const fn new(by_rank: [u32; TYPES]) -> Self {
        Self(by_rank)
    }

    /// The fewest registers with this default type.
    #[must_use]
    pub fn with_default(&self, memtype: MemType) -> usize {
        self.0
            .get(usize::from(rank(memtype)))
            .map_or(usize::MAX, |count| *count as usize)
    }
}

/// A default type and the variable ranges that go with it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    default: MemType,
    registers: [VariableMtrr; MAX_VARIABLE],
    len: usize,
    bits: PhysBits,
}

impl Plan {
    pub(super) const fn empty(bits: PhysBits) -> Self {
        Self {
            default: MemType::Uncachable,
            registers: [VariableMtrr { base: 0, mask: 0 }; MAX_VARIABLE],
            len: 0,
            bits,
        }
    }

    /// The variable ranges in use on a machine; `None` when its default type is reserved, or a
    /// mask has holes: such a map may fall into too many pieces to check.
    pub(super) fn of(snapshot: &Snapshot) -> Option<Self> {
        let mut plan = Self::empty(snapshot.phys_bits);
        plan.default = snapshot.def_type.memtype().ok()?;
        let used = snapshot.variable_ranges().iter().filter(|r| r.valid());
        for (place, range) in plan.registers.iter_mut().zip(used) {
            range.block(plan.bits)?;
            *place = *range;
            plan.len += 1;
        }
        plan.sort();
        Some(plan)
    }

    pub(super) const fn clear(&mut self, default: MemType) {
        self.default = default;
        self.len = 0;
    }

    /// Adds a block. One more than there are registers, or one that is none, is left out: the
    /// check of every plan then finds it missing.
    pub(super) fn push(&mut self, start: u64, size: u64, block: u8) {
        let range = VariableMtrr::from_block(start, size, of_rank(block), self.bits);
        if let (Some(range), Some(place)) = (range, self.registers.get_mut(self.len)) {
            *place = range;
            self.len += 1;
        }
    }

    /// Puts the registers in ascending order, a larger block before those inside it.
    pub(super) fn sort(&mut self) {
        let page = self.bits.page_mask();
        if let Some(used) = self.registers.get_mut(..self.len) {
            used.sort_unstable_by_key(|range| (range.base & page, range.mask));
        }
    }

    /// The default type.
    #[must_use]
    pub const fn default_type(&self) -> MemType {
        self.default
    }

    /// The variable ranges, in ascending order, a larger one before those inside it.
    #[must_use]
    pub fn registers(&self) -> &[VariableMtrr] {
        self.registers.get(..self.len).unwrap_or_default()
    }

    /// The address width the masks are made for.
    #[must_use]
    pub const fn phys_bits(&self) -> PhysBits {
        self.bits
    }

    /// The state to give to every CPU: `base` with this plan in place of its variable ranges and
    /// its default type, and the MTRRs on.
    ///
    /// What can stay is left as it is, for each register that differs costs a write: a range that
    /// `base` has already stays in its slot, and an unused slot keeps what it holds, V clear.
    ///
    /// # Errors
    /// [`LayoutError::DoesNotFit`], [`LayoutError::OtherWidth`]: the plan was made for another machine.
    pub fn target(&self, base: &Snapshot) -> Result<Snapshot, LayoutError> {
        if base.phys_bits != self.bits {
            return Err(LayoutError::OtherWidth {
                planned: self.bits,
                exist: base.phys_bits,
            });
        }
        let mut target = *base;
        let kept = MtrrDefType::from_raw(base.def_type.raw() & !0xff | MtrrDefType::E);
        target.def_type = MtrrDefType::from_raw(kept.raw() | u64::from(self.default.raw()));
        let count = base.variable_count();
        if self.len > count {
            return Err(LayoutError::DoesNotFit {
                planned: self.len,
                exist: count,
            });
        }
        let slots = target.variable.get_mut(..count).unwrap_or_default();
        let mut placed = [false; MAX_VARIABLE];
        for slot in slots.iter_mut().filter(|slot| slot.valid()) {
            let mut fresh = self.registers().iter().zip(&mut placed);
            match fresh.find(|(range, placed)| !**placed && *range == slot) {
                Some((_, placed)) => *placed = true,
                None => slot.mask &= !VariableMtrr::V,
            }
        }
        let mut free = slots.iter_mut().filter(|slot| !slot.valid());
        for (range, placed) in self.registers().iter().zip(&placed) {
            if !*placed && let Some(slot) = free.next() {
                *slot = *range;
            }
        }
        Ok(target)
    }
}

impl fmt::Debug for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plan")
            .field("default", &self.default)
            .field("registers", &self.registers())
            .field("bits", &self.bits)
            .finish()
    }
}

impl fmt::Display for Plan {
    /// Writes the default type, then a line per register: first byte, bytes, type.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "default {}", self.default.short())?;
        for range in self.registers() {
            if let (Some((start, size)), Ok(memtype)) = (range.block(self.bits), range.memtype()) {
                write!(f, "\n{start:#x}/{size:#x} {}", memtype.short())?;
            }
        }
        Ok(())
    }
}

/// What became of a question about a layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant)] // there is no heap to move a plan to
pub enum Solution {
    /// Every byte gets the type it is wanted to have.
    Exact(Plan),
    /// The registers do not reach; this loses least. [`Wanted::losses`](super::Wanted::losses) lists what.
    Relaxed {
        /// The registers.
        plan: Plan,
        /// The bytes that get another type than wanted.
        lost: Lost,
    },
    /// The registers do not reach.
    Impossible {
        /// Registers needed.
        need: usize,
        /// Registers that may be used.
        have: usize,
    },
}
