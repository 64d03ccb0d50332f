//! Regions: what somebody wants of a range of addresses, and lists of them.

use super::error::{Flaw, LayoutError};
use crate::memtype::MemType;
use crate::ranges::PhysBits;

const PAGE: u64 = 0x1000;

/// What is wanted of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Want {
    /// This memory type.
    Type(MemType),
    /// Whatever is cheapest: nobody will ever access it, or something else decides there.
    DontCare,
}

/// What lies behind the addresses of a region. It decides what may be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Memory: may lose its type to another that keeps it coherent.
    Ram,
    /// Device registers and apertures: may only become uncachable, never cacheable.
    Mmio,
}

/// How much a region matters when the registers do not reach.
///
/// Nothing of a lower priority is kept at the expense of a higher one, whatever the sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Priority {
    /// Given up first.
    Low = 0,
    /// What a region has unless said otherwise.
    #[default]
    Normal = 1,
    /// Given up last.
    High = 2,
}

/// A range of physical addresses, half-open, and what is wanted of it.
///
/// ```
/// use mtrr_pat::layout::{Priority, Region};
/// use mtrr_pat::memtype::MemType;
///
/// const FRAMEBUFFER: Region =
///     Region::mmio(0xd000_0000, 0xe000_0000, MemType::WriteCombining).priority(Priority::Low);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// First byte, a multiple of 4 KiB.
    pub start: u64,
    /// First byte after it, a multiple of 4 KiB.
    pub end: u64,
    /// The type it should have.
    pub want: Want,
    /// What lies there.
    pub kind: Kind,
    /// How much it matters.
    pub priority: Priority,
}

impl Region {
    /// Memory that should have a type, at [`Priority::Normal`].
    #[must_use]
    pub const fn ram(start: u64, end: u64, memtype: MemType) -> Self {
        Self::new(start, end, Want::Type(memtype), Kind::Ram)
    }

    /// A device's range that should have a type, at [`Priority::Normal`].
    #[must_use]
    pub const fn mmio(start: u64, end: u64, memtype: MemType) -> Self {
        Self::new(start, end, Want::Type(memtype), Kind::Mmio)
    }

    /// A range whose type does not matter.
    ///
    /// It may come out cacheable. Only for addresses that nothing is mapped at.
    #[must_use]
    pub const fn dont_care(start: u64, end: u64) -> Self {
        Self::new(start, end, Want::DontCare, Kind::Mmio)
    }

    /// The same region at another priority.
    #[must_use]
    pub const fn priority(mut self, priority: Priority) -> Self {
        self.priority = priority;
        self
    }

    const fn new(start: u64, end: u64, want: Want, kind: Kind) -> Self {
        Self {
            start,
            end,
            want,
            kind,
            priority: Priority::Normal,
        }
    }

    /// A region of a running machine's map, of which only the type is known.
    pub(super) const fn as_it_is(start: u64, end: u64, memtype: MemType) -> Self {
        match memtype {
            MemType::WriteBack => Self::ram(start, end, memtype),
            _ => Self::mmio(start, end, memtype),
        }
    }

    /// What is wrong with this region by itself.
    pub(super) const fn flaw(&self, bits: PhysBits) -> Option<Flaw> {
        if self.end <= self.start {
            Some(Flaw::Empty)
        } else if (self.start | self.end) & (PAGE - 1) != 0 {
            Some(Flaw::Unaligned)
        } else if self.end > bits.end() {
            Some(Flaw::OutOfSpace)
        } else {
            None
        }
    }

    /// Whether two regions differ in nothing but their place.
    fn same_want(&self, other: &Self) -> bool {
        self.want == other.want && self.kind == other.kind && self.priority == other.priority
    }
}

/// The first region of a slice that cannot be used: flawed, out of order or overlapping.
pub(super) fn check(regions: &[Region], bits: PhysBits) -> Result<(), LayoutError> {
    let mut before = None;
    for (index, region) in regions.iter().enumerate() {
        let flaw = region.flaw(bits).or(match before {
            Some((start, _)) if region.start < start => Some(Flaw::Unsorted),
            Some((_, end)) if region.start < end => Some(Flaw::Overlap),
            _ => None,
        });
        if let Some(flaw) = flaw {
            return Err(LayoutError::Region { index, flaw });
        }
        before = Some((region.start, region.end));
    }
    Ok(())
}

/// A map built by painting: each region replaces what was there before, in any order.
///
/// Holds at most `N` regions, sorted, without overlap, neighbours of one kind joined; what
/// [`Wanted`](super::Wanted) asks of its slice.
///
/// ```
/// use mtrr_pat::layout::{Region, RegionMap};
/// use mtrr_pat::memtype::MemType;
/// use mtrr_pat::ranges::PhysBits;
///
/// let mut map = RegionMap::<16>::new(PhysBits::MAX);
/// map.paint(Region::ram(0, 0x1_0000_0000, MemType::WriteBack))?;
/// map.paint(Region::mmio(0xf000_0000, 0x1_0000_0000, MemType::Uncachable))?;
/// assert_eq!(map.regions()[0].end, 0xf000_0000);
/// # Ok::<(), mtrr_pat::layout::LayoutError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct RegionMap<const N: usize> {
    regions: [Region; N],
    len: usize,
    bits: PhysBits,
}

impl<const N: usize> RegionMap<N> {
    /// A map with nothing in it.
    #[must_use]
    pub const fn new(bits: PhysBits) -> Self {
        Self {
            regions: [Region::dont_care(0, 0); N],
            len: 0,
            bits,
        }
    }

    /// The regions, ascending, without overlap.
    #[must_use]
    pub fn regions(&self) -> &[Region] {
        self.regions.get(..self.len).unwrap_or_default()
    }

    /// Gives a range what the region says, whatever was there before.
    ///
    /// # Errors
    /// [`LayoutError::Region`] for a region that is empty, not aligned to 4 KiB or above the
    /// address space; [`LayoutError::MapFull`] when the result has more than `N` regions. The map
    /// is then as it was.
    pub fn paint(&mut self, region: Region) -> Result<(), LayoutError> {
        if let Some(flaw) = region.flaw(self.bits) {
            return Err(LayoutError::Region { index: 0, flaw });
        }
        let mut next = Self::new(self.bits);
        let mut placed = false;
        for old in self.regions() {
            if old.start < region.start {
                next.push(Region {
                    end: old.end.min(region.start),
                    ..*old
                })?;
            }
            if !placed && old.end > region.start {
                next.push(region)?;
                placed = true;
            }
            if old.end > region.end {
                next.push(Region {
                    start: old.start.max(region.end),
                    ..*old
                })?;
            }
        }
        if !placed {
            next.push(region)?;
        }
        *self = next;
        Ok(())
    }

    /// Adds a region above all others, joined to the last where they want the same.
    pub(super) fn push(&mut self, region: Region) -> Result<(), LayoutError> {
        if let Some(last) = self
            .len
            .checked_sub(1)
            .and_then(|i| self.regions.get_mut(i))
            && last.end == region.start
            && last.same_want(&region)
        {
            last.end = region.end;
            return Ok(());
        }
        let slot = self.regions.get_mut(self.len);
        *slot.ok_or(LayoutError::MapFull { capacity: N })? = region;
        self.len += 1;
        Ok(())
    }
}
