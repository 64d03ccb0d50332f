//! RdMem and WrMem are only there while bit 19 of SYSCFG is set: CPUs that compare them, all in one
//! rendezvous, see them, and leave the bit and everything else as it was.

use crate::common::wrapped::Wrapped;
use crate::common::{Kernel, SCOPES, aps, policy};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::delta::Changes;
use mtrr_pat::error::Error;
use mtrr_pat::policy::{AmdFixed, Policy, Resync};
use mtrr_pat::regs::{MsrAddr, SysCfg};
use mtrr_pat::sim::{CR0_RESET, Config, Machine, MtrrScope, Op, SimCpu};
use mtrr_pat::snapshot::Snapshot;

/// RdMem and WrMem of every byte.
const DRAM_BITS: u64 = 0x1818_1818_1818_1818;

fn saving_dram_bits(resync: Resync) -> Policy {
    Policy {
        amd_fixed: AmdFixed::SaveDramBits,
        ..policy(resync)
    }
}

/// SYSCFG shared by the threads of a core: what one thread writes the others read.
fn sharing_syscfg<'a, 'run>(cpu: &'a mut SimCpu<'run>) -> impl CpuOps + use<'a, 'run> {
    Wrapped {
        cpu,
        read: |cpu: &mut SimCpu<'run>, msr| cpu.rdmsr(msr),
        write: |cpu: &mut SimCpu<'run>, msr, value| {
            unsafe { cpu.wrmsr(msr, value) }?;
            if msr == MsrAddr::SYSCFG {
                let machine = cpu.machine();
                let config = machine.config();
                let core = config.place(cpu.number()).0;
                for sibling in (0..config.threads).map(|thread| config.cpu_at(core, thread)) {
                    let mut registers = machine.registers(sibling);
                    registers.syscfg = Some(SysCfg::from_raw(value));
                    machine.set_registers(sibling, &registers);
                }
            }
            Ok(())
        },
    }
}

/// Four checks, attended and led through a wrapper of the CPU or not.
fn checks(scope: MtrrScope, shared_syscfg: bool) {
    let mut config = Config::amd(2, 4);
    config.scope = scope;
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    machine.run(
        |boot| {
            kernel.init(boot, saving_dram_bits(Resync::Early));
            assert!(kernel.bring_up(boot, &aps(&machine)).is_empty());
            for _ in 0..4 {
                machine.clear_log();
                let ipis = boot.ipis();
                let kick = |cpu| ipis.send(cpu);
                let met = if shared_syscfg {
                    kernel.sync.check(&mut sharing_syscfg(boot), 0, kick)
                } else {
                    kernel.sync.check(boot, 0, kick)
                };
                let met = met.unwrap();
                let seen = (met.cpus, met.differed, met.out_of_sync);
                assert_eq!(seen, (8, 0, 0), "{scope:?}: {}", kernel.sync.report());
                (0..8).for_each(|cpu| assert_looked(&machine, cpu));
            }
        },
        |ap| kernel.ap(ap),
        |cpu| {
            let me = cpu.number();
            let _ = if shared_syscfg {
                kernel.sync.attend(&mut sharing_syscfg(cpu), me)
            } else {
                kernel.sync.attend(cpu, me)
            };
        },
    );
    machine.check().unwrap();
}

/// A CPU saw RdMem and WrMem, and has them hidden again.
fn assert_looked(machine: &Machine, cpu: usize) {
    let saw = |op: &Op| matches!(op, Op::Rdmsr(0x250, value) if value & DRAM_BITS != 0);
    assert!(machine.ops(cpu).iter().any(saw), "CPU {cpu}");
    let syscfg = machine.registers(cpu).syscfg.unwrap();
    let open = syscfg.contains(SysCfg::MTRR_FIX_DRAM_MOD_EN);
    assert!(!open, "CPU {cpu}");
}

#[test]
fn all_cpus_of_a_check_see_them() {
    for scope in SCOPES {
        checks(scope, false);
    }
}

#[test]
fn all_cpus_of_a_check_see_them_where_threads_share_syscfg() {
    for scope in SCOPES {
        checks(scope, true);
    }
}

type Registers = (Snapshot, (u64, u64, u64));

fn registers(machine: &Machine) -> Vec<Registers> {
    let of = |cpu| (machine.registers(cpu), machine.control_registers(cpu));
    (0..machine.config().cpus()).map(of).collect()
}

/// No register was written, but for SYSCFG to see RdMem and WrMem, and all are as they were.
fn assert_only_looked(machine: &Machine, before: &[Registers]) {
    assert_eq!(registers(machine), before);
    for cpu in 0..machine.config().cpus() {
        for op in machine.writes(cpu) {
            let wrote = matches!(op, Op::Wrmsr(msr, _) if msr != MsrAddr::SYSCFG.0);
            assert!(!wrote && !matches!(op, Op::Cr0(_)), "CPU {cpu}: {op:?}");
        }
    }
}

/// A rendezvous that CPU 3 misses, or a check: of both nothing is left.
fn meet_in_vain(kernel: &Kernel, boot: &mut SimCpu<'_>, missing: bool, differing: u32) {
    let machine = boot.machine();
    let before = registers(&machine);
    machine.clear_log();
    if missing {
        let missing = Error::Missing { count: 1, first: 3 };
        assert_eq!(kernel.resync(boot), Err(missing));
    } else {
        let met = kernel.check(boot).unwrap();
        let expected = (4, differing, differing);
        assert_eq!((met.cpus, met.differed, met.out_of_sync), expected);
    }
    assert_only_looked(&machine, &before);
}

/// Every AP that shares no registers with the boot CPU differs, and stays so until the last rendezvous.
fn called_off_then_checked(scope: MtrrScope) {
    let mut config = Config::amd(2, 2);
    config.scope = scope;
    config.aps.fixed[4] = DRAM_BITS;
    config.ap_cr0 = CR0_RESET;
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    let differing = if scope == MtrrScope::Core { 2 } else { 3 };
    let deaf = Word::new(0);
    machine.run(
        |boot| {
            kernel.init(boot, saving_dram_bits(Resync::Deferred));
            assert!(kernel.bring_up(boot, &aps(&machine)).is_empty());
            for missing in [true, false, false] {
                deaf.store(u32::from(missing), Ordering::Release);
                meet_in_vain(&kernel, boot, missing, differing);
            }
            assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
        },
        |ap| kernel.ap(ap),
        |cpu| {
            if deaf.load(Ordering::Acquire) == 0 || cpu.number() != 3 {
                kernel.interrupt(cpu);
            }
        },
    );
    machine.check().unwrap();
}

#[test]
fn a_rendezvous_called_off_and_a_check_change_nothing() {
    for scope in SCOPES {
        called_off_then_checked(scope);
    }
}

/// Firmware or a tool set bit 19 on the boot CPU behind our back, and the policy leaves RdMem and WrMem
/// alone: a suspend does not take them for another map, nor into the target.
#[test]
fn a_suspend_looks_past_dram_bits_that_are_shown() {
    let mut config = Config::amd(2, 1);
    config
        .boot
        .fixed
        .iter_mut()
        .for_each(|word| *word |= DRAM_BITS);
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Early));
        let (epoch, before) = kernel.sync.target().unwrap();
        let syscfg = boot.rdmsr(MsrAddr::SYSCFG).unwrap();
        let shown = syscfg | SysCfg::MTRR_FIX_DRAM_MOD_EN.raw();
        unsafe { boot.wrmsr(MsrAddr::SYSCFG, shown) }.unwrap();
        assert_ne!(
            boot.rdmsr(MsrAddr(0x250)).unwrap() & DRAM_BITS,
            0,
            "there are some"
        );
        let saved = kernel.sync.suspend(boot, 0).unwrap();
        assert!(saved.changes.is_empty(), "{saved}");
        assert_eq!(saved.epoch, epoch);
        kernel.sync.suspend_aborted().unwrap();
        // Nor when something else is taken over.
        let pat = mtrr_pat::pat::Pat::LINUX;
        unsafe { boot.wrmsr(MsrAddr::PAT, pat.raw()) }.unwrap();
        let saved = kernel.sync.suspend(boot, 0).unwrap();
        assert_eq!((saved.changes, saved.epoch), (Changes::PAT, epoch + 1));
        let mut wanted = before;
        wanted.pat = Some(pat);
        assert_eq!(kernel.sync.target().unwrap().1, wanted);
    });
}
