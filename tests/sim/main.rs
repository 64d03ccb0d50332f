//! The simulated machine, seen from outside: a toy kernel lives on it.
#![cfg(feature = "sim")]

mod costs;
mod faults;
mod fences;
mod firmware;
mod free;
mod life;
mod published;
mod rules;

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CR4_PGE, CpuOps, MsrFault};
use mtrr_pat::regs::MsrAddr;
use mtrr_pat::sim::{Machine, Rule, S3, SimCpu};
use mtrr_pat::snapshot::Snapshot;

fn nothing(_: &mut SimCpu<'_>) {}

/// The manual's order, everything written: what the toy kernel does on a CPU that woke.
fn window(cpu: &mut SimCpu<'_>, want: &Snapshot) -> Result<(), MsrFault> {
    let cr0 = cpu.read_cr0();
    let cr4 = cpu.read_cr4();
    unsafe { cpu.write_cr0((cr0 | CR0_CD) & !CR0_NW) };
    cpu.wbinvd();
    unsafe { cpu.write_cr4(cr4 & !CR4_PGE) };
    unsafe { cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, 0) }?;
    for (n, pair) in want.variable_ranges().iter().enumerate() {
        unsafe { cpu.wrmsr(MsrAddr::phys_base(n), pair.base) }?;
        unsafe { cpu.wrmsr(MsrAddr::phys_mask(n), pair.mask) }?;
    }
    for (range, word) in mtrr_pat::ranges::FIXED_RANGES.iter().zip(want.fixed) {
        unsafe { cpu.wrmsr(range.msr, word) }?;
    }
    if let Some(pat) = want.pat {
        unsafe { cpu.wrmsr(MsrAddr::PAT, pat.raw()) }?;
    }
    unsafe { cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, want.def_type.raw()) }?;
    unsafe { cpu.write_cr4(cr4 & !CR4_PGE | CR4_PGE) };
    unsafe { cpu.write_cr4(cr4) };
    unsafe { cpu.write_cr0(cr0 & !(CR0_CD | CR0_NW)) };
    Ok(())
}

/// Boot, APs up one by one, S3, APs up again, each through the window.
fn life(machine: &Machine, profile: &S3) {
    let want = machine.registers(0);
    let online = Word::new(0);
    let resuming = Word::new(0);
    machine.run(
        |boot| {
            for round in 0..2 {
                online.store(0, Ordering::Release);
                for ap in 1..boot.machine().config().cpus() {
                    boot.send_init_sipi(ap);
                    let seen = ap as u32 - 1;
                    while online.load(Ordering::Acquire) == seen {
                        boot.pause_while(&online, seen, u64::MAX);
                    }
                }
                if round == 0 {
                    boot.s3(profile);
                    window(boot, &want).unwrap();
                    resuming.store(1, Ordering::Release);
                }
            }
            boot.work(1000);
        },
        |ap| {
            if resuming.load(Ordering::Acquire) == 1 {
                window(ap, &want).unwrap();
            }
            ap.work(1000);
            let before = online.load(Ordering::Acquire);
            online.store(before + 1, Ordering::Release);
            while ap.halt_until_ipi() {}
        },
        nothing,
    );
}

fn rules_of(machine: &Machine) -> Vec<(usize, Rule)> {
    let violations = machine.violations();
    violations.iter().map(|v| (v.cpu, v.rule)).collect()
}
