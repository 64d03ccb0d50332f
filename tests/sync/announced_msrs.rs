//! Machines on which an access of a register nobody announced would be the end: a whole life of the
//! library on each, with a CPU whose faults nobody catches.

use crate::common::{Kernel, MODES, SCOPES, aps, assert_all_equal, policy, with_pat};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::{AmdFixed, Resync};
use mtrr_pat::regs::{MsrAddr, MtrrCap, SysCfg};
use mtrr_pat::sim::{Config, Machine, MtrrScope, Rule, S3, Scribble};

/// SYSCFG of an AMD machine without these bits.
fn amd_without(bits: SysCfg) -> Config {
    let mut config = Config::amd(2, 2);
    for map in [&mut config.boot, &mut config.aps] {
        map.syscfg = map.syscfg.map(|syscfg| syscfg - bits);
    }
    config
}

fn with_cap(mut config: Config, cap: Option<u64>) -> Config {
    for map in [&mut config.boot, &mut config.aps] {
        map.cap = cap.map(MtrrCap::from_raw);
        let there = map.variable_count();
        for pair in map.variable.iter_mut().skip(there) {
            *pair = Default::default();
        }
        if !map.has_fixed() {
            map.fixed = [0; 11];
        }
    }
    config
}

fn guest(mut config: Config) -> Config {
    config.hypervisor = true;
    config
}

fn without_pat(mut config: Config) -> Config {
    (config.boot.pat, config.aps.pat) = (None, None);
    config
}

/// Every vendor, bare and as a guest, and what a processor may lack.
fn machines() -> Vec<(&'static str, Config)> {
    let sme = |mut config: Config| {
        config.encryption_bits = 5;
        config
    };
    let tom2 = SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB;
    vec![
        ("Intel", Config::new(2, 2)),
        (
            "Intel with memory encryption",
            Config::new(2, 2).with_tme(6),
        ),
        ("Intel guest", Config::kvm_intel(2, 2)),
        (
            "guest that sees the host's TME",
            guest(Config::new(2, 2).with_tme(6)),
        ),
        ("TDX guest", Config::new(2, 2).with_tme(6).tdx_guest()),
        ("AMD", Config::amd(2, 2)),
        ("AMD without TOP_MEM2", amd_without(tom2)),
        ("AMD without TOP_MEM", amd_without(SysCfg::MTRR_VAR_DRAM_EN)),
        ("AMD, SYSCFG 0", amd_without(SysCfg::all())),
        ("AMD with memory encryption", sme(Config::amd(2, 2))),
        ("AMD guest", Config::kvm_amd(2, 2)),
        (
            "guest that sees the host's SYSCFG",
            guest(Config::amd(2, 2)),
        ),
        ("SNP guest", Config::amd(2, 2).snp_guest()),
        ("Zhaoxin", Config::zhaoxin(2, 2)),
        ("Zhaoxin guest", guest(Config::zhaoxin(2, 2))),
        ("no fixed ranges", with_cap(Config::new(2, 2), Some(0x403))),
        (
            "no variable ranges",
            with_cap(Config::amd(2, 2), Some(0x500)),
        ),
        ("no MTRRs", with_cap(Config::new(2, 2), None)),
        ("no MTRRs, AMD", with_cap(Config::amd(2, 2), None)),
        ("no PAT", without_pat(Config::new(2, 2))),
        (
            "neither",
            without_pat(with_cap(Config::kvm_amd(2, 2), None)),
        ),
    ]
}

/// Boots, compares, sleeps with the registers lost, and compares again.
fn live(name: &str, config: Config, mode: Resync, amd_fixed: AmdFixed) {
    // Without MTRRs that the library may write, firmware has to bring them back itself.
    let owned = config.boot.cap.is_some() && !config.cd_faults;
    let lost = if owned {
        Scribble::Zeroed
    } else {
        Scribble::PatReset
    };
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    let mut policy = with_pat(policy(mode), Pat::LINUX);
    policy.amd_fixed = amd_fixed;
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy);
        for round in 0..2 {
            if round > 0 {
                kernel.sleep(boot, &S3::all(lost.clone()));
            }
            assert!(kernel.bring_up(boot, &aps(&machine)).is_empty(), "{name}");
            assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0, "{name}");
            assert_eq!(kernel.check(boot).unwrap().out_of_sync, 0, "{name}");
        }
    });
    machine
        .check()
        .unwrap_or_else(|broken| panic!("{name}, {mode:?}: {broken}"));
    for cpu in 0..4 {
        let counters = machine.counters(cpu);
        assert_eq!(
            (counters.rdmsr_fault, counters.wrmsr_fault),
            (0, 0),
            "{name}"
        );
    }
    assert_all_equal(&machine, name);
}

#[test]
fn nobody_touches_what_nobody_announced() {
    for (name, config) in machines() {
        for scope in SCOPES {
            for mode in MODES {
                let mut config = config.clone();
                config.scope = scope;
                live(name, config, mode, AmdFixed::AsFound);
            }
        }
    }
}

#[test]
fn nor_when_rdmem_and_wrmem_are_to_be_saved() {
    for (name, mut config) in machines() {
        config.scope = MtrrScope::Thread;
        live(name, config, Resync::Early, AmdFixed::SaveDramBits);
    }
}

/// What the guests of the old probe died of.
#[test]
fn a_kvm_guest_on_amd_boots_without_a_fault() {
    let machine = Machine::new(Config::kvm_amd(4, 1));
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        kernel.init(boot, policy(Resync::Early));
        let platform = *kernel.sync.platform().unwrap();
        assert_eq!((platform.amd, platform.hypervisor), (false, true));
        assert_eq!(platform.phys_bits.get(), 40);
        assert!(platform.mtrr.is_ok() && platform.pat.is_ok());
        assert!(kernel.bring_up(boot, &aps(&machine)).is_empty());
    });
    machine.check().unwrap();
}

/// The machine itself: every kind of register, where it is announced and where it is not.
#[test]
fn the_machine_tells_announced_from_unannounced() {
    let broken = |config: &Config, msr: MsrAddr| {
        let machine = Machine::new(config.clone());
        machine.run(|boot| boot.rdmsr(msr).is_ok(), |_| {}, |_| {});
        let violations = machine.violations();
        assert!(violations.iter().all(|v| v.rule == Rule::UnannouncedMsr));
        violations.len() == 1
    };
    let (intel, amd) = (Config::new(1, 1), Config::amd(1, 1));
    let tme = Config::new(1, 1).with_tme(4);
    let no_fix = with_cap(Config::new(1, 1), Some(0x403));
    let mut low_tom2 = Config::amd(1, 1);
    low_tom2.boot.syscfg = Some(SysCfg::MTRR_VAR_DRAM_EN);
    let mut no_var = Config::amd(1, 1);
    no_var.boot.syscfg = Some(SysCfg::MTRR_TOM2_EN);
    let snp = Config::amd(1, 1).snp_guest();
    for (config, msr, unannounced) in [
        (&intel, MsrAddr::MTRRCAP, false),
        (&with_cap(Config::new(1, 1), None), MsrAddr::MTRRCAP, true),
        (&snp, MsrAddr::MTRRCAP, true),
        (&intel, MsrAddr::phys_mask(9), false),
        (&intel, MsrAddr::phys_base(10), true),
        (&intel, MsrAddr(0x26f), false),
        (&no_fix, MsrAddr(0x26f), true),
        (&no_fix, MsrAddr::phys_mask(2), false),
        (&no_fix, MsrAddr::phys_base(3), true),
        (&intel, MsrAddr::PAT, false),
        (&without_pat(Config::new(1, 1)), MsrAddr::PAT, true),
        (&intel, MsrAddr::TME_ACTIVATE, true),
        (&tme, MsrAddr::TME_ACTIVATE, false),
        (&guest(tme.clone()), MsrAddr::TME_ACTIVATE, true),
        (&intel, MsrAddr::SYSCFG, true),
        (&amd, MsrAddr::SYSCFG, false),
        (&Config::kvm_amd(1, 1), MsrAddr::SYSCFG, true),
        (&Config::kvm_amd(1, 1), MsrAddr::TOP_MEM2, true),
        (&amd, MsrAddr::TOP_MEM2, false),
        (&low_tom2, MsrAddr::TOP_MEM2, true),
        (&low_tom2, MsrAddr::iorr_mask(1), false),
        (&no_var, MsrAddr::iorr_mask(1), true),
        (&no_var, MsrAddr::TOP_MEM, true),
        (&amd, MsrAddr::SEV_STATUS, true),
        (&snp, MsrAddr::SEV_STATUS, false),
        (&intel, MsrAddr(0xc001_0015), true),
    ] {
        assert_eq!(broken(config, msr), unannounced, "{msr}");
    }
}
