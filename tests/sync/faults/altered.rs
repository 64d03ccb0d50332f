//! Registers that take another value than is written: what the error says is left is what is there.

use mtrr_pat::cpu::{CpuOps, MsrFault};
use mtrr_pat::error::{Error, Left};
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::Resync;
use mtrr_pat::regs::{MsrAddr, MtrrDefType};
use mtrr_pat::sim::{Config, Machine, SimCpu};
use mtrr_pat::snapshot::Snapshot;

use crate::common::one_cpu::another_map;
use crate::common::wrapped::Wrapped;
use crate::common::{Kernel, policy, with_pat};

/// Who takes nothing but `takes` says, brought in line: its error, and its registers before and after.
fn outcome(takes: impl Fn(MsrAddr, u64) -> u64 + Sync) -> (Error, Snapshot, Snapshot) {
    let mut config = Config::new(2, 1);
    config.aps = another_map();
    let machine = Machine::new(config);
    let before = machine.registers(1);
    let kernel = Kernel::new();
    let error = std::sync::Mutex::new(None);
    machine.run(
        |boot| {
            kernel.init(boot, with_pat(policy(Resync::Early), Pat::LINUX));
            kernel.start(boot, 1).unwrap();
            assert!(kernel.wait_for(boot, 1));
        },
        |ap| {
            let mut cpu = Wrapped {
                cpu: ap,
                read: |cpu: &mut SimCpu<'_>, msr| cpu.rdmsr(msr),
                write: |cpu: &mut SimCpu<'_>, msr, value| unsafe {
                    cpu.wrmsr(msr, takes(msr, value))
                },
            };
            let outcome = kernel.sync.ap_online(&mut cpu, 1, |_| {}).unwrap();
            *error.lock().unwrap() = outcome.error;
            kernel.signal(1);
        },
        |cpu| kernel.interrupt(cpu),
    );
    machine.check().unwrap();
    (
        error.into_inner().unwrap().unwrap(),
        before,
        machine.registers(1),
    )
}

/// A hypervisor that forgets all of DEF_TYPE with E.
#[test]
fn def_type_that_is_forgotten_is_put_back() {
    let forgets = |msr, value| match msr {
        MsrAddr::MTRR_DEF_TYPE if value & MtrrDefType::E == 0 => 0,
        _ => value,
    };
    let (error, before, after) = outcome(forgets);
    assert_eq!(error.left(), Some(Left::RolledBack), "{error}");
    assert_eq!(after, before);
}

/// One that cannot be turned on again.
#[test]
fn def_type_that_stays_forgotten_is_torn() {
    let forgets = |msr, value| match msr {
        MsrAddr::MTRR_DEF_TYPE => 0,
        _ => value,
    };
    let (error, before, after) = outcome(forgets);
    assert!(before.def_type.enabled() && !after.def_type.enabled());
    assert_eq!(error.left(), Some(Left::Torn), "{error}");
}

/// The PAT of a boot CPU which takes a part of what is written.
#[test]
fn a_pat_that_takes_a_part_is_put_back_or_named() {
    for (old_too, left) in [(false, Left::RolledBack), (true, Left::Altered)] {
        let machine = Machine::new(Config::new(1, 1));
        let found = machine.registers(0).pat.unwrap();
        let kernel = Kernel::new();
        let parts = std::cell::Cell::new(false);
        let outcome = machine.run(
            |boot| {
                let mut cpu = Wrapped {
                    cpu: boot,
                    read: |cpu: &mut SimCpu<'_>, msr| cpu.rdmsr(msr),
                    write: |cpu: &mut SimCpu<'_>, msr, value| {
                        let new = msr == MsrAddr::PAT && value == Pat::LINUX.raw();
                        parts.set(parts.get() || new);
                        let part = new || old_too && parts.get() && msr == MsrAddr::PAT;
                        unsafe { cpu.wrmsr(msr, if part { value & !0xff } else { value }) }
                    },
                };
                let policy = with_pat(policy(Resync::Early), Pat::LINUX);
                unsafe { kernel.sync.boot_init(&mut cpu, 0, policy) }.unwrap()
            },
            |_| {},
            |_| {},
        );
        let (msr, value) = (MsrAddr::PAT, Pat::LINUX.raw());
        assert_eq!(
            outcome.error,
            Some(Error::WriteIgnored { msr, value, left })
        );
        let stays = machine.registers(0).pat == Some(found);
        assert_eq!(stays, left == Left::RolledBack);
    }
}

#[test]
fn a_pat_that_cannot_be_read_back_is_not_called_unchanged() {
    let machine = Machine::new(Config::new(1, 1));
    let kernel = Kernel::new();
    let written = std::cell::Cell::new(false);
    let outcome = machine.run(
        |boot| {
            let mut cpu = Wrapped {
                cpu: boot,
                read: |cpu: &mut SimCpu<'_>, msr| match msr {
                    MsrAddr::PAT if written.get() => Err(MsrFault),
                    _ => cpu.rdmsr(msr),
                },
                write: |cpu: &mut SimCpu<'_>, msr, value| {
                    written.set(written.get() || value == Pat::LINUX.raw());
                    unsafe { cpu.wrmsr(msr, value) }
                },
            };
            let policy = with_pat(policy(Resync::Early), Pat::LINUX);
            unsafe { kernel.sync.boot_init(&mut cpu, 0, policy) }.unwrap()
        },
        |_| {},
        |_| {},
    );
    let (msr, left) = (MsrAddr::PAT, Left::Altered);
    assert_eq!(outcome.error, Some(Error::ReadBackFault { msr, left }));
}
