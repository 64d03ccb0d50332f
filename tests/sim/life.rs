//! Whole lives of a machine.

use super::{life, nothing, window};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::{CpuOps, MsrFault};
use mtrr_pat::regs::MsrAddr;
use mtrr_pat::sim::{
    At, CR0_KERNEL, Config, Fault, Machine, MtrrScope, Numbering, Op, S3, Schedule, Scribble, What,
};

#[test]
fn life_cycle_restores_every_scribble() {
    for scope in [MtrrScope::Core, MtrrScope::Thread] {
        for scribble in [
            Scribble::LikeBoot,
            Scribble::Off,
            Scribble::Zeroed,
            Scribble::AnotherRange,
            Scribble::PatReset,
            Scribble::only_cores([1], Scribble::Off),
        ] {
            let mut config = Config::new(3, 1);
            config.scope = scope;
            let machine = Machine::new(config);
            let want = machine.registers(0);
            life(&machine, &S3::all(scribble.clone()));
            for cpu in 0..3 {
                assert_eq!(machine.registers(cpu), want, "CPU {cpu} after {scribble:?}");
                assert_eq!(machine.control_registers(cpu).0, CR0_KERNEL);
                assert_eq!(machine.stale_entries(cpu), []);
            }
            machine.check().unwrap();
        }
    }
}

#[test]
fn same_seed_same_events_other_seed_others() {
    let events = |seed, quantum| {
        let mut config = Config::new(4, 1);
        config.schedule = Schedule::Baton { seed };
        config.quantum = quantum;
        let machine = Machine::new(config);
        life(&machine, &S3::all(Scribble::Off));
        machine.check().unwrap();
        machine.events()
    };
    assert!(events(7, 0) == events(7, 0));
    assert!(events(7, 0) != events(8, 0));
    assert!(events(7, 1_000_000) == events(7, 1_000_000));
}

#[test]
fn free_running_threads_do_the_same() {
    let mut config = Config::new(4, 1);
    config.schedule = Schedule::Free { seed: 3 };
    let machine = Machine::new(config);
    let want = machine.registers(0);
    life(&machine, &S3::all(Scribble::Zeroed));
    for cpu in 0..4 {
        assert_eq!(machine.registers(cpu), want);
    }
    machine.check().unwrap();
}

#[test]
fn interrupt_runs_in_a_wait_loop_and_wakes_a_halted_cpu() {
    let machine = Machine::new(Config::new(2, 1));
    let taken = Word::new(0);
    machine.run(
        |boot| {
            boot.send_init_sipi(1);
            boot.work(1_000_000);
            boot.send_ipi(1);
            while taken.load(Ordering::Acquire) == 0 {
                boot.pause_while(&taken, 0, u64::MAX);
            }
        },
        |ap| {
            ap.sti();
            while ap.halt_until_ipi() {}
        },
        |cpu| {
            assert_eq!(cpu.number(), 1);
            assert!(!cpu.interrupts_enabled());
            taken.store(1, Ordering::Release);
        },
    );
    assert_eq!(machine.counters(1).interrupts, 1);
    machine.check().unwrap();
}

#[test]
fn whole_event_list_reads_well() {
    let machine = Machine::new(Config::new(1, 1));
    machine.run(
        |boot| {
            assert_eq!(boot.rdmsr(MsrAddr::MTRRCAP), Ok(0xd0a));
            assert_eq!(unsafe { boot.wrmsr(MsrAddr::PAT, 2) }, Err(MsrFault));
            boot.wbinvd();
        },
        nothing,
        nothing,
    );
    assert_eq!(
        machine.ops(0),
        [Op::Rdmsr(0xfe, 0xd0a), Op::WrmsrFault(0x277, 2), Op::Wbinvd]
    );
}

#[test]
fn interrupts_are_also_taken_between_two_accesses_of_shared_words() {
    let mut config = Config::new(1, 1);
    config
        .faults
        .push(Fault::new(0, At::Op(1), What::Interrupt));
    let machine = Machine::new(config);
    let word = Word::new(0);
    machine.run(
        |boot| {
            boot.cli();
            boot.sti();
            word.store(1, Ordering::Release);
            assert_eq!(word.load(Ordering::Acquire), 1);
        },
        nothing,
        |_| assert_eq!(word.load(Ordering::Acquire), 0),
    );
    assert_eq!(machine.counters(0).interrupts, 1);
}

/// All APs at once: SIPIs to all, each through the window, a counter per CPU, the boot CPU
/// gathers. A thousand CPUs must be a matter of seconds.
pub(crate) fn crowd(config: Config) -> Machine {
    let machine = Machine::new(config);
    let want = machine.registers(0);
    let cpus = machine.config().cpus();
    let slots: Vec<Word> = (0..cpus).map(|_| Word::new(0)).collect();
    let go = Word::new(0);
    machine.run(
        |boot| {
            for ap in 1..cpus {
                boot.send_init_sipi(ap);
            }
            for slot in &slots[1..] {
                while slot.load(Ordering::Acquire) == 0 {
                    boot.pause_while(slot, 0, u64::MAX);
                }
            }
            go.store(1, Ordering::Release);
            for slot in &slots[1..] {
                while slot.load(Ordering::Acquire) == 1 {
                    boot.pause_while(slot, 1, u64::MAX);
                }
            }
        },
        |ap| {
            slots[ap.number()].store(1, Ordering::Release);
            while go.load(Ordering::Acquire) == 0 {
                ap.pause_while(&go, 0, u64::MAX);
            }
            window(ap, &want).unwrap();
            slots[ap.number()].store(2, Ordering::Release);
        },
        nothing,
    );
    machine
}

#[test]
fn a_thousand_cpus() {
    let mut config = Config::new(1024, 1);
    config.log = false;
    let exact = crowd(config.clone());
    config.quantum = 1_000_000;
    let coarse = crowd(config);
    for machine in [&exact, &coarse] {
        machine.check().unwrap();
        assert_eq!(machine.counters(1023).windows, 1);
        assert_eq!(machine.counters(1023).wrmsr, 34);
    }
    let (exact, coarse) = (exact.now(), coarse.now());
    assert!(exact.abs_diff(coarse) < exact / 20, "{exact} {coarse}");
}

#[test]
fn cpuid_tells_one_story() {
    for numbering in [Numbering::ThreadsTogether, Numbering::CoresFirst] {
        for amd in [false, true] {
            let mut config = if amd {
                Config::amd(6, 2)
            } else {
                Config::new(6, 2)
            };
            config.numbering = numbering;
            config.cores_per_package = 3;
            config.encryption_bits = if amd { 5 } else { 0 };
            let machine = Machine::new(config.clone());
            machine.run(
                |boot| {
                    let reader = |leaf, subleaf| {
                        let words = boot.cpuid(leaf, subleaf);
                        raw_cpuid::CpuIdResult {
                            eax: words.eax,
                            ebx: words.ebx,
                            ecx: words.ecx,
                            edx: words.edx,
                        }
                    };
                    let cpuid = raw_cpuid::CpuId::with_cpuid_reader(reader);
                    let vendor = if amd { "AuthenticAMD" } else { "GenuineIntel" };
                    assert_eq!(cpuid.get_vendor_info().unwrap().as_str(), vendor);
                    let features = cpuid.get_feature_info().unwrap();
                    assert!(features.has_mtrr() && features.has_pat() && features.has_ss());
                    assert!(!features.has_hypervisor());
                    let levels: Vec<_> = cpuid.get_extended_topology_info().unwrap().collect();
                    assert_eq!(levels[0].shift_right_for_next_apic_id(), 1);
                    assert_eq!(levels[1].shift_right_for_next_apic_id(), 3);
                    let width = cpuid.get_processor_capacity_feature_info().unwrap();
                    assert_eq!(width.physical_address_bits(), if amd { 44 } else { 39 });
                },
                nothing,
                nothing,
            );
            let mut ids = std::collections::BTreeSet::new();
            for cpu in 0..config.cpus() {
                let (core, thread) = config.place(cpu);
                assert_eq!(config.cpu_at(core, thread), cpu);
                assert_eq!(config.apic_id(cpu) & 1, thread as u32);
                assert_eq!(config.apic_id(cpu) >> 3, core as u32 / 3);
                assert!(ids.insert(config.apic_id(cpu)));
            }
        }
    }
}

#[test]
fn many_orders_and_free_threads_agree() {
    for scope in [MtrrScope::Core, MtrrScope::Thread] {
        let free = [Schedule::Free { seed: 0 }, Schedule::Free { seed: 9 }];
        let orders = (1..40).map(|seed| Schedule::Baton { seed });
        for schedule in orders.chain(free) {
            let mut config = Config::new(12, 1);
            config.scope = scope;
            config.schedule = schedule;
            let machine = crowd(config);
            machine.check().unwrap();
            for cpu in 1..12 {
                assert_eq!(machine.registers(cpu), machine.registers(0));
                assert_eq!(machine.counters(cpu).wrmsr, 34);
            }
        }
    }
}
