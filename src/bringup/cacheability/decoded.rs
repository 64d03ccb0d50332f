//! One CPU's MTRRs, asked in place: no copy, because the caller may run uncached on a small stack.

use crate::lookup::{FORCED_START, fixed_bits, forced_end};
use crate::memtype::MemType;
use crate::overlap::{MtrrType, TypeSet};
use crate::ranges::{FixedSlot, PhysBits};
use crate::regs::{FIXED_COUNT, VariableMtrr};
use crate::snapshot::Snapshot;

/// RdMem and WrMem in a field of a fixed range.
const DRAM_BITS: u8 = 0x18;

/// Where the types of one map come from.
pub(super) struct Decoded<'a> {
    /// The fixed ranges, where they are in force.
    pub(super) fixed: Option<&'a [u64; FIXED_COUNT]>,
    /// Bits of a field that are its type.
    pub(super) fixed_bits: u8,
    /// None of them while E is clear.
    ranges: &'a [VariableMtrr],
    /// The type where none of them matches.
    default: MtrrType,
    /// First byte above the memory that is WB by default whatever `default` says; at most 4 GiB
    /// where there is none.
    forced_end: u64,
    pub(super) bits: PhysBits,
}

impl<'a> Decoded<'a> {
    /// The map of `registers` on a CPU whose SYSCFG and TOP_MEM2 are those of `routing`.
    pub(super) fn new(registers: &'a Snapshot, routing: &Snapshot) -> Self {
        let there = registers.cap.is_some();
        let enabled = there && registers.def_type.enabled();
        let (ranges, forced_end) = if enabled {
            (registers.variable_ranges(), forced_end(routing))
        } else {
            (&[] as &[_], 0)
        };
        let default = if enabled {
            MtrrType::from_decoded(registers.def_type.memtype())
        } else if there {
            MemType::Uncachable.into()
        } else {
            MemType::WriteBack.into()
        };
        Self {
            fixed: registers.fixed_in_force().then_some(&registers.fixed),
            fixed_bits: fixed_bits(registers),
            ranges,
            default,
            forced_end,
            bits: routing.phys_bits,
        }
    }

    /// Whether everything is UC because E is clear, or by looks.
    pub(super) fn is_uncachable(&self) -> bool {
        self.fixed.is_none()
            && self.forced_end <= FORCED_START
            && self.default == MemType::Uncachable.into()
            && self.ranges().next().is_none()
    }

    /// The variable ranges in use.
    pub(super) fn ranges(&self) -> impl Iterator<Item = VariableMtrr> + use<'a> {
        self.ranges.iter().copied().filter(|range| range.valid())
    }

    /// First byte of the lowest and first byte after the highest address where ranges match that
    /// `other` does not have. The end of the space and 0 where there are none.
    pub(super) fn hull_without(&self, other: &Self) -> (u64, u64) {
        let end = self.bits.end();
        let own = self.ranges().filter(|range| !other.has(*range));
        own.fold((end, 0), |(low, high), range| {
            let (base, size) = range.block(self.bits).unwrap_or((0, end));
            (low.min(base), high.max(base + size))
        })
    }

    /// Whether this map has a range in use that says the same.
    fn has(&self, range: VariableMtrr) -> bool {
        let meaning = |range: VariableMtrr| {
            let mask = range.mask & self.bits.page_mask();
            (mask, range.base & mask, range.memtype())
        };
        let wanted = meaning(range);
        self.ranges().any(|own| meaning(own) == wanted)
    }

    /// Whether both maps are the same where no range matches, and in whether fixed ranges decide.
    pub(super) fn same_default(&self, other: &Self) -> bool {
        let fixed = self.fixed.is_some() == other.fixed.is_some();
        fixed && (self.default, self.forced_end) == (other.default, other.forced_end)
    }

    /// Whether this fixed-range register says the same in both, and decides in both.
    pub(super) fn same_fixed(&self, other: &Self, n: usize) -> bool {
        let word = |map: &Self| map.fixed?.get(n).copied();
        let found = word(self);
        found.is_some() && found == word(other) && self.fixed_bits == other.fixed_bits
    }

    /// The type of an address of the physical space.
    pub(super) fn at(&self, addr: u64) -> MtrrType {
        if let Some(field) = self.field(addr) {
            return MtrrType::from_decoded(MemType::from_field(field & self.fixed_bits));
        }
        let matching = self.ranges().filter(|range| range.matches(addr, self.bits));
        let types = matching.fold(TypeSet::EMPTY, |types, range| {
            types.with(TypeSet::of_decoded(range.memtype()))
        });
        let forced = addr >= FORCED_START && addr < self.forced_end;
        types.resolve().unwrap_or(if forced {
            MemType::WriteBack.into()
        } else {
            self.default
        })
    }

    /// An address above `addr` up to which its type holds.
    pub(super) fn next_change(&self, addr: u64) -> u64 {
        if self.fixed.is_some()
            && let Some(slot) = FixedSlot::of(addr)
        {
            return slot.end;
        }
        let ends = [FORCED_START, self.forced_end];
        let end = ends.into_iter().filter(|end| *end > addr).min();
        let changes = self
            .ranges()
            .map(|range| range.next_change(addr, self.bits));
        changes.fold(end.unwrap_or(u64::MAX), u64::min)
    }

    /// RdMem and WrMem of an address, where a fixed range shows them.
    pub(super) fn dram_bits_at(&self, addr: u64) -> Option<u8> {
        let shown = self.fixed_bits & DRAM_BITS == 0;
        self.field(addr)
            .filter(|_| shown)
            .map(|field| field & DRAM_BITS)
    }

    /// The field of the fixed range that decides.
    fn field(&self, addr: u64) -> Option<u8> {
        let slot = FixedSlot::of(addr)?;
        let word = self.fixed?.get(slot.register)?;
        Some((word >> (u32::from(slot.byte) * 8)) as u8)
    }
}
