//! What other kernels and firmwares do, as toy kernels on the same machine, written from the operations theirs execute.
//!
//! They are idealised in their favour: the target is copied at no cost, CPUs arrive and leave through words of their own, and the
//! lock is handed from CPU to CPU in one cache transfer.

use super::life::{Method, wait};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CR4_PGE, CpuOps};
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::CacheFlush;
use mtrr_pat::ranges::FIXED_RANGES;
use mtrr_pat::regs::{MsrAddr, MtrrDefType};
use mtrr_pat::sim::SimCpu;
use mtrr_pat::snapshot::Snapshot;
use std::sync::{Arc, Mutex};

/// Who goes through the procedure, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// All CPUs meet after the last one is up, and go through it one after another under one lock; each compares before it writes.
    /// Linux since 2009.
    Serialised,
    /// The same procedure, by each AP alone as it comes up; nobody else stands still. Linux as patched in 2016.
    Alone,
    /// All CPUs at once write every register without looking, between two WBINVDs. EDK2 and patina.
    WriteAll,
}

/// The registers that are to be on every CPU.
struct Target {
    ranges: Vec<(MsrAddr, u64)>,
    def_type: MtrrDefType,
    pat: u64,
}

/// Where CPUs meet. Every word holds the number of the last rendezvous it was used in.
struct Gate {
    arrived: Vec<Word>,
    go: Word,
    /// Whose turn the lock is.
    turn: Vec<Word>,
    lock: Word,
    done: Vec<Word>,
    over: Word,
}

pub struct Peer {
    shape: Shape,
    flush: CacheFlush,
    target: Mutex<Option<Arc<Target>>>,
    gate: Gate,
}

impl Peer {
    pub fn new(shape: Shape, flush: CacheFlush, cpus: usize) -> Self {
        let words = || (0..=cpus).map(|_| Word::new(0)).collect();
        Self {
            shape,
            flush,
            target: Mutex::new(None),
            gate: Gate {
                arrived: words(),
                go: Word::new(0),
                turn: words(),
                lock: Word::new(0),
                done: words(),
                over: Word::new(0),
            },
        }
    }

    fn set_target(&self, want: &Snapshot) {
        let variable = want.variable_ranges().iter().enumerate();
        let mut ranges: Vec<_> = variable
            .flat_map(|(n, pair)| {
                [
                    (MsrAddr::phys_base(n), pair.base),
                    (MsrAddr::phys_mask(n), pair.mask),
                ]
            })
            .collect();
        ranges.extend(FIXED_RANGES.iter().map(|range| range.msr).zip(want.fixed));
        let target = Target {
            ranges,
            def_type: want.def_type,
            pat: want.pat.map_or(0, Pat::raw),
        };
        *self.target.lock().expect("no CPU panicked") = Some(Arc::new(target));
    }

    fn target(&self) -> Arc<Target> {
        let target = self.target.lock().expect("no CPU panicked");
        Arc::clone(target.as_ref().expect("set at boot"))
    }

    /// The whole procedure on this CPU, as this kind of kernel does it.
    fn program(&self, cpu: &mut SimCpu<'_>) {
        let target = self.target();
        if self.shape == Shape::WriteAll {
            write_everything(cpu, &target);
        } else {
            compare_then_write(cpu, &target, self.flush);
            set_pat(cpu, &target);
        }
    }

    /// One CPU's part of a rendezvous, after all have arrived.
    fn take_part(&self, cpu: &mut SimCpu<'_>, rendezvous: u32) {
        let n = cpu.number();
        if self.shape == Shape::WriteAll {
            self.program(cpu);
            return;
        }
        if n > 0 {
            wait(cpu, &self.gate.turn[n], rendezvous);
        }
        let free = self.gate.lock.compare_exchange(0, 1);
        assert!(free.is_ok(), "the turn was passed too early");
        let target = self.target();
        compare_then_write(cpu, &target, self.flush);
        self.gate.lock.store(0, Ordering::Release);
        self.gate.turn[n + 1].store(rendezvous, Ordering::Release);
        set_pat(cpu, &target);
    }

    fn all_together(&self, boot: &mut SimCpu<'_>) {
        let cpus = boot.machine().config().cpus();
        let rendezvous = self.gate.go.load(Ordering::Relaxed) + 1;
        boot.cli();
        for ap in 1..cpus {
            boot.send_ipi(ap);
        }
        for arrived in &self.gate.arrived[1..cpus] {
            wait(boot, arrived, rendezvous);
        }
        self.gate.go.store(rendezvous, Ordering::Release);
        self.take_part(boot, rendezvous);
        for done in &self.gate.done[1..cpus] {
            wait(boot, done, rendezvous);
        }
        self.gate.over.store(rendezvous, Ordering::Release);
        boot.sti();
    }
}

impl Method for Peer {
    fn boot(&self, boot: &mut SimCpu<'_>) {
        let mut want = boot.machine().registers(0);
        want.pat = Some(Pat::LINUX);
        self.set_target(&want);
        self.program(boot);
    }

    fn starting(&self, _: &mut SimCpu<'_>, _: usize) {}

    fn online(&self, ap: &mut SimCpu<'_>) {
        if self.shape == Shape::Alone {
            self.program(ap);
        }
    }

    fn attend(&self, cpu: &mut SimCpu<'_>) {
        let n = cpu.number();
        let rendezvous = self.gate.go.load(Ordering::Relaxed) + 1;
        self.gate.arrived[n].store(rendezvous, Ordering::Release);
        wait(cpu, &self.gate.go, rendezvous);
        self.take_part(cpu, rendezvous);
        self.gate.done[n].store(rendezvous, Ordering::Release);
        wait(cpu, &self.gate.over, rendezvous);
    }

    fn meet(&self, boot: &mut SimCpu<'_>) {
        if self.shape != Shape::Alone {
            self.all_together(boot);
        }
    }

    fn suspend(&self, _: &mut SimCpu<'_>) {}

    fn wake(&self, boot: &mut SimCpu<'_>) {
        self.program(boot);
    }

    fn change(&self, boot: &mut SimCpu<'_>, want: &Snapshot) {
        self.set_target(want);
        self.all_together(boot);
    }
}

/// VCNT 10, other registers equal: 32 RDMSR, 2 WRMSR, 2 WBINVD (0 with self-snoop), 2 writes each of CR0, CR3 and CR4.
fn compare_then_write(cpu: &mut SimCpu<'_>, target: &Target, flush: CacheFlush) {
    let flushes = flush == CacheFlush::Always;
    let (cr0, cr4) = caches_off(cpu, flushes);
    let def_type = read(cpu, MsrAddr::MTRR_DEF_TYPE);
    write(cpu, MsrAddr::MTRR_DEF_TYPE, def_type & !0xcff);
    if flushes {
        cpu.wbinvd();
    }
    for &(msr, value) in &target.ranges {
        if read(cpu, msr) != value {
            write(cpu, msr, value);
        }
    }
    caches_on(cpu, target, cr0, cr4);
}

/// 3 RDMSR, 33 WRMSR, 2 WBINVD, 2 writes each of CR0, CR3 and CR4, whatever the registers held.
fn write_everything(cpu: &mut SimCpu<'_>, target: &Target) {
    read(cpu, MsrAddr::MTRRCAP);
    read(cpu, MsrAddr::MTRR_DEF_TYPE);
    let (cr0, cr4) = caches_off(cpu, true);
    let def_type = read(cpu, MsrAddr::MTRR_DEF_TYPE);
    write(cpu, MsrAddr::MTRR_DEF_TYPE, def_type & !MtrrDefType::E);
    for &(msr, value) in &target.ranges {
        write(cpu, msr, value);
    }
    cpu.wbinvd();
    caches_on(cpu, target, cr0, cr4);
}

/// After the window, outside the lock: 1 WRMSR, and CR4 toggled to flush the TLB.
fn set_pat(cpu: &mut SimCpu<'_>, target: &Target) {
    write(cpu, MsrAddr::PAT, target.pat);
    let cr4 = cpu.read_cr4();
    unsafe { cpu.write_cr4(cr4 ^ CR4_PGE) };
    unsafe { cpu.write_cr4(cr4) };
}

fn caches_off(cpu: &mut SimCpu<'_>, flush: bool) -> (u64, u64) {
    let cr0 = cpu.read_cr0();
    unsafe { cpu.write_cr0((cr0 | CR0_CD) & !CR0_NW) };
    if flush {
        cpu.wbinvd();
    }
    let cr4 = cpu.read_cr4();
    unsafe { cpu.write_cr4(cr4 & !CR4_PGE) };
    flush_tlb(cpu);
    (cr0, cr4)
}

fn caches_on(cpu: &mut SimCpu<'_>, target: &Target, cr0: u64, cr4: u64) {
    flush_tlb(cpu);
    write(cpu, MsrAddr::MTRR_DEF_TYPE, target.def_type.raw());
    unsafe { cpu.write_cr0(cr0 & !(CR0_CD | CR0_NW)) };
    unsafe { cpu.write_cr4(cr4) };
}

fn flush_tlb(cpu: &mut SimCpu<'_>) {
    let cr3 = cpu.read_cr3();
    unsafe { cpu.write_cr3(cr3) };
}

fn read(cpu: &mut SimCpu<'_>, msr: MsrAddr) -> u64 {
    cpu.rdmsr(msr).expect("the machine has it")
}

fn write(cpu: &mut SimCpu<'_>, msr: MsrAddr, value: u64) {
    unsafe { cpu.wrmsr(msr, value) }.expect("a value the boot CPU had");
}
