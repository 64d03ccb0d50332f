//! A machine that refuses writes of the PAT, and words that reset left and nobody can write.

use mtrr_pat::delta::Changes;
use mtrr_pat::error::{Error, Left};
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::Resync;
use mtrr_pat::regs::{MsrAddr, MtrrCap, VariableMtrr};
use mtrr_pat::sim::{At, Config, Fault, Machine, What, firmware_map};

use crate::common::{Kernel, aps, assert_all_equal, outcome, policy, with_pat};

/// Whatever the policy asks for, a PAT that another CPU has otherwise is no agreement.
#[test]
fn a_pat_that_cannot_be_written_is_compared() {
    for policy in [
        policy(Resync::Early),
        policy(Resync::Deferred),
        with_pat(policy(Resync::Early), Pat::LOW_HALF_UNTOUCHED),
    ] {
        let mut config = Config::new(3, 1);
        config.aps.pat = Some(Pat::LINUX);
        config.aps.fixed[0] = 0;
        // The boot CPU's write of the same value faults: after DEF_TYPE, the probe and what was there.
        config.faults = (0..3)
            .map(|cpu| Fault::new(cpu, At::Msr(MsrAddr::PAT), What::Ignored))
            .chain([Fault::new(0, At::Wrmsr(4), What::Gp)])
            .collect();
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy) }.unwrap();
            let refused = kernel.sync.platform().unwrap().pat_refused();
            assert_eq!(refused.and_then(|error| error.msr()), Some(MsrAddr::PAT));
            let (_, target) = kernel.sync.target().unwrap();
            assert_eq!(target.pat, firmware_map().pat, "what the boot CPU has");
            assert!(kernel.bring_up(boot, &aps(&machine)).is_empty());
            for _ in 0..2 {
                let summary = kernel.resync(boot).unwrap();
                assert_eq!(summary.ok(), Err(Error::OutOfSync { count: 2 }));
            }
            let failed = outcome(&kernel, 1);
            assert_eq!(failed.error, refused);
            assert_eq!(failed.changes, Changes::PAT);
            assert_eq!(machine.registers(1).fixed, target.fixed, "the MTRRs are");
            let summary = kernel.check(boot).unwrap();
            assert_eq!((summary.differed, summary.out_of_sync), (2, 2));
            let mut other = target;
            other.pat = Some(Pat::LINUX);
            assert_eq!(kernel.change(boot, &other).err(), refused);
            other.pat = target.pat;
            other.fixed[1] = 0;
            let summary = kernel.change(boot, &other).unwrap();
            assert_eq!(
                (summary.epoch, summary.out_of_sync),
                (target_epoch(&kernel), 2)
            );
            assert_eq!(machine.registers(2).fixed, other.fixed);
        });
        machine.check().unwrap();
    }
}

fn target_epoch(kernel: &Kernel) -> u32 {
    kernel.sync.target().unwrap().0
}

/// The boot CPU alone has, in a pair that is not in use, what reset left: no other CPU can be given it.
#[test]
fn words_that_no_write_can_make_are_nobodys_target() {
    for (base, mask) in [
        (u64::MAX << 8 | 3, 0x7ff),
        (2, 0),
        (6, u64::MAX << 12),
        (0x1234_5f06, 0),
    ] {
        let mut config = Config::new(2, 2);
        config.boot.variable[8] = VariableMtrr { base, mask };
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            kernel.init(boot, policy(Resync::Early));
            assert!(kernel.bring_up(boot, &aps(&machine)).is_empty());
            kernel.resync(boot).unwrap().ok().unwrap();
            let (_, target) = kernel.sync.target().unwrap();
            assert_eq!(target.first_invalid(), None);
        });
        assert_all_equal(&machine, "all writable");
        machine.check().unwrap();
    }
}

/// A processor without WC in its MTRRs, and that type in a pair that is not in use: what is there cannot
/// be put back, and the MTRRs are not read-only for that.
#[test]
fn a_probe_that_cannot_be_taken_back_is_no_refusal() {
    let mut config = Config::new(2, 1);
    for map in [&mut config.boot, &mut config.aps] {
        map.cap = map.cap.map(|cap| cap.difference(MtrrCap::WC));
    }
    config.boot.variable[9].base = 0x1234_5001;
    config.aps.fixed[0] = 0;
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Early));
        let refused = kernel.sync.platform().unwrap().mtrr_refused;
        assert_eq!(refused, None);
        kernel.bring_up(boot, &[1]);
        let left = outcome(&kernel, 1).error.and_then(Error::left);
        assert_eq!(left, None::<Left>);
    });
    assert_all_equal(&machine, "in line");
}
