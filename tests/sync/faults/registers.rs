//! Registers that refuse, ignore or change: the old map whole, the new one whole, or E=0.

use crate::common::one_cpu::another_map;
use crate::common::wrapped::Wrapped;
use crate::common::{Kernel, MODES, SCOPES, assert_cpu, outcome, policy};
use mtrr_pat::compare::SameMap;
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CpuOps, MsrFault};
use mtrr_pat::error::{Error, Left};
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::Resync;
use mtrr_pat::ranges::FIXED_RANGES;
use mtrr_pat::regs::{MsrAddr, MtrrDefType, VariableMtrr};
use mtrr_pat::report::{Outcome, Path};
use mtrr_pat::sim::{
    At, Config, Fault, Machine, MtrrScope, Rule, Scribble, SimCpu, Violation, What, firmware_map,
};
use mtrr_pat::snapshot::Snapshot;
use std::cell::Cell;

/// What became of AP 1, the only one.
#[derive(Debug)]
struct Ended {
    outcome: Outcome,
    registers: Snapshot,
    /// Of the whole life.
    violations: Vec<Violation>,
    /// WRMSR that had no effect, in the whole life.
    ignored: u64,
}

/// Brings AP 1 up, which holds `another_map`, with these faults.
fn bring_up(mode: Resync, scope: MtrrScope, faults: &[(At, What)]) -> Ended {
    let ended = try_bring_up(mode, scope, faults);
    assert!(ended.violations.is_empty(), "{:?}", ended.violations);
    ended.assert_whole_or_off(&[]);
    ended
}

fn try_bring_up(mode: Resync, scope: MtrrScope, faults: &[(At, What)]) -> Ended {
    live(mode, scope, faults, 0).1
}

/// An AP that differs in one register, after so many rendezvous more.
fn one_differs_then(
    mode: Resync,
    scope: MtrrScope,
    faults: &[(At, What)],
    resyncs: usize,
) -> Ended {
    let mut aps = firmware_map();
    aps.fixed[1] = 0;
    live_with(aps, mode, scope, faults, resyncs).1
}

/// Brings AP 1 up, and leads so many rendezvous more: what became of it at first, and in the end.
fn live(mode: Resync, scope: MtrrScope, faults: &[(At, What)], resyncs: usize) -> (Ended, Ended) {
    live_with(another_map(), mode, scope, faults, resyncs)
}

fn live_with(
    aps: Snapshot,
    mode: Resync,
    scope: MtrrScope,
    faults: &[(At, What)],
    resyncs: usize,
) -> (Ended, Ended) {
    let mut config = Config::new(2, 1);
    config.scope = scope;
    config.aps = aps;
    let fault = |(at, what): &(At, What)| Fault::new(1, *at, what.clone());
    config.faults = faults.iter().map(fault).collect();
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    let (first, last) = kernel.run(&machine, |boot| {
        let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
        assert!(kernel.bring_up(boot, &[1]).is_empty());
        if mode == Resync::Deferred {
            let _ = kernel.resync(boot).unwrap();
        }
        let now = || (outcome(&kernel, 1), machine.registers(1));
        let first = now();
        for _ in 0..resyncs {
            let _ = kernel.resync(boot).unwrap();
        }
        (first, now())
    });
    assert_cpu(&machine, 0, &firmware_map(), "the boot CPU");
    let cr0 = machine.control_registers(1).0;
    let off = cr0 & (CR0_CD | CR0_NW);
    assert_eq!(off, 0, "caching is on, whatever happened");
    assert!(machine.stale_entries(1).is_empty());
    let ended = |(outcome, registers)| Ended {
        outcome,
        registers,
        violations: machine.violations(),
        ignored: machine.counters(1).wrmsr_ignored,
    };
    (ended(first), ended(last))
}

fn mtrrs(of: &Snapshot) -> (MtrrDefType, &[VariableMtrr], [u64; 11]) {
    (of.def_type, of.variable_ranges(), of.fixed)
}

impl Ended {
    /// The old map, the new map, one of those firmware wrote meanwhile, or none in force: never a
    /// mixture.
    fn assert_whole_or_off(&self, written_by_smm: &[Snapshot]) {
        let have = mtrrs(&self.registers);
        let off = !self.registers.def_type.enabled();
        let new = have == mtrrs(&firmware_map());
        let same = self.registers.same_map(&firmware_map()) == SameMap::Same;
        let old = have == mtrrs(&another_map());
        let smm = written_by_smm.iter().any(|map| mtrrs(map) == have);
        let altered = self.left() == Some(Left::Altered);
        assert!(
            new || same || old || smm || off || altered,
            "a partial map in force: {self:?}"
        );
        match self.outcome.error {
            None => assert_eq!(self.registers, firmware_map(), "{}", self.outcome),
            Some(Error::WriteFault { left, .. } | Error::WriteIgnored { left, .. }) => match left {
                Left::Torn => assert!(off, "{}", self.outcome),
                Left::RolledBack | Left::Unchanged => assert!(old || smm, "{}", self.outcome),
                Left::UnusedPairs => assert!(same, "{}", self.outcome),
                Left::Altered => {
                    assert!(!written_by_smm.is_empty(), "{}", self.outcome);
                    assert!(!new, "{}", self.outcome);
                }
            },
            Some(error) => assert!(matches!(error, Error::ReadFault { .. }), "{error}"),
        }
    }

    /// The register that did not take its value, and what was left then.
    fn ignored_write(&self) -> Option<(MsrAddr, Left)> {
        match self.outcome.error {
            Some(Error::WriteIgnored { msr, left, .. }) => Some((msr, left)),
            _ => None,
        }
    }

    fn left(&self) -> Option<Left> {
        match self.outcome.error {
            Some(Error::WriteFault { left, .. } | Error::WriteIgnored { left, .. }) => Some(left),
            _ => None,
        }
    }
}

fn everywhere(mut test: impl FnMut(Resync, MtrrScope)) {
    for mode in MODES {
        for scope in SCOPES {
            test(mode, scope);
        }
    }
}

/// The registers that differ between the two maps, in the order they are written.
fn registers_written() -> Vec<MsrAddr> {
    let fixed = FIXED_RANGES.iter().map(|range| range.msr);
    let pairs = (0..10).flat_map(|n| [MsrAddr::phys_base(n), MsrAddr::phys_mask(n)]);
    fixed.chain(pairs).chain([MsrAddr::PAT]).collect()
}

#[test]
fn a_fault_on_write_k_is_rolled_back_for_every_k() {
    everywhere(|mode, scope| {
        for k in 1..=35 {
            let ended = bring_up(mode, scope, &[(At::Wrmsr(k), What::Gp)]);
            let expected = match k {
                1 => Some(Left::Unchanged),
                2..=34 => Some(Left::RolledBack),
                _ => None,
            };
            assert_eq!(ended.left(), expected, "write {k}: {}", ended.outcome);
            let msr = match k {
                1 | 34 => MsrAddr::MTRR_DEF_TYPE,
                35 => continue,
                _ => registers_written()[k as usize - 2],
            };
            let Some(Error::WriteFault { msr: named, .. }) = ended.outcome.error else {
                panic!("{}", ended.outcome);
            };
            assert_eq!((named, ended.outcome.path), (msr, Path::Failed));
        }
    });
}

#[test]
fn a_write_ignored_once_is_rolled_back_and_put_right_by_the_next_resync_for_every_k() {
    everywhere(|mode, scope| {
        for k in 1..=35 {
            let (first, last) = live(mode, scope, &[(At::Wrmsr(k), What::Ignored)], 1);
            first.assert_whole_or_off(&[]);
            assert!(last.violations.is_empty(), "{:?}", last.violations);
            assert_eq!(last.ignored, u64::from(k <= 34), "write {k}");
            let msr = match k {
                1 | 34 => Some(MsrAddr::MTRR_DEF_TYPE),
                35 => None,
                _ => Some(registers_written()[k as usize - 2]),
            };
            let left = match k {
                1 => Left::Unchanged,
                _ => Left::RolledBack,
            };
            assert_eq!(first.ignored_write(), msr.map(|msr| (msr, left)), "{k}");
            last.assert_whole_or_off(&[]);
            assert_eq!(last.outcome.error, None, "write {k}");
            assert_eq!(last.outcome.path, Path::Window);
        }
    });
}

#[test]
fn a_register_that_ignores_every_write_is_named_and_the_old_map_put_back() {
    everywhere(|mode, scope| {
        for msr in registers_written() {
            for resyncs in [0, 2] {
                let (_, ended) = live(mode, scope, &[(At::Msr(msr), What::Ignored)], resyncs);
                ended.assert_whole_or_off(&[]);
                let expected = Some((msr, Left::RolledBack));
                assert_eq!(ended.ignored_write(), expected, "{}", ended.outcome);
            }
        }
        for faults in [
            (At::Msr(MsrAddr::MTRR_DEF_TYPE), What::Ignored),
            (At::EveryWrmsr, What::Ignored),
        ] {
            let ended = bring_up(mode, scope, &[faults]);
            assert_eq!(ended.left(), Some(Left::Unchanged), "{}", ended.outcome);
        }
    });
}

#[test]
fn a_fault_on_every_write_changes_nothing() {
    everywhere(|mode, scope| {
        let ended = bring_up(mode, scope, &[(At::EveryWrmsr, What::Gp)]);
        assert_eq!(ended.left(), Some(Left::Unchanged));
        assert_eq!(ended.registers, another_map());
    });
}

#[test]
fn a_rollback_that_fails_too_leaves_the_mtrrs_off() {
    everywhere(|mode, scope| {
        let mut torn = 0;
        for k in 3..=34 {
            // The rollback clears E (k + 1), then puts registers back in order, then DEF_TYPE.
            for later in [k + 2, 2 * k] {
                let faults = [(At::Wrmsr(k), What::Gp), (At::Wrmsr(later), What::Gp)];
                let ended = bring_up(mode, scope, &faults);
                assert!(ended.left().is_some(), "{}", ended.outcome);
                torn += u32::from(ended.left() == Some(Left::Torn));
            }
        }
        assert_eq!(torn, 2 * 32, "each of them hits a write of the rollback");
    });
}

#[test]
fn any_two_faults_leave_no_mixture_in_force() {
    // `bring_up` checks that; which pairs, the dice say.
    let mut dice = 1_u64;
    for round in 0..400 {
        dice = dice
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(99);
        let (a, b) = ((dice >> 33) % 36 + 1, (dice >> 45) % 72 + 1);
        let what = |bit: u64| {
            if dice >> bit & 1 == 0 {
                What::Gp
            } else {
                What::Ignored
            }
        };
        let faults = [(At::Wrmsr(a), what(20)), (At::Wrmsr(b), what(21))];
        bring_up(MODES[round % 2], SCOPES[round / 2 % 2], &faults);
    }
}

#[test]
fn smm_that_rewrites_the_map_before_or_in_the_window_is_reported_and_outdone_next() {
    let mut range_added = another_map();
    range_added.variable[9] = VariableMtrr::default();
    let mut half_old = firmware_map();
    half_old.variable[9] = another_map().variable[9];
    let mut off = another_map();
    off.def_type = off.def_type.disabled();
    let mut told = 0;
    everywhere(|mode, scope| {
        for map in [range_added, half_old, off, firmware_map()] {
            let smm = What::Smm(Scribble::custom(move |_, registers| *registers = map));
            // Every register differs, so all of what it wrote is written over.
            let ended = bring_up(mode, scope, &[(At::WindowEntry(1), smm.clone())]);
            assert_eq!(ended.outcome.error, None, "{}", ended.outcome);
            // In every window, anywhere from the clear of E to its end; then in the first one only.
            let anywhere = (1..=80).map(|k| (At::InWindow(k), false));
            for (at, once) in anywhere.chain((1..=34).map(|k| (At::Wrmsr(k), true))) {
                let (first, last) = live(mode, scope, &[(at, smm.clone())], 1);
                first.assert_whole_or_off(&[map]);
                last.assert_whole_or_off(&[map]);
                told += u32::from(once && first.outcome.error.is_some());
                if once {
                    assert_eq!(last.outcome.error, None, "{at:?}: {}", last.outcome);
                }
                // SMM may set E between two writes: nobody can prevent that.
                for violation in &last.violations {
                    assert_eq!(violation.rule, Rule::MtrrWriteOutsideWindow);
                }
            }
        }
    });
    assert!(told > 0, "no case was the one meant");
}

/// One register differs; SMM changes another one at each entry, outside the plan, so what is in force
/// afterwards is a map that nobody ever wanted: it is said each time, until SMM leaves it alone.
#[test]
fn smm_that_does_so_every_time_is_told_every_time() {
    everywhere(|mode, scope| {
        let entries = 4;
        let spoilt = |k: u64| 3 + k as usize % 4;
        let faults: Vec<(At, What)> = (1..=entries)
            .map(|k| {
                let scribble = Scribble::custom(move |_, map| {
                    *map = firmware_map();
                    map.fixed[spoilt(k)] = 0x0404_0404_0404_0404;
                });
                (At::WindowEntry(k), What::Smm(scribble))
            })
            .collect();
        for k in 1..=entries + 1 {
            let ended = one_differs_then(mode, scope, &faults, k as usize - 1);
            let told = FIXED_RANGES[spoilt(k)].msr;
            let expected = (k <= entries).then_some((told, Left::Altered));
            assert_eq!(ended.ignored_write(), expected, "{}", ended.outcome);
            let whole = ended.registers == firmware_map();
            assert_eq!(whole, expected.is_none(), "{}", ended.outcome);
        }
    });
}

#[test]
fn a_register_an_ap_cannot_read_costs_it_its_mtrrs_but_not_its_pat() {
    everywhere(|mode, scope| {
        for msr in [
            MsrAddr::MTRRCAP,
            MsrAddr::MTRR_DEF_TYPE,
            MsrAddr::phys_base(0),
            MsrAddr::phys_mask(9),
            MsrAddr(0x250),
            MsrAddr(0x26f),
        ] {
            let ended = bring_up(mode, scope, &[(At::Msr(msr), What::Gp)]);
            assert_eq!(ended.outcome.error, Some(Error::ReadFault { msr }));
            let mut expected = another_map();
            expected.pat = firmware_map().pat;
            assert_eq!(ended.registers, expected, "{msr}");
        }
        let msr = MsrAddr::PAT;
        let ended = bring_up(mode, scope, &[(At::Msr(msr), What::Gp)]);
        assert_eq!(ended.outcome.error, Some(Error::ReadFault { msr }));
        assert_eq!(ended.registers, another_map(), "nothing was changed");
    });
}

/// An AP whose registers hold what WRMSR refuses: junk no firmware can have written, but a
/// hypervisor may show.
fn with_junk(scope: MtrrScope, def_type: u64, faults: &[(At, What)]) -> (Outcome, Snapshot) {
    let mut config = Config::new(2, 1);
    config.scope = scope;
    config.aps.fixed[0] = 0x0202_0202_0202_0202;
    config.aps.variable[4].base = 0x0300_0000_0000_0003;
    config.aps.variable[4].mask = 0x8000_0000_0000_0800;
    config.aps.def_type = MtrrDefType::from_raw(def_type);
    config.aps.pat = Some(Pat::from_raw(0x0203_0203_0203_0203));
    let fault = |(at, what): &(At, What)| Fault::new(1, *at, what.clone());
    config.faults = faults.iter().map(fault).collect();
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let init = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) };
        let _ = init.unwrap();
        kernel.bring_up(boot, &[1]);
    });
    machine.check().unwrap();
    (outcome(&kernel, 1), machine.registers(1))
}

#[test]
fn reserved_types_and_bits_are_replaced_and_cannot_be_put_back() {
    for scope in SCOPES {
        let (outcome, registers) = with_junk(scope, 0xc00, &[]);
        assert_eq!((outcome.error, registers), (None, firmware_map()));
        // The fourth write is of the mask: everything before it would have to be undone.
        let (outcome, registers) = with_junk(scope, 0xc00, &[(At::Wrmsr(4), What::Gp)]);
        let Some(Error::WriteFault { left, .. }) = outcome.error else {
            panic!("{outcome}");
        };
        assert_eq!(left, Left::Torn);
        assert!(!registers.def_type.enabled());
        // Clearing E keeps the other bits of DEF_TYPE, and these are refused.
        for junk in [0xf000_0c00, 0xc07, 0xc02] {
            let (outcome, registers) = with_junk(scope, junk, &[]);
            let Some(Error::WriteFault { msr, left, .. }) = outcome.error else {
                panic!("{outcome}");
            };
            assert_eq!((msr, left), (MsrAddr::MTRR_DEF_TYPE, Left::Unchanged));
            assert_eq!(registers.def_type.raw(), junk);
        }
    }
}

/// E is ignored, so nothing can be put back either; then registers cannot be read any more, or none at
/// all: that the map is off matters more.
#[test]
fn a_map_that_cannot_be_put_back_is_torn_whatever_cannot_be_read_then() {
    let enables =
        |msr, value| msr == MsrAddr::MTRR_DEF_TYPE && MtrrDefType::from_raw(value).enabled();
    for pat_too in [false, true] {
        let mut config = Config::new(2, 1);
        config.aps = another_map();
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        machine.run(
            |boot| {
                kernel.init(boot, policy(Resync::Early));
                assert!(kernel.bring_up(boot, &[1]).is_empty());
            },
            |ap| {
                let ignored = Cell::new(0);
                let cpu = &mut Wrapped {
                    cpu: ap,
                    read: |cpu: &mut SimCpu<'_>, msr| match ignored.get() {
                        0..2 => cpu.rdmsr(msr),
                        // Once it was written, and once it was put back; then E is seen to be clear.
                        _ if msr == MsrAddr::MTRR_DEF_TYPE => cpu.rdmsr(msr),
                        _ if msr == MsrAddr::PAT && !pat_too => cpu.rdmsr(msr),
                        _ => Err(MsrFault),
                    },
                    write: |cpu: &mut SimCpu<'_>, msr, value| {
                        if enables(msr, value) {
                            ignored.set(ignored.get() + 1);
                            return Ok(());
                        }
                        unsafe { cpu.wrmsr(msr, value) }
                    },
                };
                let outcome = kernel.sync.ap_online(cpu, 1, |_| {}).unwrap();
                let left = match outcome.error {
                    Some(Error::WriteIgnored { left, .. }) => Some(left),
                    _ => None,
                };
                assert_eq!(left, Some(Left::Torn), "{outcome}");
                assert!(ignored.get() >= 2);
                kernel.signal(1);
            },
            |_| {},
        );
        assert!(!machine.registers(1).def_type.enabled());
    }
}
