//! The registers that only firmware sets.

use super::nothing;
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::regs::MsrAddr;
use mtrr_pat::sim::{Config, Machine, Rule, S3, Scribble, SimCpu};
use std::sync::Mutex;

#[test]
fn what_only_firmware_sets_is_not_to_be_written() {
    const BIT_19: u64 = 1 << 19;
    let amd = Config::amd(1, 1);
    let syscfg = amd.boot.syscfg.unwrap().raw();
    let tme = Config::new(1, 1).with_tme(3);
    let locked = tme.other_msrs[&MsrAddr::TME_ACTIVATE.0];
    let mut open = tme.clone();
    open.cpu_msrs = vec![(0, MsrAddr::TME_ACTIVATE, 0)];
    let written = [Rule::RoutingWritten];
    for (config, msr, value, broken) in [
        (&amd, MsrAddr::TOP_MEM, 0x8000_0000, &written[..]),
        (&amd, MsrAddr::TOP_MEM2, 0x2_4000_0000, &written),
        (&amd, MsrAddr::iorr_base(0), 0, &written),
        (&amd, MsrAddr::iorr_mask(1), 0, &written),
        (&amd, MsrAddr::SYSCFG, syscfg, &[]),
        (&amd, MsrAddr::SYSCFG, syscfg | BIT_19, &[]),
        (&amd, MsrAddr::SYSCFG, syscfg | BIT_19 | 1 << 23, &written),
        (&amd, MsrAddr::SYSCFG, syscfg ^ 1 << 20, &written),
        (&amd, MsrAddr::SEV_STATUS, 0, &[]),
        (&open, MsrAddr::TME_ACTIVATE, locked, &written),
    ] {
        let machine = Machine::new(config.clone());
        machine.run(
            |boot| {
                unsafe { boot.wrmsr(msr, value) }.unwrap();
                assert_eq!(boot.rdmsr(msr), Ok(value));
            },
            nothing,
            nothing,
        );
        let mut rules: Vec<Rule> = machine.violations().iter().map(|v| v.rule).collect();
        // SEV_STATUS is one that this machine does not announce.
        rules.retain(|rule| *rule != Rule::UnannouncedMsr);
        assert_eq!(rules, broken, "{msr} := {value:#x}");
    }
    // Locked by its first write.
    let machine = Machine::new(tme);
    machine.run(
        |boot| assert!(unsafe { boot.wrmsr(MsrAddr::TME_ACTIVATE, locked) }.is_err()),
        nothing,
        nothing,
    );
    machine.check().unwrap();
}

#[test]
fn each_cpu_has_its_own_and_firmware_brings_back_what_the_profile_says() {
    const USUAL: u64 = 0x8000_0000;
    let mut config = Config::amd(2, 2);
    config.cpu_msrs = vec![(1, MsrAddr::TOP_MEM, 1)];
    let machine = Machine::new(config);
    let seen = Mutex::new([None; 4]);
    let read = |cpu: &mut SimCpu<'_>| {
        let value = cpu.rdmsr(MsrAddr::TOP_MEM).ok();
        seen.lock().unwrap()[cpu.number()] = value;
    };
    machine.run(
        |boot| {
            let all = |boot: &mut SimCpu<'_>| {
                read(boot);
                for ap in 1..4 {
                    boot.send_init_sipi(ap);
                }
                boot.work(10_000_000);
                seen.lock().unwrap().map(Option::unwrap)
            };
            assert_eq!(all(boot), [USUAL, 1, USUAL, USUAL]);
            machine.set_msr(2, MsrAddr::TOP_MEM, 2);
            assert_eq!(all(boot), [USUAL, 1, 2, USUAL]);
            boot.s3(&S3::all(Scribble::Kept));
            assert_eq!(
                all(boot),
                [USUAL, 1, USUAL, USUAL],
                "firmware knows no better"
            );
            let three = Scribble::Kept.with_msr(MsrAddr::TOP_MEM, 3);
            boot.s3(&S3::aps(three.clone()));
            assert_eq!(all(boot), [USUAL, 3, 3, 3]);
            boot.s3(&S3::all(Scribble::only_cores([1], three)));
            assert_eq!(all(boot), [USUAL, 1, 3, 3]);
        },
        |ap| read(ap),
        nothing,
    );
    machine.check().unwrap();
}
