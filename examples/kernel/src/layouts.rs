//! The register layouts that `oracle=types` tries: overlaps of every kind, and the switches around them.

use mtrr_pat::memtype::MemType::{
    self, Uncachable as UC, WriteBack as WB, WriteCombining as WC, WriteProtected as WP,
    WriteThrough as WT,
};
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrDefType, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

/// A block of pages: first page (from the start of the test area, a multiple of the number), number (a power of two), type.
type Block = (u64, u64, MemType);

/// Pages touched per layout at most.
pub const PLACES: usize = 6;

const PAGE: u64 = 0x1000;
/// Option ROM space, which one word of fixed ranges covers: 32 KiB in 4 KiB steps.
const ROM: u64 = 0xd_0000;
const ROM_REGISTER: usize = 5;

/// What is special about a layout, besides its blocks.
#[derive(Clone, Copy)]
pub enum Twist {
    None,
    /// The blocks go into the registers last to first.
    Reversed,
    /// Another default type; the first 4 GiB stay as they are by a range more.
    Default(MemType),
    /// The mask of the first block has a hole at this bit: an alias so many bytes further on.
    Hole(u32),
    /// Bits set in the first block's base that its mask covers.
    BaseBits(u64),
    /// The first block's V bit is clear.
    Invalid,
    /// E clear.
    Off,
    /// FE clear, and touches in option ROM space.
    FixedOff,
    /// Fixed ranges of every type, in option ROM space.
    Fixed,
}

pub struct Layout {
    pub name: &'static str,
    blocks: &'static [Block],
    twist: Twist,
    /// Pages to touch.
    pages: &'static [u64],
}

const fn layout(name: &'static str, blocks: &'static [Block], twist: Twist) -> Layout {
    Layout {
        name,
        blocks,
        twist,
        pages: &[0, 4, 7, 8, 15, 16],
    }
}

macro_rules! nested {
    ($($outer:ident $inner:ident),*) => {
        [$(layout(concat!(stringify!($inner), " in ", stringify!($outer)), &[(0, 16, $outer), (4, 4, $inner)], Twist::None)),*]
    };
}

/// Every type inside every type.
static NESTED: [Layout; 25] = nested!(
    UC UC, UC WC, UC WT, UC WP, UC WB, WC UC, WC WC, WC WT, WC WP, WC WB, WT UC, WT WC, WT WT, WT WP, WT WB,
    WP UC, WP WC, WP WT, WP WP, WP WB, WB UC, WB WC, WB WT, WB WP, WB WB
);

static OTHERS: [Layout; 24] = [
    layout(
        "WB in WT, reversed",
        &[(0, 16, WT), (4, 4, WB)],
        Twist::Reversed,
    ),
    layout(
        "WC in UC, reversed",
        &[(0, 16, UC), (4, 4, WC)],
        Twist::Reversed,
    ),
    layout(
        "WC in WB, reversed",
        &[(0, 16, WB), (4, 4, WC)],
        Twist::Reversed,
    ),
    layout(
        "WT, WB and UC",
        &[(0, 16, WT), (0, 8, WB), (4, 4, UC)],
        Twist::None,
    ),
    layout(
        "WB, WT and WB",
        &[(0, 16, WB), (0, 8, WT), (4, 4, WB)],
        Twist::None,
    ),
    layout(
        "WC, WP and UC",
        &[(0, 16, WC), (0, 8, WP), (4, 4, UC)],
        Twist::None,
    ),
    layout(
        "WC, WC and WC",
        &[(0, 16, WC), (0, 8, WC), (4, 4, WC)],
        Twist::None,
    ),
    layout(
        "WP, WB and WT",
        &[(0, 16, WP), (0, 8, WB), (4, 4, WT)],
        Twist::None,
    ),
    layout(
        "WB, WB, WT and WT",
        &[(0, 16, WB), (0, 8, WB), (4, 4, WT), (7, 1, WT)],
        Twist::None,
    ),
    layout("default UC", &[(4, 4, WB)], Twist::Default(UC)),
    layout("default WC", &[(4, 4, WT)], Twist::Default(WC)),
    layout("default WT", &[(4, 4, WC)], Twist::Default(WT)),
    layout("default WP", &[(4, 4, UC)], Twist::Default(WP)),
    layout(
        "default WP, WT in WB",
        &[(0, 8, WB), (4, 4, WT)],
        Twist::Default(WP),
    ),
    layout("mask with a hole", &[(0, 4, WC)], Twist::Hole(15)),
    layout(
        "mask with a hole higher up",
        &[(0, 8, WT), (8, 8, UC)],
        Twist::Hole(16),
    ),
    layout(
        "base bits under the mask",
        &[(4, 4, WP)],
        Twist::BaseBits(3 * PAGE),
    ),
    layout(
        "all base bits under the mask",
        &[(0, 16, WC)],
        Twist::BaseBits(15 * PAGE),
    ),
    layout("V clear", &[(0, 16, UC), (4, 4, WT)], Twist::Invalid),
    layout("E clear", &[(0, 16, WB), (4, 4, WC)], Twist::Off),
    layout("FE clear", &[(0, 16, WB)], Twist::FixedOff),
    layout("fixed ranges of every type", &[], Twist::Fixed),
    layout(
        "neighbours",
        &[(0, 4, WC), (4, 4, WT), (8, 8, WP)],
        Twist::None,
    ),
    layout("single pages", &[(7, 1, WP), (8, 1, WC)], Twist::None),
];

/// All of them.
pub fn all() -> impl ExactSizeIterator<Item = &'static Layout> {
    let count = NESTED.len() + OTHERS.len();
    (0..count).map(|n| NESTED.get(n).unwrap_or_else(|| &OTHERS[n - NESTED.len()]))
}

impl Layout {
    /// One type for everything that is touched.
    pub const fn plain(memtype: MemType) -> Self {
        let (name, blocks): (_, &[Block]) = match memtype {
            UC => ("UC", &[(0, 32, UC)]),
            WC => ("WC", &[(0, 32, WC)]),
            WT => ("WT", &[(0, 32, WT)]),
            WP => ("WP", &[(0, 32, WP)]),
            WB => ("WB", &[(0, 32, WB)]),
        };
        layout(name, blocks, Twist::None)
    }

    /// The physical addresses to touch.
    pub fn touches(&self, base: &Snapshot) -> impl Iterator<Item = u64> {
        let start = match self.twist {
            Twist::FixedOff | Twist::Fixed => ROM,
            _ => area(base.phys_bits),
        };
        // Fixed: five types in eight steps.
        let low = [0u64, 1, 2, 3, 4, 5];
        let pages: &'static [u64] = self.pages;
        let fixed = start == ROM;
        (0..PLACES).map(move |n| start + PAGE * if fixed { low[n] } else { pages[n] })
    }

    /// The registers of `base` with this layout in pairs that are not in use. None when there are too few.
    pub fn on(&self, base: &Snapshot) -> Option<Snapshot> {
        let bits = base.phys_bits;
        let mut target = *base;
        let mut pairs = self.pairs(bits);
        let mut raw = base.def_type.raw();
        match self.twist {
            Twist::Default(memtype) => {
                raw = raw & !0xff | u64::from(memtype.raw());
                pairs[4] =
                    VariableMtrr::from_block(0, 1 << 32, base.def_type.memtype().ok()?, bits);
            }
            Twist::Off => raw &= !MtrrDefType::E,
            Twist::FixedOff => raw &= !MtrrDefType::FE,
            Twist::Fixed => {
                target.fixed[ROM_REGISTER] = u64::from_le_bytes(FIXED_BYTES.map(MemType::raw))
            }
            _ => {}
        }
        target.def_type = MtrrDefType::from_raw(raw);
        let count = base.variable_count();
        let mut free = target.variable[..count]
            .iter_mut()
            .filter(|pair| !pair.valid());
        for pair in pairs.into_iter().flatten() {
            *free.next()? = pair;
        }
        Some(target)
    }

    fn pairs(&self, bits: PhysBits) -> [Option<VariableMtrr>; 5] {
        let mut pairs = [None; 5];
        for (pair, &(first, pages, memtype)) in pairs.iter_mut().zip(self.blocks) {
            *pair =
                VariableMtrr::from_block(area(bits) + first * PAGE, pages * PAGE, memtype, bits);
        }
        if let Some(first) = &mut pairs[0] {
            match self.twist {
                Twist::Hole(bit) => first.mask &= !(1 << bit),
                Twist::BaseBits(more) => first.base |= more,
                Twist::Invalid => first.mask &= !VariableMtrr::V,
                _ => {}
            }
        }
        if matches!(self.twist, Twist::Reversed) {
            pairs.reverse();
        }
        pairs
    }
}

const FIXED_BYTES: [MemType; 8] = [UC, WC, WT, WP, WB, WC, WB, WB];

/// Where the test area starts: addresses where nothing is, far above all RAM.
fn area(bits: PhysBits) -> u64 {
    bits.end() / 4 * 3
}
