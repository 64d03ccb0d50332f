//! The rules the machine watches.

use super::{nothing, rules_of, window};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CR4_PCIDE, CR4_PGE, CpuOps};
use mtrr_pat::regs::{MsrAddr, MtrrDefType};
use mtrr_pat::sim::{CR0_KERNEL, Config, Machine, MtrrScope, Rule, S3, Scribble, SimCpu};

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
        broken(|cpu| unsafe { cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, 0) }.unwrap()),
        [Rule::MtrrWriteOutsideWindow]
    );
    // Caching off, E set.
    assert_eq!(
        broken(|cpu| {
            unsafe { cpu.write_cr0(CR0_KERNEL | CR0_CD) };
            unsafe { cpu.wrmsr(MsrAddr::phys_base(0), 0) }.unwrap();
        }),
        [Rule::MtrrWriteOutsideWindow]
    );
    // A pair that is and stays unused needs no window.
    assert_eq!(
        broken(|cpu| {
            unsafe { cpu.wrmsr(MsrAddr::phys_base(9), 6) }.unwrap();
            unsafe { cpu.wrmsr(MsrAddr::phys_mask(9), 0x1000) }.unwrap();
        }),
        []
    );
    assert_eq!(
        broken(|cpu| {
            unsafe { cpu.write_cr0(CR0_KERNEL | CR0_CD) };
            unsafe { cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, 0) }.unwrap();
            WORD.store(1, Ordering::Release);
        }),
        [Rule::SharedTouchInWindow]
    );
    assert_eq!(
        broken(|cpu| {
            unsafe { cpu.write_cr0(CR0_KERNEL | CR0_CD) };
            unsafe { cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, 0) }.unwrap();
            unsafe { cpu.write_cr0(CR0_KERNEL) };
            WORD.store(1, Ordering::Release);
            let _ = WORD.compare_exchange(1, 2);
        }),
        [Rule::LockedWithMtrrsOff]
    );
    assert_eq!(
        broken(|cpu| {
            cpu.load(0x5000);
            unsafe { cpu.write_cr0(CR0_KERNEL | CR0_CD) };
            unsafe { cpu.wrmsr(MsrAddr::MTRR_DEF_TYPE, 0) }.unwrap();
            unsafe { cpu.write_cr0(CR0_KERNEL) };
            cpu.load(0x5000);
        }),
        [Rule::StaleTlb]
    );
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
                unsafe { boot.write_cr4(cr4 ^ CR4_PGE) };
                unsafe { boot.write_cr4(cr4) };
                boot.pause_while(done, 0, u64::MAX);
            }
            let cr4 = boot.read_cr4();
            unsafe { boot.write_cr4(cr4 ^ CR4_PGE) };
            unsafe { boot.write_cr4(cr4) };
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
            unsafe { boot.write_cr4(cr4 ^ CR4_PGE) };
            unsafe { boot.write_cr4(cr4) };
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
            unsafe { ap.write_cr0(CR0_KERNEL) };
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
    machine.run(
        |boot| unsafe { boot.write_cr0(CR0_KERNEL | CR0_NW) },
        nothing,
        nothing,
    );
}

#[test]
#[should_panic(expected = "this guest may not")]
fn cd_faults_in_a_guest() {
    let mut config = Config::new(1, 1);
    config.cd_faults = true;
    let machine = Machine::new(config);
    machine.run(
        |boot| unsafe { boot.write_cr0(CR0_KERNEL | CR0_CD) },
        nothing,
        nothing,
    );
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

/// Which pages are stale after the registers changed and one kind of flush was done.
fn stale_after(cr4: u64, flush: fn(&mut SimCpu<'_>)) -> Vec<u64> {
    let mut config = Config::new(1, 1);
    config.cr4 = cr4;
    let machine = Machine::new(config);
    machine.run(
        |boot| {
            let cr3 = boot.read_cr3();
            boot.load(0x9000);
            unsafe { boot.write_cr3(cr3 + 1) }; // another PCID, if there are such
            boot.load(0xa000);
            unsafe { boot.write_cr0(CR0_KERNEL | CR0_CD) };
            unsafe { boot.wrmsr(MsrAddr::MTRR_DEF_TYPE, 0) }.unwrap();
            flush(boot);
        },
        nothing,
        nothing,
    );
    let stale = machine.stale_entries(0);
    stale.iter().map(|(page, ..)| *page).collect()
}

#[test]
fn flushes_reach_what_the_manual_says() {
    const CODE: u64 = 0x20_0000;
    let reload: fn(&mut SimCpu<'_>) = |cpu| {
        let cr3 = cpu.read_cr3();
        unsafe { cpu.write_cr3(cr3) };
    };
    let keep: fn(&mut SimCpu<'_>) = |cpu| {
        let cr3 = cpu.read_cr3();
        unsafe { cpu.write_cr3(cr3 | 1 << 63) };
    };
    let toggle: fn(&mut SimCpu<'_>) = |cpu| {
        let cr4 = cpu.read_cr4();
        unsafe { cpu.write_cr4(cr4 ^ CR4_PGE) };
    };
    let pcids = 0xa0 | CR4_PCIDE;
    assert_eq!(stale_after(0xa0, |_| ()), [0xa000, CODE]);
    assert_eq!(stale_after(0xa0, reload), [CODE]);
    assert_eq!(stale_after(pcids, |_| ()), [0x9000, 0xa000, CODE]);
    assert_eq!(stale_after(pcids, reload), [0x9000, CODE]);
    assert_eq!(stale_after(pcids, keep), [0x9000, 0xa000, CODE]);
    for cr4 in [0x20, 0xa0, pcids] {
        assert_eq!(stale_after(cr4, toggle), []);
    }
}

/// All threads of a core in their windows at once: what the manuals' rule is there to prevent.
#[test]
fn windows_of_two_threads_at_once_break_the_sibling_rule() {
    let machine = super::life::crowd(Config::new(2, 2));
    let broken = rules_of(&machine);
    assert!(broken.iter().any(|(_, rule)| *rule == Rule::SiblingRan));
}
