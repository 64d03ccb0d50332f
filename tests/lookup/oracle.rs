//! The obvious evaluator, written from the manuals' rules and for one page at a time; and random
//! register files to try it on. Shares nothing with the crate but the register types.

use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::{MtrrType, Undefined};
use mtrr_pat::regs::SysCfg;
use mtrr_pat::snapshot::Snapshot;

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

/// A small generator of pseudo-random numbers (splitmix64), so that runs repeat.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }
}
