//! The obvious evaluator, written from the manuals' rules and for one page at a time; and random
//! register files to try it on. Shares nothing with the crate but the register types.

use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::{MtrrType, Undefined};
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

#[allow(dead_code)]
#[path = "../common/dice.rs"]
mod dice;
pub use dice::Dice as Rng;

/// The type of the page at `addr`.
pub fn page_type(snapshot: &Snapshot, addr: u64) -> MtrrType {
    let Some(cap) = snapshot.cap else {
        return MtrrType::Defined(MemType::WriteBack);
    };
    let width = u32::from(snapshot.phys_bits.get());
    if addr >> width != 0 {
        return MtrrType::Undefined(Undefined::BeyondWidth);
    }
    let def_type = snapshot.def_type.raw();
    if def_type & 0x800 == 0 {
        return MtrrType::Defined(MemType::Uncachable);
    }
    let syscfg = snapshot.syscfg.map_or(0, SysCfg::raw);
    if addr < 0x10_0000 && def_type & 0x400 != 0 && cap.raw() & 0x100 != 0 {
        let mut byte = fixed_byte(&snapshot.fixed, addr);
        if syscfg & (1 << 19) != 0 {
            byte &= 0b1110_0111;
        }
        return decode(byte);
    }
    let count = (cap.raw() & 0xff).min(40) as usize;
    let mut types = Vec::new();
    for range in &snapshot.variable[..count] {
        if range.mask & 0x800 == 0 {
            continue;
        }
        let wrong = (12..width).any(|bit| {
            let one = 1u64 << bit;
            range.mask & one != 0 && (addr & one != 0) != (range.base & one != 0)
        });
        if !wrong {
            types.push(decode(range.base as u8));
        }
    }
    if types.is_empty() {
        let top = snapshot.top_mem2 >> 23 << 23 & ((1 << 52) - 1);
        let forced = syscfg & (1 << 21) != 0 && syscfg & (1 << 22) != 0;
        if forced && addr >= 1 << 32 && addr < top {
            return MtrrType::Defined(MemType::WriteBack);
        }
        return decode(def_type as u8);
    }
    overlap(&types)
}

fn overlap(types: &[MtrrType]) -> MtrrType {
    use MemType::{Uncachable, WriteBack, WriteThrough};
    let is = |wanted: MemType| move |one: &MtrrType| *one == MtrrType::Defined(wanted);
    if types.iter().any(is(Uncachable)) {
        return MtrrType::Defined(Uncachable);
    }
    if let Some(reserved) = types.iter().find(|one| one.defined().is_none()) {
        return *reserved;
    }
    if types.iter().all(|one| *one == types[0]) {
        return types[0];
    }
    if types
        .iter()
        .all(|one| is(WriteBack)(one) || is(WriteThrough)(one))
    {
        return MtrrType::Defined(WriteThrough);
    }
    MtrrType::Undefined(Undefined::Mix)
}

fn decode(byte: u8) -> MtrrType {
    match byte {
        0 => MtrrType::Defined(MemType::Uncachable),
        1 => MtrrType::Defined(MemType::WriteCombining),
        4 => MtrrType::Defined(MemType::WriteThrough),
        5 => MtrrType::Defined(MemType::WriteProtected),
        6 => MtrrType::Defined(MemType::WriteBack),
        _ => MtrrType::Undefined(Undefined::Reserved),
    }
}

/// The byte for `addr` below 1 MiB, found by walking over all 88 fields.
fn fixed_byte(fixed: &[u64; 11], addr: u64) -> u8 {
    let mut start = 0;
    for (register, word) in fixed.iter().enumerate() {
        let step = match register {
            0 => 0x1_0000,
            1 | 2 => 0x4000,
            _ => 0x1000,
        };
        for byte in word.to_le_bytes() {
            if (start..start + step).contains(&addr) {
                return byte;
            }
            start += step;
        }
    }
    unreachable!("the 88 fields end at 1 MiB")
}

/// A register file of any content: from what firmware leaves to garbage no hardware would take.
pub fn register_file(rng: &mut Rng) -> Snapshot {
    let width = 32 + rng.below(21) as u8;
    let mut snapshot = Snapshot::empty(PhysBits::new(width).unwrap());
    let count = match rng.below(4) {
        0 => rng.below(256),
        _ => rng.below(12),
    };
    let garbage = rng.one_in(4);
    let low_bits = if garbage {
        rng.next() & 0xffff_ffff_ffff_f200
    } else {
        0
    };
    snapshot.cap = (!rng.one_in(50)).then(|| MtrrCap::from_raw(count | 0x500 & !low_bits));
    let flags = if rng.one_in(10) {
        rng.next() & 0xc00
    } else {
        0xc00
    };
    snapshot.def_type = MtrrDefType::from_raw(type_byte(rng) | flags | low_bits & !0xff);
    for word in &mut snapshot.fixed {
        let byte = type_byte(rng);
        *word = (0..8).fold(0, |word, _| {
            let other = type_byte(rng) | if rng.one_in(3) { 0x18 } else { 0 };
            word << 8 | if rng.one_in(2) { byte } else { other }
        });
    }
    for slot in snapshot.variable.iter_mut().take(count as usize) {
        *slot = range(rng, u64::from(width), garbage);
    }
    if rng.one_in(2) {
        snapshot.syscfg = Some(SysCfg::from_raw(rng.next() | rng.next()));
        snapshot.top_mem2 = rng.next() >> rng.below(40);
    }
    snapshot
}

fn type_byte(rng: &mut Rng) -> u64 {
    match rng.below(40) {
        0 => rng.below(256),
        pick => [0, 1, 4, 5, 6, 6, 6, 0][pick as usize % 8],
    }
}

fn range(rng: &mut Rng, width: u64, garbage: bool) -> VariableMtrr {
    let valid = if rng.one_in(5) { 0 } else { 0x800 };
    // Most ranges lie low, so that they meet each other.
    let reach = 13 + rng.below(width - 12);
    let base = rng.next() & ((1 << reach) - 1) & !0xfff;
    let size = 12 + rng.below(reach - 11);
    let mut mask = !((1u64 << size) - 1);
    if rng.one_in(12) {
        mask &= rng.next() | rng.next();
    }
    if garbage {
        return VariableMtrr {
            base: base | rng.next() & 0xfff0_0000_0000_0f00 | type_byte(rng),
            mask: mask | valid,
        };
    }
    mask &= (1 << width) - 1;
    let base = if rng.one_in(8) { base } else { base & mask };
    VariableMtrr {
        base: base | type_byte(rng),
        mask: mask | valid,
    }
}

/// Addresses where something may happen: both sides of every edge of every range.
pub fn edges(snapshot: &Snapshot, rng: &mut Rng) -> Vec<u64> {
    let end = 1u64 << snapshot.phys_bits.get();
    let mut all = vec![0, 0x10_0000, 1 << 32, snapshot.top_mem2 >> 23 << 23, end];
    for range in snapshot
        .variable
        .iter()
        .filter(|range| range.mask & 0x800 != 0)
    {
        let mask = range.mask & (end - 1) & !0xfff;
        let block = 1u64 << if mask == 0 { 12 } else { mask.trailing_zeros() };
        let alias = rng.next() & (end - 1) & !mask & !(block - 1);
        for first in [range.base & mask, range.base & mask | alias] {
            all.extend([first, first.wrapping_add(block)]);
        }
    }
    let random = rng.next() & (end - 1);
    all.push(random);
    let mut both: Vec<u64> = all
        .iter()
        .flat_map(|at| [at.wrapping_sub(1), *at])
        .filter(|at| *at < end)
        .collect();
    both.sort_unstable();
    both.dedup();
    both
}
