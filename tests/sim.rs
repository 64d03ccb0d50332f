//! The simulated machine, seen from outside: a toy kernel lives on it.
#![cfg(feature = "sim")]

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CR4_PGE, CpuOps, MsrFault};
use mtrr_pat::regs::{MsrAddr, MtrrDefType};
use mtrr_pat::sim::{
    Activity, At, CR0_KERNEL, Config, Fault, Machine, MtrrScope, Numbering, Op, Rule, S3, Schedule,
    Scribble, SimCpu, Stop, What,
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

fn rules_of(machine: &Machine) -> Vec<(usize, Rule)> {
    let violations = machine.violations();
    violations.iter().map(|v| (v.cpu, v.rule)).collect()
}

/// CPU 1 goes through the window; CPU 0, its sibling, runs `sibling` from when it has begun.
fn beside_a_window(scope: MtrrScope, sibling: fn(&mut SimCpu<'_>, &Word)) -> Machine {
    let mut config = Config::new(1, 2);
    config.scope = scope;
    let machine = Machine::new(config);
    let want = machine.registers(0);
    let (begun, done) = (Word::new(0), Word::new(0));
    machine.run(
        |boot| {
            boot.load(0x9000);
            boot.send_init_sipi(1);
            while begun.load(Ordering::Acquire) == 0 {
                boot.pause_while(&begun, 0, u64::MAX);
            }
            sibling(boot, &done);
        },
        |ap| {
            begun.store(1, Ordering::Release);
            window(ap, &want).unwrap();
            done.store(1, Ordering::Release);
        },
        nothing,
    );
    machine
}

#[test]
fn sibling_of_a_window_may_wait_and_flush_only() {
    for scope in [MtrrScope::Core, MtrrScope::Thread] {
        let held = beside_a_window(scope, |boot, done| {
            while done.load(Ordering::Acquire) == 0 {
                let cr4 = boot.read_cr4();
                boot.write_cr4(cr4 ^ CR4_PGE);
                boot.write_cr4(cr4);
                boot.pause_while(done, 0, u64::MAX);
            }
            let cr4 = boot.read_cr4();
            boot.write_cr4(cr4 ^ CR4_PGE);
            boot.write_cr4(cr4);
            boot.load(0x9000);
        });
        held.check().unwrap();
        for working in [
            (|boot, _| boot.work(10)) as fn(&mut SimCpu<'_>, &Word),
            |boot, _| boot.load(0x1000),
            |boot, _| assert!(boot.rdmsr(MsrAddr::PAT).is_ok()),
            |boot, _| boot.wbinvd(),
        ] {
            let machine = beside_a_window(scope, working);
            assert!(rules_of(&machine).contains(&(0, Rule::SiblingRan)));
        }
    }
}

#[test]
fn sibling_caught_in_the_middle_of_work() {
    let machine = beside_a_window(MtrrScope::Core, |boot, _| boot.work(10_000_000));
    assert!(rules_of(&machine).contains(&(0, Rule::SiblingRan)));
}

/// A sibling that flushes during the window, and not after it, keeps what the shared set said then.
#[test]
fn waiting_without_a_last_flush_leaves_stale_types_on_shared_sets_only() {
    let stale = |scope| {
        let machine = beside_a_window(scope, |boot, done| {
            while boot.machine().registers(1).def_type.enabled() {
                boot.read_cr3();
            }
            let cr4 = boot.read_cr4();
            boot.write_cr4(cr4 ^ CR4_PGE);
            boot.write_cr4(cr4);
            while done.load(Ordering::Acquire) == 0 {
                boot.pause_while(done, 0, u64::MAX);
            }
            boot.work(1);
        });
        (machine.stale_entries(0).len(), rules_of(&machine))
    };
    assert_eq!(stale(MtrrScope::Core), (1, vec![(0, Rule::StaleTlb)]));
    assert_eq!(stale(MtrrScope::Thread), (0, vec![]));
}

#[test]
fn reset_leaves_caching_off_until_the_cpu_turns_it_on() {
    let machine = Machine::new(Config::new(1, 2));
    machine.run(
        |boot| {
            boot.s3(&S3::all(Scribble::LikeBoot));
            boot.send_init_sipi(1);
        },
        |ap| {
            assert_eq!(ap.read_cr0(), CR0_KERNEL | CR0_CD | CR0_NW);
            ap.work(100);
            ap.write_cr0(CR0_KERNEL);
            ap.work(1000);
        },
        nothing,
    );
    let counters = machine.counters(1);
    assert_eq!((counters.uncached_work, counters.work), (100, 1100));
    assert_eq!(counters.work_with_reset_cd, 1);
    machine.check().unwrap();
}

#[test]
#[should_panic(expected = "CD=0 and NW=1")]
fn nw_without_cd_is_a_kernel_bug() {
    let machine = Machine::new(Config::new(1, 1));
    machine.run(|boot| boot.write_cr0(CR0_KERNEL | CR0_NW), nothing, nothing);
}

#[test]
#[should_panic(expected = "this guest may not")]
fn cd_faults_in_a_guest() {
    let mut config = Config::new(1, 1);
    config.cd_faults = true;
    let machine = Machine::new(config);
    machine.run(|boot| boot.write_cr0(CR0_KERNEL | CR0_CD), nothing, nothing);
}

#[test]
fn faults_strike_where_told() {
    let run = |fault| {
        let mut config = Config::new(2, 1);
        config.faults.push(fault);
        let machine = Machine::new(config);
        let want = machine.registers(0);
        let outcome = Word::new(0);
        machine.run(
            |boot| boot.send_init_sipi(1),
            |ap| {
                let done = window(ap, &want);
                ap.write_cr0(CR0_KERNEL);
                outcome.store(1 + u32::from(done.is_err()), Ordering::Release);
            },
            nothing,
        );
        (outcome.load(Ordering::Acquire), machine.writes(1))
    };
    let (outcome, ops) = run(Fault::new(1, At::Wrmsr(3), What::Gp));
    assert_eq!(outcome, 2);
    assert_eq!(
        ops[3..7],
        [
            Op::Wrmsr(0x2ff, 0),
            Op::Wrmsr(0x200, 6),
            Op::WrmsrFault(0x201, 0x7f_8000_0800),
            Op::Cr0(CR0_KERNEL)
        ]
    );
    let pat = At::Msr(MsrAddr::PAT);
    let (outcome, ops) = run(Fault::new(1, pat, What::Ignored));
    assert_eq!(outcome, 1);
    assert!(ops.contains(&Op::WrmsrIgnored(0x277, 0x0007_0406_0007_0406)));
    for at in [At::WindowEntry(1), At::InWindow(1), At::WindowExit(1)] {
        let (outcome, ops) = run(Fault::new(1, at, What::Stuck));
        assert_eq!(outcome, 0);
        assert_eq!(
            ops.len(),
            match at {
                At::WindowEntry(_) => 0,
                At::InWindow(_) => 4,
                _ => 3 + 1 + 20 + 11 + 1 + 1 + 2 + 1,
            }
        );
    }
    let (outcome, _) = run(Fault::new(1, At::Start, What::Stuck));
    assert_eq!(outcome, 0);
    let late = Fault::new(1, At::Start, What::Delay(1_000_000_000));
    assert_eq!(run(late).0, 1);
}

#[test]
fn smm_rewrites_registers_behind_the_kernel() {
    let mut config = Config::new(1, 1);
    config
        .faults
        .push(Fault::new(0, At::Op(2), What::Smm(Scribble::Off)));
    let machine = Machine::new(config);
    let read = machine.run(
        |boot| {
            [
                boot.rdmsr(MsrAddr::MTRR_DEF_TYPE),
                boot.rdmsr(MsrAddr::MTRR_DEF_TYPE),
            ]
        },
        nothing,
        nothing,
    );
    assert_eq!(read, [Ok(0xc00), Ok(0x400)]);
}

#[test]
fn init_revives_a_stuck_cpu_and_keeps_its_mtrrs() {
    let mut config = Config::new(2, 1);
    config
        .faults
        .push(Fault::new(1, At::InWindow(5), What::Stuck));
    let machine = Machine::new(config);
    let want = machine.registers(0);
    let lives = Word::new(0);
    machine.run(
        |boot| {
            boot.send_init_sipi(1);
            boot.work(10_000_000);
            let broken = boot.machine().registers(1);
            assert!(!broken.def_type.enabled());
            boot.send_init_sipi(1);
            while lives.load(Ordering::Acquire) != 2 {
                boot.pause_while(&lives, 1, u64::MAX);
            }
        },
        |ap| {
            let life = lives.load(Ordering::Acquire) + 1;
            lives.store(life, Ordering::Release);
            if life == 1 {
                let _ = window(ap, &want);
            } else {
                assert_eq!(ap.rdmsr(MsrAddr::MTRR_DEF_TYPE), Ok(0));
                assert_eq!(ap.read_cr0() & CR0_CD, CR0_CD);
            }
        },
        nothing,
    );
    assert_eq!(machine.counters(1).starts, 2);
}

#[test]
fn boot_cpu_stuck_is_an_end_not_a_hang() {
    let mut config = Config::new(2, 1);
    config.faults.push(Fault::new(0, At::Op(2), What::Stuck));
    let machine = Machine::new(config);
    let stop = machine
        .try_run(
            |boot| {
                boot.send_init_sipi(1);
                boot.rdtsc();
                boot.rdtsc();
            },
            |ap| while ap.halt_until_ipi() {},
            nothing,
        )
        .unwrap_err();
    assert!(matches!(stop, Stop::BootStuck(_)), "{stop}");
}

#[test]
fn spinning_for_ever_is_an_end_not_a_hang() {
    let mut config = Config::new(2, 1);
    config.max_steps = 10_000;
    let machine = Machine::new(config);
    let word = Word::new(0);
    let stop = machine
        .try_run(
            |_| while word.load(Ordering::Acquire) == 0 {},
            nothing,
            nothing,
        )
        .unwrap_err();
    assert!(matches!(stop, Stop::Endless(_)), "{stop}");
}

#[test]
fn panic_of_an_ap_ends_the_run() {
    let machine = Machine::new(Config::new(2, 1));
    let word = Word::new(0);
    let stop = machine
        .try_run(
            |boot| {
                boot.send_init_sipi(1);
                boot.pause_while(&word, 0, u64::MAX);
            },
            |ap| assert_eq!(ap.number(), 0, "as this test wants"),
            nothing,
        )
        .unwrap_err();
    assert_eq!(stop, Stop::Panic(1));
}

#[test]
fn s3_ends_halted_aps_and_objects_to_running_ones() {
    let run = |ap_code: fn(&mut SimCpu<'_>, &Word)| {
        let machine = Machine::new(Config::new(2, 1));
        let word = Word::new(0);
        machine.run(
            |boot| {
                boot.send_init_sipi(1);
                boot.work(10_000_000);
                boot.s3(&S3::all(Scribble::LikeBoot));
            },
            |ap| ap_code(ap, &word),
            nothing,
        );
        rules_of(&machine)
    };
    assert_eq!(run(|ap, _| while ap.halt_until_ipi() {}), []);
    assert_eq!(run(|_, _| ()), []);
    assert_eq!(
        run(|ap, word| ap.pause_while(word, 0, u64::MAX)),
        [(1, Rule::SuspendedWhileRunning)]
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

#[test]
fn a_cpu_at_e0_reads_what_was_flushed_to_memory() {
    let reads = |flush: bool| {
        let mut config = Config::new(2, 1);
        config.aps.def_type = config.aps.def_type.disabled();
        config.strict_snoop = true;
        let machine = Machine::new(config);
        let word = Word::new(0);
        machine.run(
            |boot| {
                word.store(1, Ordering::Release);
                if flush {
                    boot.clflush(word.address());
                }
                boot.send_init_sipi(1);
            },
            |_| assert_eq!(word.load(Ordering::Acquire), 1),
            nothing,
        );
        rules_of(&machine)
    };
    assert_eq!(reads(true), []);
    assert_eq!(reads(false), [(1, Rule::UnsnoopedRead)]);
}

/// All APs at once: SIPIs to all, each through the window, a counter per CPU, the boot CPU
/// gathers. A thousand CPUs must be a matter of seconds.
fn crowd(config: Config) -> Machine {
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
    let machine = crowd(config);
    machine.check().unwrap();
    assert_eq!(machine.counters(1023).windows, 1);
    assert_eq!(machine.counters(1023).wrmsr, 34);
}

/// How long each of two CPUs takes for a WBINVD begun at the same time.
fn two_wbinvds(dirty: u64, cores_per_llc: usize, serialised: bool) -> [u64; 2] {
    let mut config = Config::new(2, 1);
    config.cores_per_llc = cores_per_llc;
    config.costs.wbinvd_serialised_per_llc = serialised;
    config.costs.dirty_per_1000 = 1000;
    config.costs.instructions_per_op = 0;
    let machine = Machine::new(config);
    let code = |cpu: &mut SimCpu<'_>| {
        if dirty > 0 {
            cpu.work(dirty);
        }
        cpu.read_cr0(); // so that the TLB holds the code page
        cpu.wait_until(1_000_000_000);
        cpu.wbinvd();
    };
    machine.run(
        |boot| {
            boot.send_init_sipi(1);
            code(boot);
        },
        code,
        nothing,
    );
    assert_eq!(machine.counters(0).lines_written_back, dirty);
    assert_eq!(machine.counters(1).lines_written_back, dirty);
    [0, 1].map(|cpu| machine.time(cpu) - 1_000_000_000)
}

#[test]
fn wbinvd_shares_the_bandwidth_and_may_be_serialised() {
    let [alone, beside] = two_wbinvds(0, 1, false);
    assert_eq!(alone, beside);
    assert_eq!(two_wbinvds(0, 2, true), [alone, 2 * alone]);
    assert_eq!(two_wbinvds(0, 1, true), [alone, alone]);
    // Two writers at once: the second line stream waits for the first one's.
    let lines = 16_000;
    let stream = lines * mtrr_pat::sim::Costs::default().write_back_line;
    assert!(stream < alone && alone < 2 * stream);
    assert_eq!(two_wbinvds(lines, 1, false), [alone, 2 * stream]);
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
fn timeline_has_no_gaps_while_a_cpu_runs() {
    let mut config = Config::new(2, 1);
    config.timeline = true;
    let machine = Machine::new(config);
    life(&machine, &S3::all(Scribble::Off));
    let spans = machine.timeline(0);
    assert_eq!(spans[0].start, 0);
    assert!(spans.windows(2).all(|pair| pair[0].end == pair[1].start));
    assert_eq!(spans.last().unwrap().end, machine.time(0));
    for wanted in [
        Activity::Cached,
        Activity::Uncached,
        Activity::Window,
        Activity::Waiting,
    ] {
        assert!(
            spans.iter().any(|span| span.activity == wanted),
            "{wanted:?}"
        );
    }
    assert!(
        machine
            .timeline(1)
            .iter()
            .any(|span| span.activity == Activity::Halted)
    );
}

#[test]
fn false_sharing_costs_time() {
    #[repr(align(128))]
    struct Packed([Word; 32]);
    let time = |false_sharing, step: usize| {
        let mut config = Config::new(2, 1);
        config.costs.false_sharing = false_sharing;
        let machine = Machine::new(config);
        let slots = Packed([const { Word::new(0) }; 32]);
        let code = |cpu: &mut SimCpu<'_>| {
            cpu.wait_until(30_000_000);
            for n in 0..1000 {
                slots.0[cpu.number() * step].store(n, Ordering::Release);
            }
        };
        machine.run(
            |boot| {
                boot.send_init_sipi(1);
                code(boot);
                boot.machine().time(0) - 30_000_000
            },
            code,
            nothing,
        )
    };
    assert!(time(true, 1) > 4 * time(true, 16));
    assert_eq!(time(false, 1), time(false, 16));
}
