//! Whatever firmware leaves in whichever CPU: all in line, or a typed outcome; no rule broken.

use crate::common::dice::Dice;
use crate::common::{Kernel, aps, assert_all_equal, assert_caching_on, outcome, policy, with_pat};
use mtrr_pat::error::{Error, Left};
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::Resync;
use mtrr_pat::regs::{MtrrDefType, VariableMtrr};
use mtrr_pat::sim::{
    At, CR0_RESET, Config, Fault, Machine, MtrrScope, Numbering, S3, Schedule, Scribble,
    Trampoline, What,
};
use mtrr_pat::snapshot::Snapshot;
use proptest::prelude::*;

fn memtype(dice: &mut Dice) -> u8 {
    dice.pick(&[0, 1, 4, 5, 6])
}

/// Registers a CPU can hold, each changed with some probability: valid words, junk where V is clear.
fn scramble(map: &mut Snapshot, seed: u64) {
    let mut dice = Dice(seed);
    if dice.one_in(4) {
        return;
    }
    let addresses = map.phys_bits.page_mask();
    let count = map.variable_count();
    for pair in map.variable.iter_mut().take(count) {
        if dice.one_in(3) {
            pair.base = dice.next() & addresses | u64::from(memtype(&mut dice));
        }
        if dice.one_in(3) {
            pair.mask = dice.next() & (addresses | VariableMtrr::V);
        }
    }
    for word in &mut map.fixed {
        if dice.one_in(3) {
            *word = u64::from_le_bytes(std::array::from_fn(|_| memtype(&mut dice)));
        }
    }
    if dice.one_in(2) {
        let bits = dice.next() & (MtrrDefType::E | MtrrDefType::FE);
        map.def_type = MtrrDefType::from_raw(bits | u64::from(memtype(&mut dice)));
    }
    if dice.one_in(3) {
        let pat = |dice: &mut Dice| dice.pick(&[0, 1, 4, 5, 6, 7]);
        let bytes = std::array::from_fn(|_| pat(&mut dice));
        map.pat = Some(Pat::from_raw(u64::from_le_bytes(bytes)));
    }
}

/// One machine, one life with one sleep. Faults strike the APs only.
fn live(seed: u64, cores: usize, threads: usize, mode: Resync, faults: usize) {
    let mut dice = Dice(seed);
    let mut config = Config::new(cores, threads);
    config.scope = dice.pick(&[MtrrScope::Core, MtrrScope::Thread]);
    config.numbering = dice.pick(&[Numbering::ThreadsTogether, Numbering::CoresFirst]);
    config.trampoline = dice.pick(&[Trampoline::LeavesCaching, Trampoline::EnablesCaching]);
    config.schedule = Schedule::Baton { seed: dice.next() };
    config.ap_cr0 = dice.pick(&[0x10, CR0_RESET]);
    scramble(&mut config.boot, dice.next());
    config.boot.def_type = MtrrDefType::from_raw(config.boot.def_type.raw() | MtrrDefType::E);
    config.aps = config.boot;
    scramble(&mut config.aps, dice.next());
    for _ in 0..faults {
        let cpu = 1 + dice.next() as usize % (cores * threads - 1);
        let at = At::Wrmsr(1 + dice.next() % 40);
        let what = dice.pick(&[What::Gp, What::Ignored]);
        config.faults.push(Fault::new(cpu, at, what));
    }
    let cpus = config.cpus();
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    let firmware = dice.next();
    let profile = S3::all(Scribble::custom(move |cpu, map| {
        scramble(map, firmware.wrapping_add(cpu as u64));
    }));
    kernel.run(&machine, |boot| {
        let mut policy = policy(mode);
        if dice.one_in(2) {
            policy = with_pat(policy, Pat::LINUX);
        }
        let _ = unsafe { kernel.sync.boot_init(boot, 0, policy) }.unwrap();
        for round in 0..2 {
            if round > 0 {
                kernel.sleep(boot, &profile);
            }
            assert!(kernel.bring_up(boot, &aps(&machine)).is_empty());
            if mode == Resync::Deferred {
                let _ = kernel.resync(boot).unwrap();
            }
            judge(&kernel, &machine);
        }
        // What one fault spoilt, another rendezvous repairs: no fault strikes twice.
        for _ in 0..faults {
            let _ = kernel.resync(boot).unwrap();
        }
    });
    assert_eq!(kernel.sync.online(), cpus as u32);
    assert_all_equal(&machine, "in the end");
    machine.check().unwrap_or_else(|broken| panic!("{broken}"));
}

/// Every CPU is in line, or says why not, with the map it had or none.
fn judge(kernel: &Kernel, machine: &Machine) {
    let want = machine.registers(0);
    for cpu in 0..machine.config().cpus() {
        let outcome = outcome(kernel, cpu);
        let have = machine.registers(cpu);
        assert_caching_on(machine, cpu, &format!("CPU {cpu}"));
        match outcome.error {
            None => assert_eq!(have, want, "CPU {cpu}: {outcome}"),
            Some(Error::WriteFault { left, .. } | Error::WriteIgnored { left, .. }) => {
                let off = !have.def_type.enabled();
                // A sibling that shares the set may have brought it in line since.
                let shared = (have.def_type, have.variable) == (want.def_type, want.variable);
                assert!(left != Left::Torn || off || shared, "CPU {cpu}: {outcome}");
            }
            Some(error) => panic!("CPU {cpu}: {error}"),
        }
    }
}

fn mode() -> impl Strategy<Value = Resync> {
    prop_oneof![Just(Resync::Early), Just(Resync::Deferred)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_firmware_on_any_topology(
        seed: u64,
        cores in 1_usize..5,
        threads in 1_usize..5,
        mode in mode(),
    ) {
        prop_assume!(cores * threads > 1);
        live(seed, cores, threads, mode, 0);
    }

    #[test]
    fn any_firmware_with_writes_that_fail(
        seed: u64,
        cores in 1_usize..4,
        threads in 1_usize..4,
        mode in mode(),
        faults in 1_usize..5,
    ) {
        prop_assume!(cores * threads > 1);
        live(seed, cores, threads, mode, faults);
    }
}
