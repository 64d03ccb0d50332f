//! Machines with more, fewer or no memory-type registers, and guests that own no caching.

use crate::common::one_cpu::another_map;
use crate::common::{Kernel, MODES, SCOPES, aps, assert_all_equal, outcome, policy, with_pat};
use mtrr_pat::combine::CombineRule;
use mtrr_pat::compare::SameMap;
use mtrr_pat::cpu::CpuidWords;
use mtrr_pat::delta::Changes;
use mtrr_pat::error::Error;
use mtrr_pat::pat::Pat;
use mtrr_pat::platform::ConfidentialGuest;
use mtrr_pat::policy::{PatFlush, Resync};
use mtrr_pat::regs::{MsrAddr, MtrrCap, MtrrDefType, VariableMtrr};
use mtrr_pat::report::Path;
use mtrr_pat::sim::{
    At, Config, Fault, Machine, MtrrScope, Op, Rule, S3, Scribble, What, firmware_map,
};
use mtrr_pat::snapshot::Snapshot;

fn everywhere(mut test: impl FnMut(Resync, MtrrScope)) {
    for mode in MODES {
        for scope in SCOPES {
            test(mode, scope);
        }
    }
}

/// Boots, sleeps once with everything zeroed, and brings all CPUs in line again.
fn live(config: Config, mode: Resync, scope: MtrrScope) -> (Kernel, Machine) {
    live_through(&S3::all(Scribble::Zeroed), config, mode, scope)
}

/// The same where nobody can bring MTRRs back that are lost: firmware keeps them.
fn live_keeping_mtrrs(config: Config, mode: Resync, scope: MtrrScope) -> (Kernel, Machine) {
    live_through(&S3::all(Scribble::PatReset), config, mode, scope)
}

fn live_through(
    sleep: &S3,
    mut config: Config,
    mode: Resync,
    scope: MtrrScope,
) -> (Kernel, Machine) {
    config.scope = scope;
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let policy = with_pat(policy(mode), Pat::LINUX);
        let _ = unsafe { kernel.sync.boot_init(boot, 0, policy) }.unwrap();
        for round in 0..2 {
            if round > 0 {
                kernel.sleep(boot, sleep);
            }
            assert!(kernel.bring_up(boot, &aps(&machine)).is_empty());
            if mode == Resync::Deferred {
                let _ = kernel.resync(boot).unwrap();
            }
        }
    });
    (kernel, machine)
}

fn with_vcnt(vcnt: u8, fix: bool) -> Config {
    let mut config = Config::new(2, 2);
    for map in [&mut config.boot, &mut config.aps] {
        let fix = if fix { MtrrCap::FIX } else { MtrrCap::empty() };
        map.cap = Some(MtrrCap::from_raw(u64::from(vcnt)) | MtrrCap::WC | fix);
        if !fix.contains(MtrrCap::FIX) {
            map.fixed = [0; 11];
        }
        for pair in map.variable.iter_mut().skip(usize::from(vcnt)) {
            *pair = mtrr_pat::regs::VariableMtrr::default();
        }
    }
    config
}

#[test]
fn any_count_of_pairs_with_and_without_fixed_ranges() {
    everywhere(|mode, scope| {
        for vcnt in [0, 1, 8, 10, 40] {
            for fix in [true, false] {
                let (kernel, machine) = live(with_vcnt(vcnt, fix), mode, scope);
                let why = format!("VCNT {vcnt}, FIX {fix}, {mode:?}, {scope:?}");
                assert_all_equal(&machine, &why);
                assert_eq!(kernel.sync.report().out_of_sync().count(), 0, "{why}");
                let platform = *kernel.sync.platform().unwrap();
                assert_eq!(platform.variable_count(), usize::from(vcnt));
                assert_eq!(platform.has_fixed(), fix);
                machine.check().unwrap();
            }
        }
    });
}

#[test]
fn more_pairs_than_have_addresses_are_an_error_and_the_pat_goes_on() {
    everywhere(|mode, scope| {
        for vcnt in [41, 255] {
            let mut config = Config::new(2, 2);
            for map in [&mut config.boot, &mut config.aps] {
                map.cap = Some(MtrrCap::from_raw(u64::from(vcnt)) | MtrrCap::FIX);
            }
            let (kernel, machine) = live_keeping_mtrrs(config, mode, scope);
            let platform = *kernel.sync.platform().unwrap();
            assert_eq!(platform.mtrr, Err(Error::TooManyVariable { vcnt }));
            assert_only_pat_done(&kernel, &machine);
        }
    });
}

/// Every CPU got the PAT; nobody's MTRRs or CR0.CD were written, no cache was flushed.
fn assert_only_pat_done(kernel: &Kernel, machine: &Machine) {
    for cpu in 0..machine.config().cpus() {
        assert_eq!(machine.registers(cpu).pat, Some(Pat::LINUX));
        for op in machine.writes(cpu) {
            match op {
                Op::Wrmsr(msr, _) => assert_eq!(msr, MsrAddr::PAT.0),
                Op::Cr0(value) => assert_eq!(value & 1 << 30, 0, "CD"),
                _ => {}
            }
        }
        assert_eq!(machine.counters(cpu).windows, 0);
        let outcome = outcome(kernel, cpu);
        assert_eq!((outcome.path, outcome.error), (Path::Pat, None));
    }
    machine.check().unwrap();
}

#[test]
fn without_mtrrs_the_pat_is_done_and_without_either_nothing() {
    everywhere(|mode, scope| {
        let mut config = Config::new(2, 2);
        config.boot.cap = None;
        config.aps.cap = None;
        let (kernel, machine) = live(config.clone(), mode, scope);
        assert_eq!(kernel.sync.platform().unwrap().mtrr, Err(Error::NoMtrr));
        assert_only_pat_done(&kernel, &machine);

        config.boot.pat = None;
        config.aps.pat = None;
        let (kernel, machine) = live(config, mode, scope);
        assert_eq!(kernel.sync.platform().unwrap().pat, Err(Error::NoPat));
        for cpu in 0..4 {
            let counters = machine.counters(cpu);
            assert_eq!(counters.rdmsr + counters.rdmsr_fault + counters.wrmsr, 0);
            let path = outcome(&kernel, cpu).path;
            // After S3 the APs come with caching off.
            assert!(matches!(path, Path::InSync | Path::CachingOn), "{path}");
        }
        machine.check().unwrap();
    });
}

#[test]
fn without_a_pat_the_mtrrs_are_done() {
    everywhere(|mode, scope| {
        let mut config = Config::new(2, 2);
        config.boot.pat = None;
        config.aps.pat = None;
        let (kernel, machine) = live(config, mode, scope);
        assert_eq!(kernel.sync.platform().unwrap().pat, Err(Error::NoPat));
        assert_all_equal(&machine, "no PAT");
        let outcome = outcome(&kernel, 2);
        assert_eq!(outcome.path, Path::Window);
        assert!(!outcome.changes.contains(Changes::PAT));
        machine.check().unwrap();
    });
}

#[test]
fn fixed_ranges_not_in_force_are_still_kept_equal() {
    everywhere(|mode, scope| {
        let mut config = Config::new(2, 2);
        config.boot.def_type = MtrrDefType::from_raw(MtrrDefType::E | 6);
        config.boot.fixed[1] = 0x0505_0505_0505_0505;
        let (_, machine) = live(config, mode, scope);
        assert_all_equal(&machine, "FE=0");
        assert_eq!(machine.registers(3).def_type.raw(), 0x806);
        assert_eq!(machine.registers(3).fixed[1], 0x0505_0505_0505_0505);
        machine.check().unwrap();
    });
}

#[test]
fn a_boot_cpu_with_its_mtrrs_off_is_copied_all_the_same() {
    everywhere(|mode, scope| {
        let mut config = Config::new(2, 2);
        config.boot.def_type = MtrrDefType::from_raw(MtrrDefType::FE | 6);
        let (kernel, machine) = live(config, mode, scope);
        assert_all_equal(&machine, "E=0");
        assert_eq!(kernel.sync.report().out_of_sync().count(), 0);
        assert_eq!(kernel.sync.online(), 4);
        // All memory is uncachable on every CPU for good: counting itself online costs a bus lock.
        for violation in machine.violations() {
            assert_eq!(violation.rule, Rule::LockedWithMtrrsOff, "{violation}");
        }
    });
}

#[test]
fn an_ap_with_too_few_pairs_gets_its_pat_and_is_named() {
    everywhere(|mode, scope| {
        for vcnt in [0, 2] {
            let mut config = Config::new(3, 1);
            config.vcnt = vec![(1, vcnt)];
            config.aps = another_map();
            config.aps.pat = Some(Pat::POWER_ON);
            let (kernel, machine) = live(config, mode, scope);
            let error = outcome(&kernel, 1).error;
            let cap = 0xd00 | u64::from(vcnt);
            assert_eq!(error, Some(Error::CapDiffers { cap }), "{mode:?} {scope:?}");
            assert_eq!(machine.registers(1).pat, Some(Pat::LINUX));
            assert_eq!(machine.counters(1).windows, 0);
            let (have, want) = (machine.registers(2), machine.registers(0));
            assert_eq!(have, want, "an AP's failure is its own");
            let off: Vec<usize> = kernel.sync.report().out_of_sync().map(|c| c.cpu).collect();
            assert_eq!(off, [1]);
            machine.check().unwrap();
        }
    });
}

/// As cores of two kinds have them: the target needs three pairs.
#[test]
fn an_ap_with_pairs_enough_is_brought_in_line_and_does_not_use_the_others() {
    everywhere(|mode, scope| {
        for vcnt in [3, 8, 12, 40] {
            let mut config = Config::new(3, 1);
            config.vcnt = vec![(1, vcnt)];
            config.aps = another_map();
            let count = usize::from(vcnt);
            for (n, pair) in config.aps.variable[..count].iter_mut().enumerate().skip(10) {
                *pair = VariableMtrr {
                    base: 0x4000_0000 * n as u64,
                    mask: 0x7f_f000_0800,
                };
            }
            let (kernel, machine) = live(config, mode, scope);
            let had = outcome(&kernel, 1);
            assert_eq!((had.path, had.error), (Path::Window, None), "VCNT {vcnt}");
            let (have, want) = (machine.registers(1), machine.registers(0));
            assert_eq!(have.variable_count(), count);
            assert_eq!(have.variable[..count], want.variable[..count]);
            let map = (have.def_type, have.fixed, have.pat);
            assert_eq!(map, (want.def_type, want.fixed, want.pat));
            assert_eq!(have.same_map(&want), SameMap::Same);
            assert_eq!(kernel.sync.report().out_of_sync().count(), 0);
            assert_eq!(kernel.sync.online(), 3);
            machine.check().unwrap();
        }
    });
}

fn guest(tdx: bool) -> Config {
    if tdx {
        return Config::new(2, 2).with_tme(6).tdx_guest();
    }
    let mut config = Config::amd(2, 2).snp_guest();
    // SME and SEV exist.
    let words = CpuidWords {
        eax: 0b11,
        ebx: 5 << 6 | 47,
        ..CpuidWords::default()
    };
    config.cpuid.push((None, 0x8000_001f, 0, words));
    config
}

#[test]
fn confidential_guests_use_the_pat_alone_and_never_touch_caches() {
    everywhere(|mode, scope| {
        for (tdx, kind) in [
            (true, ConfidentialGuest::Tdx),
            (false, ConfidentialGuest::Snp),
        ] {
            let mut config = guest(tdx);
            config.scope = scope;
            config.aps = Snapshot {
                syscfg: config.boot.syscfg,
                top_mem2: config.boot.top_mem2,
                ..another_map()
            };
            config.aps.pat = Some(Pat::POWER_ON);
            let machine = Machine::new(config);
            let kernel = Kernel::new();
            kernel.run(&machine, |boot| {
                // Slot 1 loses its cacheable type, which elsewhere flushes caches.
                let policy = with_pat(policy(mode), Pat::LINUX);
                assert_eq!(policy.pat_flush, PatFlush::WhenUncached);
                let _ = unsafe { kernel.sync.boot_init(boot, 0, policy) }.unwrap();
                assert!(kernel.bring_up(boot, &aps(&machine)).is_empty());
                if mode == Resync::Deferred {
                    let _ = kernel.resync(boot).unwrap();
                }
            });
            let platform = *kernel.sync.platform().unwrap();
            assert_eq!(
                (platform.guest, platform.mtrr),
                (Some(kind), Err(Error::NoMtrr))
            );
            let rule = if tdx {
                CombineRule::Intel
            } else {
                CombineRule::Amd
            };
            assert_eq!(platform.rule, rule, "though SYSCFG is not to be had");
            assert_only_pat_done(&kernel, &machine);
            for cpu in 0..4 {
                let counters = machine.counters(cpu);
                assert_eq!((counters.wbinvd, counters.cr0_writes), (0, 0));
                let tme = |op: &Op| matches!(op, Op::Rdmsr(0x982, _));
                assert!(!machine.ops(cpu).iter().any(tme), "it may not exist");
            }
        }
    });
}

#[test]
fn what_the_boot_cpu_cannot_do_is_found_out_once() {
    everywhere(|mode, scope| {
        for (msr, what) in [(MsrAddr::MTRRCAP, "read"), (MsrAddr::MTRR_DEF_TYPE, "read")] {
            let mut config = Config::new(2, 1);
            config.faults = vec![Fault::new(0, At::Msr(msr), What::Gp)];
            let (kernel, machine) = live_keeping_mtrrs(config, mode, scope);
            let platform = *kernel.sync.platform().unwrap();
            assert_eq!(platform.mtrr, Err(Error::ReadFault { msr }), "{what}");
            assert_only_pat_done(&kernel, &machine);
            assert_eq!(machine.counters(1).rdmsr_fault, 0, "no AP tries again");
        }
        // The probe writes DEF_TYPE first, then an unused pair and back, then the PAT.
        let mut config = Config::new(2, 1);
        config.faults = vec![Fault::new(0, At::Wrmsr(1), What::Gp).in_round(0)];
        let (kernel, machine) = live_keeping_mtrrs(config, mode, scope);
        let platform = *kernel.sync.platform().unwrap();
        assert!(
            matches!(platform.mtrr_refused, Some(Error::WriteFault { msr, .. }) if msr == MsrAddr::MTRR_DEF_TYPE)
        );
        // What can be read is known all the same.
        assert_eq!(kernel.sync.target().unwrap().1, machine.registers(0));
        assert_only_pat_done(&kernel, &machine);

        let mut config = Config::new(2, 1);
        config.faults = vec![Fault::new(0, At::Wrmsr(4), What::Gp).in_round(0)];
        let (kernel, machine) = live(config, mode, scope);
        let refused = kernel.sync.platform().unwrap().pat;
        assert!(matches!(refused, Err(Error::WriteFault { msr, .. }) if msr == MsrAddr::PAT));
        let pat = |op: &Op| matches!(op, Op::Wrmsr(0x277, _));
        assert!(!machine.ops(1).iter().any(pat), "no AP tries again");
        machine.check().unwrap();
    });
}

/// The PAT takes the value it has, not the one the policy wants: found out once, too.
#[test]
fn a_pat_that_takes_no_other_layout_is_nobodys_target() {
    everywhere(|mode, scope| {
        let mut config = Config::new(2, 1);
        config.scope = scope;
        // The probe writes the PAT fourth; the fifth write is the layout.
        config.faults = vec![Fault::new(0, At::Wrmsr(5), What::Gp).in_round(0)];
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let wanted = crate::common::with_pat(policy(mode), mtrr_pat::pat::Pat::LINUX);
            let outcome = unsafe { kernel.sync.boot_init(boot, 0, wanted) }.unwrap();
            let refused = outcome.error;
            let value = mtrr_pat::pat::Pat::LINUX.raw();
            assert!(
                matches!(refused, Some(Error::WriteFault { msr: MsrAddr::PAT, value: v, .. }) if v == value)
            );
            assert_eq!(kernel.sync.platform().unwrap().pat.err(), refused);
            assert_eq!(kernel.sync.target().unwrap().1.pat, firmware_map().pat);
            assert_eq!(kernel.sync.online(), 1, "the boot CPU has the rest");
            assert!(kernel.bring_up(boot, &[1]).is_empty());
            kernel.resync(boot).unwrap().ok().unwrap();
        });
        let pat = |op: &Op| matches!(op, Op::Wrmsr(0x277, _));
        assert!(!machine.ops(1).iter().any(pat), "no AP tries again");
        machine.check().unwrap();
    });
}

/// A hypervisor that takes writes of MTRRs for nothing: the unused pair on the boot CPU shows it. CPUs
/// that differ, with E=0 too, are not in line, and none opens a window to find that out.
#[test]
fn a_machine_that_ignores_writes_is_found_out_once() {
    everywhere(|mode, scope| {
        for aps in [firmware_map(), another_map(), {
            let mut off = firmware_map();
            off.def_type = off.def_type.disabled();
            off
        }] {
            let mut config = Config::new(2, 1);
            config.scope = scope;
            config.aps = aps;
            let ignored = (0x200..0x214).chain([0x2ff]).chain(0x250..0x270);
            config.faults = (0..2)
                .flat_map(|cpu| ignored.clone().map(move |msr| (cpu, msr)))
                .map(|(cpu, msr)| Fault::new(cpu, At::Msr(MsrAddr(msr)), What::Ignored))
                .collect();
            let machine = Machine::new(config);
            let kernel = Kernel::new();
            kernel.run(&machine, |boot| {
                kernel.init(boot, policy(mode));
                let refused = kernel.sync.platform().unwrap().mtrr_refused;
                assert!(
                    matches!(refused, Some(Error::WriteIgnored { .. })),
                    "{refused:?}"
                );
                assert!(kernel.bring_up(boot, &[1]).is_empty());
                let summary = kernel.resync(boot).unwrap();
                let differs = aps != firmware_map();
                assert_eq!(summary.out_of_sync, u32::from(differs));
                let had = kernel.sync.report().cpus().nth(1).unwrap().outcome.unwrap();
                assert_eq!(had.error, refused.filter(|_| differs));
            });
            assert_eq!(machine.counters(1).wrmsr_ignored, 0, "nobody tries again");
            assert_eq!(machine.counters(1).windows, 0);
            machine.check().unwrap();
        }
    });
}

#[test]
fn a_boot_cpu_that_cannot_read_a_register_it_has_is_not_initialised() {
    for msr in [MsrAddr::phys_base(3), MsrAddr(0x26f)] {
        let mut config = Config::new(2, 1);
        config.faults = vec![Fault::new(0, At::Msr(msr), What::Gp)];
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let failed = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) };
            assert_eq!(failed, Err(Error::ReadFault { msr }));
            assert_eq!(kernel.start(boot, 1), Err(Error::NotInitialised));
            assert_eq!(kernel.resync(boot), Err(Error::NotInitialised));
            assert_eq!(machine.registers(0), firmware_map());
        });
        machine.check().unwrap();
    }
}
