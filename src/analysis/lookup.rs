//! The effective MTRR type of an address, of a range, and of the whole physical space.
//!
//! Owns the answer to "what type is this memory"; refuses to know page tables (see
//! [`crate::combine`]) and how the registers came to hold what they hold.

use crate::memtype::MemType;
use crate::overlap::{MtrrType, TypeSet, Undefined};
use crate::ranges::{FixedSlot, PhysBits};
use crate::regs::{FIXED_COUNT, MAX_VARIABLE, SysCfg};
use crate::snapshot::Snapshot;

mod answer;
mod runs;

pub use answer::{Lookup, PageSize, Source};
pub use runs::{Run, Runs, Uniformity};

/// One variable range in use, cut to the address width.
#[derive(Clone, Copy, Debug)]
struct InUse {
    mask: u64,
    base: u64,
    kind: TypeSet,
    pair: u8,
}

/// What decides where no fixed range does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    NoMtrr,
    Disabled,
    Enabled,
}

/// The memory map that one CPU's MTRRs describe, decoded once to be asked often.
///
/// Plain data of about 1 KiB, without heap. Any register content is allowed, also what hardware
/// would refuse; no method panics. The sizes that hold for every method: fixed ranges decide
/// below 1 MiB when they are in force, pairs above VCNT do not exist, address bits above the
/// width are not compared.
///
/// Source: Intel SDM 3A, "MTRR Precedences"; AMD APM 2, "Memory-Type Range Registers".
#[derive(Clone, Copy, Debug)]
pub struct MtrrMap {
    ranges: [InUse; MAX_VARIABLE],
    in_use: usize,
    fixed: Option<[u64; FIXED_COUNT]>,
    /// Bits of a fixed range's byte that hold its type.
    fixed_bits: u8,
    default: MtrrType,
    /// First byte above the memory that AMD's TOP_MEM2 makes WB; at most 4 GiB when it does not.
    forced_end: u64,
    state: State,
    bits: PhysBits,
}

/// Where the memory starts that TOP_MEM2 ends.
pub(crate) const FORCED_START: u64 = 1 << 32;

impl MtrrMap {
    /// Decodes the registers of one CPU.
    #[must_use]
    pub fn new(snapshot: &Snapshot) -> Self {
        let unused = InUse {
            mask: 0,
            base: 0,
            kind: TypeSet::EMPTY,
            pair: 0,
        };
        let mut ranges = [unused; MAX_VARIABLE];
        let mut in_use = 0;
        let valid = (0u8..)
            .zip(snapshot.variable_ranges())
            .filter(|(_, range)| range.valid());
        for (slot, (pair, range)) in ranges.iter_mut().zip(valid) {
            let mask = range.mask & snapshot.phys_bits.page_mask();
            *slot = InUse {
                mask,
                base: range.base & mask,
                kind: TypeSet::of_decoded(range.memtype()),
                pair,
            };
            in_use += 1;
        }
        Self {
            ranges,
            in_use,
            fixed: snapshot.fixed_in_force().then_some(snapshot.fixed),
            fixed_bits: fixed_bits(snapshot),
            default: MtrrType::from_decoded(snapshot.def_type.memtype()),
            forced_end: forced_end(snapshot),
            state: match snapshot.cap {
                None => State::NoMtrr,
                Some(_) if snapshot.def_type.enabled() => State::Enabled,
                Some(_) => State::Disabled,
            },
            bits: snapshot.phys_bits,
        }
    }

    /// The first address above the physical space.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.bits.end()
    }

    /// The type of one address, and what decides it.
    #[must_use]
    pub fn at(&self, addr: u64) -> Lookup {
        let (memtype, source) = if addr >= self.end() {
            (
                MtrrType::Undefined(Undefined::BeyondWidth),
                Source::BeyondWidth,
            )
        } else if self.state == State::NoMtrr {
            (MemType::WriteBack.into(), Source::NoMtrr)
        } else if self.state == State::Disabled {
            (MemType::Uncachable.into(), Source::Disabled)
        } else if let Some((memtype, slot)) = self.fixed_at(addr) {
            (memtype, Source::Fixed(slot))
        } else {
            self.variable_at(addr)
        };
        Lookup { memtype, source }
    }

    /// The type of one address: what [`MtrrMap::at`] says, without the reason, and faster.
    #[must_use]
    #[inline]
    pub fn memtype_at(&self, addr: u64) -> MtrrType {
        if addr >= self.end() || self.state != State::Enabled {
            return self.at(addr).memtype;
        }
        if let Some((memtype, _)) = self.fixed_at(addr) {
            return memtype;
        }
        let default = if self.is_forced(addr) {
            MemType::WriteBack.into()
        } else {
            self.default
        };
        self.types_at(addr).resolve().unwrap_or(default)
    }

    /// The largest page that contains `addr`, lies inside the physical space and has one type.
    ///
    /// What a builder of page tables or of nested page tables needs: a large page over memory of
    /// different MTRR types has no defined type. 4 KiB is always of one type, and the answer for
    /// what lies above the physical space.
    ///
    /// Source: AMD APM 2, "MTRRs and Page Cache Controls"; Intel SDM 3A, "Large Page Size
    /// Considerations".
    #[must_use]
    pub fn largest_page(&self, addr: u64) -> PageSize {
        [PageSize::Size1G, PageSize::Size2M]
            .into_iter()
            .find(|size| {
                let start = addr & !(size.bytes() - 1);
                start < self.end() && self.over(start..start + size.bytes()).uniform().is_some()
            })
            .unwrap_or(PageSize::Size4K)
    }

    /// Whether two maps are the same by the look of them: the same set of ranges, in any order,
    /// under the same conditions. Maps that look different may still be the same.
    pub(crate) fn looks_like(&self, other: &Self) -> bool {
        let holds = |map: &Self, range: &InUse| {
            map.ranges()
                .any(|one| (one.mask, one.base, one.kind) == (range.mask, range.base, range.kind))
        };
        self.state == other.state
            && self.bits == other.bits
            && self.default == other.default
            && self.forced_end == other.forced_end
            && (self.fixed, self.fixed_bits) == (other.fixed, other.fixed_bits)
            && self.ranges().all(|range| holds(other, range))
            && other.ranges().all(|range| holds(self, range))
    }

    #[inline]
    fn ranges(&self) -> impl Iterator<Item = &InUse> {
        self.ranges.iter().take(self.in_use)
    }

    #[inline]
    fn fixed_at(&self, addr: u64) -> Option<(MtrrType, FixedSlot)> {
        let slot = FixedSlot::of(addr)?;
        let word = self.fixed.as_ref()?.get(slot.register)?;
        let byte = (word >> (u32::from(slot.byte) * 8)) as u8;
        let decoded = MemType::from_field(byte & self.fixed_bits);
        Some((MtrrType::from_decoded(decoded), slot))
    }

    fn variable_at(&self, addr: u64) -> (MtrrType, Source) {
        match self.types_at(addr).resolve() {
            Some(memtype) => {
                let matching = self
                    .ranges()
                    .filter(|range| addr & range.mask == range.base);
                let pairs = matching.fold(0, |pairs, range| pairs | 1 << range.pair);
                (memtype, Source::Variable { pairs })
            }
            None if self.is_forced(addr) => (MemType::WriteBack.into(), Source::TopMem2),
            None => (self.default, Source::Default),
        }
    }

    /// The types of the variable ranges that match. Without a branch: which do is hard to predict.
    #[inline]
    fn types_at(&self, addr: u64) -> TypeSet {
        self.ranges().fold(TypeSet::EMPTY, |types, range| {
            types.with(range.kind.only_if(addr & range.mask == range.base))
        })
    }

    #[inline]
    const fn is_forced(&self, addr: u64) -> bool {
        addr >= FORCED_START && addr < self.forced_end
    }
}

/// The bits of a fixed range's byte that are its type: without RdMem and WrMem where AMD's
/// SYSCFG makes them visible.
pub(crate) fn fixed_bits(snapshot: &Snapshot) -> u8 {
    if snapshot.shows_dram_bits() {
        !0x18
    } else {
        !0
    }
}

/// Where the memory ends that AMD's TOP_MEM2 makes WB by default. The processor ignores all bits
/// of the register but 51:23.
///
/// Source: AMD APM 2, "Top of Memory", "System Configuration Register (SYSCFG)".
pub(crate) fn forced_end(snapshot: &Snapshot) -> u64 {
    let needed = SysCfg::MTRR_TOM2_EN.union(SysCfg::TOM2_FORCE_WB);
    match snapshot.syscfg {
        Some(syscfg) if syscfg.contains(needed) => {
            (snapshot.top_mem2 & 0x000f_ffff_ff80_0000).min(snapshot.phys_bits.end())
        }
        _ => 0,
    }
}
