//! What goes wrong, and how a run ends.

use super::{nothing, window};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::{CR0_CD, CpuOps};
use mtrr_pat::regs::MsrAddr;
use mtrr_pat::sim::{At, CR0_KERNEL, Config, Fault, Machine, Op, Schedule, Scribble, Stop, What};

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
    assert!(text.contains("tests/sim/faults.rs"), "{text}");
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
                unsafe { ap.write_cr0(CR0_KERNEL) };
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

/// The others run on: their turn comes, though who was stuck had it last.
#[test]
fn a_cpu_that_gets_stuck_after_the_boot_cpu_returned_holds_nobody_up() {
    for schedule in [Schedule::Baton { seed: 0 }, Schedule::Free { seed: 0 }] {
        let mut config = Config::new(3, 1);
        config.schedule = schedule;
        config.faults = vec![Fault::new(1, At::Op(20), What::Stuck)];
        let machine = Machine::new(config);
        machine.run(
            |boot| {
                boot.send_init_sipi(1);
                boot.send_init_sipi(2);
            },
            |ap| {
                for _ in 0..100 {
                    ap.work(1000);
                    let _ = ap.rdmsr(MsrAddr::PAT);
                }
            },
            |_| {},
        );
        assert_eq!(machine.counters(2).rdmsr, 100);
        assert!(machine.counters(1).rdmsr < 20);
    }
}
