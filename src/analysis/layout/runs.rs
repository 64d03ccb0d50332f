//! The wanted map as classes over addresses: lists, gaps, fixed ranges and TOP_MEM2 in one.

use super::options::{FixedRanges, Unlisted};
use super::region::Region;
use super::states::Class;
use super::wanted::Wanted;
use crate::memtype::MemType;
use crate::ranges::FIXED_END;

const FOUR_GIB: u64 = 1 << 32;

/// A cursor over the wanted map; cheap when asked in ascending or descending order.
#[derive(Debug)]
pub(super) struct Runs<'a> {
    wanted: Wanted<'a>,
    /// Which bits of a class count.
    mask: u8,
    /// The first region that ends above the address asked for last.
    next: usize,
    /// The run found last: first byte, byte after it, class.
    last: (u64, u64, Class),
}

impl<'a> Runs<'a> {
    pub(super) const fn new(wanted: &Wanted<'a>, mask: u8) -> Self {
        Self {
            wanted: *wanted,
            mask,
            next: 0,
            last: (0, 0, Class::DONT_CARE),
        }
    }

    /// The class all of `start..end` has, if it is one.
    pub(super) fn uniform(&mut self, start: u64, end: u64) -> Option<Class> {
        let (run_start, run_end, _) = self.last;
        if start < run_start || start >= run_end {
            let (class, mut run_end) = self.segment(start);
            while run_end < self.wanted.bits.end() {
                let (next, next_end) = self.segment(run_end);
                if next != class {
                    break;
                }
                run_end = next_end;
            }
            self.last = (start, run_end, class);
        }
        let (_, run_end, class) = self.last;
        (end <= run_end).then_some(class)
    }

    /// The class at an address, and an address above it up to which it is the same.
    pub(super) fn segment(&mut self, addr: u64) -> (Class, u64) {
        let regions = self.wanted.regions;
        while regions.get(self.next).is_some_and(|r| r.end <= addr) {
            self.next += 1;
        }
        while let Some(before) = self.next.checked_sub(1)
            && regions.get(before).is_some_and(|r| r.end > addr)
        {
            self.next = before;
        }
        let (mut class, mut end) = match regions.get(self.next) {
            Some(region) if region.start <= addr => (Class::of(region), region.end),
            Some(region) => (self.unlisted(), region.start),
            None => (self.unlisted(), self.wanted.bits.end()),
        };
        if self.wanted.fixed == FixedRanges::On && addr < FIXED_END {
            (class, end) = (Class::DONT_CARE, FIXED_END);
        }
        if addr < FOUR_GIB {
            end = end.min(FOUR_GIB);
        } else if addr < self.wanted.forced_wb_end {
            end = end.min(self.wanted.forced_wb_end);
            class = class.forced_wb();
        }
        (class.masked(self.mask), end)
    }

    const fn unlisted(&self) -> Class {
        match self.wanted.unlisted {
            Unlisted::Uncachable => Class::of(&Region::mmio(0, 0, MemType::Uncachable)),
            Unlisted::DontCare => Class::DONT_CARE,
        }
    }
}
