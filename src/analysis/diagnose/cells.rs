//! Exact pieces of memory under any masks, without walking the addresses.
//!
//! A mask with holes makes a range of billions of separate blocks. But what it matches is one
//! pattern of bits that must be 0, must be 1, or do not matter (a [`Cube`]), and so is every
//! aligned block. Splitting cubes bit by bit, only where a range asks for the bit, decides
//! questions about whole maps exactly in a few steps.

use core::ops::Range;

use crate::memtype::MemType;
use crate::overlap::{MtrrType, TypeSet, Undefined};
use crate::ranges::PhysBits;
use crate::regs::{MAX_VARIABLE, VariableMtrr};

/// A set of addresses: the `free` bits are arbitrary, the others are as in `value`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cube {
    /// The lowest address; 0 in every free bit.
    pub(super) value: u64,
    free: u64,
}

impl Cube {
    /// Every address a register pair matches, V or not.
    pub(super) const fn of(range: VariableMtrr, bits: PhysBits) -> Self {
        let mask = range.mask & bits.page_mask();
        Self {
            value: range.base & mask,
            free: (bits.end() - 1) & !mask,
        }
    }

    /// The highest address.
    pub(super) const fn last(self) -> u64 {
        self.value | self.free
    }

    /// How many addresses.
    pub(super) const fn bytes(self) -> u64 {
        1 << self.free.count_ones()
    }

    /// The addresses in both.
    pub(super) const fn and(self, other: Self) -> Option<Self> {
        if (self.value ^ other.value) & !self.free & !other.free != 0 {
            return None;
        }
        Some(Self {
            value: self.value | other.value,
            free: self.free & other.free,
        })
    }

    /// Both halves, split at one of the free bits.
    const fn halves(self, bit: u64) -> (Self, Self) {
        let free = self.free & !bit;
        let low = Self {
            value: self.value,
            free,
        };
        let high = Self {
            value: self.value | bit,
            free,
        };
        (low, high)
    }
}

/// The aligned blocks a range of bytes consists of, ascending.
pub(super) fn blocks(range: Range<u64>) -> impl Iterator<Item = Cube> {
    let mut next = range.start;
    core::iter::from_fn(move || {
        let left = range.end.checked_sub(next).filter(|left| *left != 0)?;
        let aligned = 1u64.checked_shl(next.trailing_zeros()).unwrap_or(u64::MAX);
        let fits = 1u64 << (63 - left.leading_zeros());
        let size = aligned.min(fits);
        let block = Cube {
            value: next,
            free: size - 1,
        };
        next += size;
        Some(block)
    })
}

/// How many more steps a diagnosis may take before it says that it gave up.
#[derive(Debug)]
pub(super) struct Budget(u32);

impl Budget {
    /// Enough for any map of contiguous masks many times over, and less than a second.
    pub(super) const fn new() -> Self {
        Self(1 << 20)
    }

    /// Whether the steps ran out, so that some question is not decided.
    pub(super) const fn is_spent(&self) -> bool {
        self.0 == 0
    }

    fn step(&mut self) -> Option<()> {
        self.0 = self.0.checked_sub(1)?;
        Some(())
    }
}

/// A cube, and which ranges may still match a part of it.
#[derive(Clone, Copy)]
struct Frame {
    cube: Cube,
    /// Bit n is set when it is not decided whether pair n matches.
    open: u64,
    types: TypeSet,
}

/// Iterates over disjoint parts of a cube, in each of which the same set of types matches.
///
/// A range whose type is already there, or that meets UC or a mix without meaning, is not looked
/// at again: it cannot change what the set resolves to, with or without one more type. Ends early
/// when the budget is spent.
pub(super) struct Cells<'a> {
    ranges: &'a [VariableMtrr],
    bits: PhysBits,
    /// At most one frame for every address bit, and the one being split.
    stack: [Option<Frame>; 53],
    depth: usize,
    budget: &'a mut Budget,
}

impl<'a> Cells<'a> {
    /// Splits `cube` by the ranges in use, leaving out the pairs of which the bit is set;
    /// `types` are known to match all of it.
    pub(super) fn new(
        ranges: &'a [VariableMtrr],
        leave_out: u64,
        types: TypeSet,
        bits: PhysBits,
        cube: Cube,
        budget: &'a mut Budget,
    ) -> Self {
        let in_use = (0..MAX_VARIABLE)
            .zip(ranges)
            .filter(|(_, range)| range.valid())
            .fold(0u64, |open, (pair, _)| open | (1 << pair));
        let mut cells = Self {
            ranges,
            bits,
            stack: [None; 53],
            depth: 0,
            budget,
        };
        cells.push(Frame {
            cube,
            open: in_use & !leave_out,
            types,
        });
        cells
    }

    fn push(&mut self, frame: Frame) {
        if let Some(slot) = self.stack.get_mut(self.depth) {
            *slot = Some(frame);
            self.depth += 1;
        }
    }

    fn pop(&mut self) -> Option<Frame> {
        self.depth = self.depth.checked_sub(1)?;
        self.stack.get_mut(self.depth)?.take()
    }

    /// Decides every range that covers the cube or misses it, and returns a bit to split at: one
    /// that a range asks for which is nearest to being decided.
    fn decide(&self, frame: &mut Frame) -> Option<u64> {
        let mut nearest = 0u64;
        for (pair, range) in self.ranges.iter().enumerate() {
            if frame.open & (1 << pair) == 0 {
                continue;
            }
            let reach = Cube::of(*range, self.bits);
            let Some(part) = reach.and(frame.cube) else {
                frame.open &= !(1 << pair);
                continue;
            };
            let kind = TypeSet::of_decoded(range.memtype());
            if part == frame.cube {
                frame.types = frame.types.with(kind);
            }
            if part == frame.cube || cannot_matter(kind, frame.types) {
                frame.open &= !(1 << pair);
                continue;
            }
            let asked = frame.cube.free & !part.free;
            if nearest == 0 || asked.count_ones() < nearest.count_ones() {
                nearest = asked;
            }
        }
        if UC.is_within(frame.types) || frame.open == 0 {
            return None;
        }
        // Ranges looked at before a type was found may have it too: they cost a split, no error.
        (nearest != 0).then(|| 1 << (63 - nearest.leading_zeros()))
    }
}

const UC: TypeSet = TypeSet::of(MemType::Uncachable);

/// Every type but UC.
const OTHERS: TypeSet = TypeSet::of(MemType::WriteCombining)
    .with(TypeSet::of(MemType::WriteThrough))
    .with(TypeSet::of(MemType::WriteProtected))
    .with(TypeSet::of(MemType::WriteBack));

/// Whether one more type leaves a set as it is, whatever else comes: it is there already, or the
/// set is a mix without meaning, which only UC or a reserved type changes.
fn cannot_matter(kind: TypeSet, types: TypeSet) -> bool {
    let mixed = types.resolve() == Some(MtrrType::Undefined(Undefined::Mix));
    kind.is_within(types) || (mixed && kind.is_within(OTHERS))
}

impl Iterator for Cells<'_> {
    type Item = Cube;

    fn next(&mut self) -> Option<Cube> {
        let mut frame = self.pop()?;
        loop {
            self.budget.step()?;
            let Some(bit) = self.decide(&mut frame) else {
                return Some(frame.cube);
            };
            let (low, high) = frame.cube.halves(bit);
            self.push(Frame {
                cube: high,
                ..frame
            });
            frame.cube = low;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_cover_a_range_once() {
        for (start, end) in [
            (0, 1),
            (3, 17),
            (0x1000, 1 << 52),
            (5, 5),
            (0x9fc00, 0x10_0000),
        ] {
            let mut next = start;
            for block in blocks(start..end) {
                assert_eq!(block.value, next);
                assert_eq!(block.value % block.bytes(), 0);
                next = block.last() + 1;
            }
            assert_eq!(next, end);
        }
        let (start, end) = (9, 5);
        assert_eq!(blocks(start..end).count(), 0);
    }

    /// In a space of 16 pages every mask and base: the cells cover each address once, and one
    /// address of a cell stands for all of it.
    #[test]
    fn cells_are_a_partition_by_type() {
        let bits = PhysBits::MIN;
        let pages = |n: u64| n << 12;
        let types = [
            MemType::WriteBack,
            MemType::WriteCombining,
            MemType::Uncachable,
        ];
        let high = bits.page_mask() & !pages(0xf);
        let space = Cube {
            value: 0,
            free: pages(0x10) - 1,
        };
        let mut spent = 0;
        for seed in 0..4096u64 {
            let range = |shift: u64, memtype: MemType| VariableMtrr {
                base: pages(((seed * 7) >> shift) & 0xf) | u64::from(memtype.raw()),
                mask: high | pages((seed >> shift) & 0xf) | VariableMtrr::V,
            };
            let ranges = [range(0, types[0]), range(4, types[1]), range(8, types[2])];
            let types_at = |addr| {
                let matching = ranges.iter().filter(|one| one.matches(addr, bits));
                let set = matching.fold(TypeSet::EMPTY, |set, one| {
                    set.with(TypeSet::of_decoded(one.memtype()))
                });
                set.resolve()
            };
            let mut budget = Budget::new();
            let mut seen = [0; 16];
            for cell in Cells::new(&ranges, 0, TypeSet::EMPTY, bits, space, &mut budget) {
                for page in 0..16 {
                    let addr = pages(page);
                    if addr & !cell.free == cell.value {
                        seen[page as usize] += 1;
                        assert_eq!(
                            types_at(addr),
                            types_at(cell.value),
                            "{ranges:x?} {addr:#x}"
                        );
                    }
                }
            }
            assert_eq!(seen, [1; 16], "{ranges:x?}");
            spent = spent.max((1 << 20) - budget.0);
        }
        assert!(spent < 100);
    }

    /// When the steps run out, the iterator ends and the budget says so.
    #[test]
    fn a_spent_budget_shows() {
        let range = |bit: u64| VariableMtrr {
            base: bit | 6,
            mask: bit | VariableMtrr::V,
        };
        let ranges = [range(1 << 12), range(1 << 13)];
        let space = Cube {
            value: 0,
            free: PhysBits::MIN.end() - 1,
        };
        let count = |steps: u32| {
            let mut budget = Budget(steps);
            let none = TypeSet::EMPTY;
            let cells = Cells::new(&ranges, 0, none, PhysBits::MIN, space, &mut budget);
            (cells.count(), budget.is_spent())
        };
        assert_eq!(count(100), (3, false));
        assert_eq!(count(4), (2, true));
        assert_eq!(count(0), (0, true));
    }
}
