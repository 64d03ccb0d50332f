//! The simulated machine, seen from outside: a toy kernel lives on it.
#![cfg(feature = "sim")]

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CR4_PGE, CpuOps, MsrFault};
use mtrr_pat::regs::{MsrAddr, MtrrDefType};
use mtrr_pat::sim::{
    At, CR0_KERNEL, Config, Fault, Machine, MtrrScope, Op, Rule, S3, Schedule, Scribble, SimCpu,
    Stop, What,
};
use mtrr_pat::snapshot::Snapshot;

fn nothing(_: &mut SimCpu<'_>) {}

/// The manual's order, everything written: what the toy kernel does on a CPU that woke.
fn window(cpu: &mut SimCpu<'_>, want: &Snapshot) -> Result<(), MsrFault> {
    let cr0 = cpu.read_cr0();
    let cr4 = cpu.read_cr4();
    cpu.write_cr0((cr0 | CR0_CD) & !CR0_NW);
    cpu.wbinvd();
    cpu.write_cr4(cr4 & !CR4_PGE);
    cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, 0)?;
    for (n, pair) in want.variable_ranges().iter().enumerate() {
        cpu.wrmsr(MsrAddr::phys_base(n), pair.base)?;
        cpu.wrmsr(MsrAddr::phys_mask(n), pair.mask)?;
    }
    for (range, word) in mtrr_pat::ranges::FIXED_RANGES.iter().zip(want.fixed) {
        cpu.wrmsr(range.msr, word)?;
    }
    if let Some(pat) = want.pat {
        cpu.wrmsr(MsrAddr::PAT, pat.raw())?;
    }
    cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, want.def_type.raw())?;
    cpu.write_cr4(cr4 & !CR4_PGE | CR4_PGE);
    cpu.write_cr4(cr4);
    cpu.write_cr0(cr0 & !(CR0_CD | CR0_NW));
    Ok(())
}

/// Boot, APs up one by one, S3, APs up again, each through the window.
fn life(machine: &Machine, profile: &S3) {
    let want = machine.registers(0);
    let online = Word::new(0);
    let resuming = Word::new(0);
    machine.run(
        |boot| {
            for round in 0..2 {
                online.store(0, Ordering::Release);
                for ap in 1..boot.machine().config().cpus() {
                    boot.send_init_sipi(ap);
                    let seen = ap as u32 - 1;
                    while online.load(Ordering::Acquire) == seen {
                        boot.pause_while(&online, seen, u64::MAX);
                    }
                }
                if round == 0 {
                    boot.s3(profile);
                    window(boot, &want).unwrap();
                    resuming.store(1, Ordering::Release);
                }
            }
            boot.work(1000);
        },
        |ap| {
            if resuming.load(Ordering::Acquire) == 1 {
                window(ap, &want).unwrap();
            }
            ap.work(1000);
            let before = online.load(Ordering::Acquire);
            online.store(before + 1, Ordering::Release);
            while ap.halt_until_ipi() {}
        },
        nothing,
    );
}

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
    let events = |seed| {
        let mut config = Config::new(4, 1);
        config.schedule = Schedule::Baton { seed };
        let machine = Machine::new(config);
        life(&machine, &S3::all(Scribble::Off));
        machine.check().unwrap();
        machine.events()
    };
    assert!(events(7) == events(7));
    assert!(events(7) != events(8));
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
fn off_is_uncached_and_slow() {
    let time_of = |scribble| {
        let machine = Machine::new(Config::new(2, 1));
        machine.run(
            |boot| {
                boot.s3(&S3::aps(scribble).with_ap_cr0(0x10));
                let before = boot.machine().now();
                boot.send_init_sipi(1);
                before
            },
            |ap| ap.work(1_000_000),
            nothing,
        );
        (machine.counters(1).uncached_work, machine.time(1))
    };
    let (cached, fast) = time_of(Scribble::LikeBoot);
    let (uncached, slow) = time_of(Scribble::Off);
    assert_eq!((cached, uncached), (0, 1_000_000));
    assert!(slow > fast);
}

#[test]
fn deadlock_names_who_waits_where() {
    let machine = Machine::new(Config::new(2, 1));
    let word = Word::new(5);
    let stop = machine
        .try_run(
            |boot| {
                boot.send_init_sipi(1);
                while word.load(Ordering::Acquire) == 5 {
                    boot.pause_while(&word, 5, u64::MAX);
                }
            },
            |ap| ap.pause_while(&word, 5, u64::MAX),
            nothing,
        )
        .unwrap_err();
    let Stop::Deadlock(text) = stop else {
        panic!("{stop}")
    };
    assert!(text.contains("CPU 0") && text.contains("CPU 1"), "{text}");
    assert!(text.contains("tests/sim.rs"), "{text}");
}

#[test]
fn deadline_ends_a_wait_for_a_cpu_that_never_arrives() {
    let mut config = Config::new(2, 1);
    config.faults.push(Fault::new(1, At::Start, What::Stuck));
    let machine = Machine::new(config);
    let word = Word::new(0);
    let waited = machine.run(
        |boot| {
            boot.send_init_sipi(1);
            let begin = boot.rdtsc();
            let deadline = begin + 5_000_000;
            while word.load(Ordering::Acquire) == 0 && boot.rdtsc() < deadline {
                boot.pause_while(&word, 0, deadline);
            }
            boot.rdtsc() - begin
        },
        |_| word.store(1, Ordering::Release),
        nothing,
    );
    assert!((5_000_000..5_100_000).contains(&waited), "{waited}");
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
fn rules_are_watched() {
    let broken = |code: fn(&mut SimCpu<'_>)| {
        let machine = Machine::new(Config::new(1, 1));
        machine.run(code, nothing, nothing);
        let mut rules: Vec<Rule> = machine.violations().iter().map(|v| v.rule).collect();
        rules.dedup();
        rules
    };
    static WORD: Word = Word::new(0);
    let e = MtrrDefType::E;
    assert_eq!(e, 0x800);
    // Caching on.
    assert_eq!(
        broken(|cpu| cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, 0).unwrap()),
        [Rule::MtrrWriteOutsideWindow]
    );
    // Caching off, E set.
    assert_eq!(
        broken(|cpu| {
            cpu.write_cr0(CR0_KERNEL | CR0_CD);
            cpu.wrmsr(MsrAddr::phys_base(0), 0).unwrap();
        }),
        [Rule::MtrrWriteOutsideWindow]
    );
    // A pair that is and stays unused needs no window.
    assert_eq!(
        broken(|cpu| {
            cpu.wrmsr(MsrAddr::phys_base(9), 6).unwrap();
            cpu.wrmsr(MsrAddr::phys_mask(9), 0x1000).unwrap();
        }),
        []
    );
    assert_eq!(
        broken(|cpu| {
            cpu.write_cr0(CR0_KERNEL | CR0_CD);
            cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, 0).unwrap();
            WORD.store(1, Ordering::Release);
        }),
        [Rule::SharedTouchInWindow]
    );
    assert_eq!(
        broken(|cpu| {
            cpu.write_cr0(CR0_KERNEL | CR0_CD);
            cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, 0).unwrap();
            cpu.write_cr0(CR0_KERNEL);
            WORD.store(1, Ordering::Release);
            let _ = WORD.compare_exchange(1, 2);
        }),
        [Rule::LockedWithMtrrsOff]
    );
    assert_eq!(
        broken(|cpu| {
            cpu.load(0x5000);
            cpu.write_cr0(CR0_KERNEL | CR0_CD);
            cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, 0).unwrap();
            cpu.write_cr0(CR0_KERNEL);
            cpu.load(0x5000);
        }),
        [Rule::StaleTlb]
    );
}

#[test]
fn whole_event_list_reads_well() {
    let machine = Machine::new(Config::new(1, 1));
    machine.run(
        |boot| {
            assert_eq!(boot.rdmsr(MsrAddr::MTRRCAP), Ok(0xd0a));
            assert_eq!(boot.wrmsr(MsrAddr::PAT, 2), Err(MsrFault));
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
