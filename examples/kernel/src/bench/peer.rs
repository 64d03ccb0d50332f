//! The other side: a kernel that always goes through the whole procedure, and whose CPUs do so one after another under one lock.
//!
//! Written from the operations that Linux executes on a processor with self-snoop (no WBINVD, which costs an emulator nothing
//! anyway): 1 + 2 x VCNT + 11 RDMSR, 3 WRMSR when nothing differs, two writes each of CR0, CR3 and CR4, and a TLB flush after the
//! PAT. It compares, but only inside.

use crate::racy::Racy;
use crate::regs::{DEF_TYPE, FIXED, PAIRS, PAT, RegFile};
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CR4_PGE, CpuOps};
use mtrr_pat::regs::MsrAddr;

static TARGET: Racy<RegFile> = Racy::new(RegFile::EMPTY);
static LOCK: AtomicU32 = AtomicU32::new(0);

/// A rendezvous: how many CPUs have arrived and are done, and how many rendezvous have begun and ended.
static ARRIVED: AtomicU32 = AtomicU32::new(0);
static DONE: AtomicU32 = AtomicU32::new(0);
static BEGUN: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);

/// Boot CPU: what it holds is what everybody has to hold.
pub fn remember() {
    // SAFETY: no AP uses it yet.
    unsafe { (*TARGET.get()).read_into() };
}

/// One CPU by itself.
pub fn program_alone(cpu: &mut impl CpuOps) {
    // SAFETY: written once, by `remember`.
    let target = unsafe { &*TARGET.get() };
    while LOCK.compare_exchange_weak(0, 1, Acquire, Relaxed).is_err() {
        core::hint::spin_loop();
    }
    compare_then_write(cpu, target);
    LOCK.store(0, Release);
    set_pat(cpu, target.pat);
}

/// An AP's part of a rendezvous.
pub fn attend(cpu: &mut impl CpuOps) {
    let rendezvous = ENDED.load(Acquire) + 1;
    ARRIVED.fetch_add(1, AcqRel);
    until(&BEGUN, rendezvous);
    program_alone(cpu);
    DONE.fetch_add(1, AcqRel);
    until(&ENDED, rendezvous);
}

/// The boot CPU's part; it has asked the others to attend.
pub fn lead(cpu: &mut impl CpuOps, cpus: u32) {
    let rendezvous = ENDED.load(Relaxed) + 1;
    until(&ARRIVED, cpus - 1);
    BEGUN.store(rendezvous, Release);
    program_alone(cpu);
    until(&DONE, cpus - 1);
    ARRIVED.store(0, Relaxed);
    DONE.store(0, Relaxed);
    ENDED.store(rendezvous, Release);
}

fn until(word: &AtomicU32, value: u32) {
    while word.load(Acquire) != value {
        core::hint::spin_loop();
    }
}

fn compare_then_write(cpu: &mut impl CpuOps, target: &RegFile) {
    let cr0 = cpu.read_cr0();
    // SAFETY: the manual\'s procedure, on a machine that does nothing else.
    unsafe { cpu.write_cr0((cr0 | CR0_CD) & !CR0_NW) };
    let cr4 = cpu.read_cr4();
    // SAFETY: the manual\'s procedure, on a machine that does nothing else.
    unsafe { cpu.write_cr4(cr4 & !CR4_PGE) };
    flush_tlb(cpu);
    let def_type = read(cpu, DEF_TYPE);
    write(cpu, DEF_TYPE, def_type & !0xcff);
    for (pair, register) in target.pairs[..target.pair_count()]
        .iter()
        .zip((PAIRS..).step_by(2))
    {
        update(cpu, register, pair[0]);
        update(cpu, register + 1, pair[1]);
    }
    for (&register, &value) in FIXED.iter().zip(&target.fixed) {
        update(cpu, register, value);
    }
    flush_tlb(cpu);
    write(cpu, DEF_TYPE, target.def_type);
    // SAFETY: the manual\'s procedure, on a machine that does nothing else.
    unsafe { cpu.write_cr0(cr0 & !(CR0_CD | CR0_NW)) };
    // SAFETY: the manual\'s procedure, on a machine that does nothing else.
    unsafe { cpu.write_cr4(cr4) };
}

fn set_pat(cpu: &mut impl CpuOps, pat: u64) {
    write(cpu, PAT, pat);
    let cr4 = cpu.read_cr4();
    // SAFETY: the manual\'s procedure, on a machine that does nothing else.
    unsafe { cpu.write_cr4(cr4 ^ CR4_PGE) };
    // SAFETY: the manual\'s procedure, on a machine that does nothing else.
    unsafe { cpu.write_cr4(cr4) };
}

fn flush_tlb(cpu: &mut impl CpuOps) {
    let cr3 = cpu.read_cr3();
    // SAFETY: the manual\'s procedure, on a machine that does nothing else.
    unsafe { cpu.write_cr3(cr3) };
}

fn update(cpu: &mut impl CpuOps, register: u32, value: u64) {
    if read(cpu, register) != value {
        write(cpu, register, value);
    }
}

fn read(cpu: &mut impl CpuOps, register: u32) -> u64 {
    cpu.rdmsr(MsrAddr(register)).unwrap_or(0)
}

fn write(cpu: &mut impl CpuOps, register: u32, value: u64) {
    // Every value is one that the boot CPU holds.
    // SAFETY: the manual\'s procedure, on a machine that does nothing else.
    let _ = unsafe { cpu.wrmsr(MsrAddr(register), value) };
}
