//! Pieces of event lists.

use mtrr_pat::cpu::{CR0_CD, CR4_PGE};
use mtrr_pat::regs::MtrrDefType;
use mtrr_pat::sim::{CR0_KERNEL, Op};
use mtrr_pat::snapshot::Snapshot;

use super::one_cpu::reads;

pub const CD: u64 = CR0_KERNEL | CR0_CD;
pub const CR3: u64 = 0x1000;
/// PAE and PGE.
pub const CR4: u64 = 0xa0;
pub const DEF_TYPE: u32 = 0x2ff;
pub const PAT: u32 = 0x277;

/// Lists that follow each other.
pub fn all(parts: &[&[Op]]) -> Vec<Op> {
    parts.concat()
}

/// Each of these writes, read back at once.
pub fn read_back(writes: &[Op]) -> Vec<Op> {
    let pair = |write: &Op| match *write {
        Op::Wrmsr(msr, value) => [Op::Wrmsr(msr, value), Op::Rdmsr(msr, value)],
        other => panic!("{other:?} is no write"),
    };
    writes.iter().flat_map(pair).collect()
}

/// A list without the flushes of caches in it.
pub fn unflushed(mut list: Vec<Op>) -> Vec<Op> {
    list.retain(|op| *op != Op::Wbinvd);
    list
}

/// What comes before the first write of a window, with interrupts enabled and global pages on, and
/// caches flushed as the manuals say.
pub fn window_opens(cr0: u64) -> [Op; 6] {
    [
        Op::Cli,
        Op::ReadCr0(cr0),
        Op::Cr0(CD),
        Op::Wbinvd,
        Op::ReadCr4(CR4),
        Op::Cr4(CR4 & !CR4_PGE),
    ]
}

/// E is cleared, seen to be clear, and the caches are emptied of what came in meanwhile.
pub fn disables(def_type: MtrrDefType) -> [Op; 3] {
    let off = def_type.disabled().raw();
    [
        Op::Wrmsr(DEF_TYPE, off),
        Op::Rdmsr(DEF_TYPE, off),
        Op::Wbinvd,
    ]
}

pub const FLUSHES: [Op; 2] = [Op::ReadCr3(CR3), Op::Cr3(CR3)];
pub const WINDOW_CLOSES: [Op; 3] = [Op::Cr0(CR0_KERNEL), Op::Cr4(CR4), Op::Sti];

/// The end of a window: E set with everything else in place, and the old translations dropped.
pub fn enables(def_type: MtrrDefType) -> [Op; 4] {
    let value = def_type.raw();
    let [read, write] = FLUSHES;
    [
        Op::Wrmsr(DEF_TYPE, value),
        Op::Rdmsr(DEF_TYPE, value),
        read,
        write,
    ]
}

/// A whole sync through the window, with the manuals' two flushes; `writes` are those between the two
/// of DEF_TYPE.
pub fn through_window(have: &Snapshot, want: &Snapshot, writes: &[Op]) -> Vec<Op> {
    all(&[
        &reads(have),
        &[Op::ReadCr0(CR0_KERNEL)],
        &window_opens(CR0_KERNEL),
        &disables(have.def_type),
        &read_back(writes),
        &enables(want.def_type),
        &WINDOW_CLOSES,
    ])
}
