//! Pairs that are not in use, on hardware that does not take them: the map is brought in line all the
//! same, nothing is put back for their sake, and the outcome says so.

use crate::common::one_cpu::another_map;
use crate::common::{Kernel, MODES, SCOPES, outcome, policy};
use mtrr_pat::error::{Error, Left};
use mtrr_pat::policy::Resync;
use mtrr_pat::regs::{MsrAddr, VariableMtrr};
use mtrr_pat::report::{Outcome, Path};
use mtrr_pat::sim::{At, Config, Fault, Machine, MtrrScope, Scribble, What, firmware_map};
use mtrr_pat::snapshot::Snapshot;

const UNUSED: usize = 9;

/// A pair with V clear, and not what the target has there.
fn with_junk(mut map: Snapshot) -> Snapshot {
    assert!(!firmware_map().variable[UNUSED].valid());
    map.variable[UNUSED] = VariableMtrr {
        base: 0x1234_5006,
        mask: 0,
    };
    map
}

/// Brings AP 1 up, which holds `have`, with these faults.
fn bring_up(
    how: (Resync, MtrrScope),
    have: Snapshot,
    faults: &[(At, What)],
) -> (Outcome, Snapshot) {
    bring_up_and_meet(how, have, faults, 0)
}

/// The same, and so many rendezvous more.
fn bring_up_and_meet(
    (mode, scope): (Resync, MtrrScope),
    have: Snapshot,
    faults: &[(At, What)],
    resyncs: usize,
) -> (Outcome, Snapshot) {
    let mut config = Config::new(2, 1);
    config.scope = scope;
    config.aps = have;
    let fault = |(at, what): &(At, What)| Fault::new(1, *at, what.clone());
    config.faults = faults.iter().map(fault).collect();
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(mode)) }.unwrap();
        assert!(kernel.bring_up(boot, &[1]).is_empty());
        if mode == Resync::Deferred {
            let _ = kernel.resync(boot).unwrap();
        }
        for _ in 0..resyncs {
            let _ = kernel.resync(boot).unwrap();
        }
    });
    machine.check().unwrap();
    (outcome(&kernel, 1), machine.registers(1))
}

fn everywhere(mut test: impl FnMut((Resync, MtrrScope))) {
    for mode in MODES {
        for scope in SCOPES {
            test((mode, scope));
        }
    }
}

#[test]
fn a_write_that_is_ignored_leaves_the_right_map() {
    everywhere(|how| {
        for have in [with_junk(another_map()), with_junk(firmware_map())] {
            let msr = MsrAddr::phys_base(UNUSED);
            let (outcome, registers) = bring_up(how, have, &[(At::Msr(msr), What::Ignored)]);
            let error = Error::WriteIgnored {
                msr,
                value: firmware_map().variable[UNUSED].base,
                left: Left::UnusedPairs,
            };
            assert_eq!(outcome.error, Some(error), "{how:?}");
            assert_eq!(registers, with_junk(firmware_map()), "{how:?}");
        }
    });
}

#[test]
fn a_write_that_faults_leaves_the_right_map() {
    everywhere(|how| {
        for have in [with_junk(another_map()), with_junk(firmware_map())] {
            let (outcome, registers) = bring_up(how, have, &[(At::Wrmsr(1), What::Gp)]);
            let error = Error::WriteFault {
                msr: MsrAddr::phys_base(UNUSED),
                value: firmware_map().variable[UNUSED].base,
                left: Left::UnusedPairs,
            };
            assert_eq!(outcome.error, Some(error), "{how:?}");
            assert_eq!(registers, with_junk(firmware_map()), "{how:?}");
        }
    });
}

/// Firmware changes a register outside the plan in the window: the map is not right, whatever else
/// there is to complain of. The next rendezvous makes it so, and then the pair is all.
#[test]
fn a_map_that_was_altered_meanwhile_is_not_called_right() {
    everywhere(|how| {
        let mut have = with_junk(firmware_map());
        have.fixed[0] = 0;
        let first = MsrAddr::phys_base(0);
        let smm = Scribble::custom(|_, registers| registers.variable[0].base ^= 0x1_0000_0000);
        let faults = [
            (At::Msr(MsrAddr::phys_base(UNUSED)), What::Ignored),
            (At::WindowEntry(1), What::Smm(smm)),
        ];
        for (resyncs, expected) in [
            (0, (first, Left::Altered)),
            (1, (MsrAddr::phys_base(UNUSED), Left::UnusedPairs)),
        ] {
            let (outcome, registers) = bring_up_and_meet(how, have, &faults, resyncs);
            let right = registers == with_junk(firmware_map());
            assert_eq!(right, resyncs > 0, "{how:?}");
            let Some(Error::WriteIgnored { msr, left, .. }) = outcome.error else {
                panic!("{outcome}");
            };
            assert_eq!((msr, left), expected, "{how:?}");
            assert_eq!(outcome.path, Path::Failed);
        }
    });
}
