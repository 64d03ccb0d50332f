//! Early resync by case: alone, PAT only, siblings held, nobody to hold, unknown siblings.

mod bringup_order;
mod first_compare;

use crate::common::one_cpu::another_map;
use crate::common::timeline::windows;
use crate::common::{Kernel, SCOPES, assert_all_equal, assert_cpu, outcome, policy};
use mtrr_pat::cpu::{CR0_CD, CpuOps, CpuidWords};
use mtrr_pat::error::Error;
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::Resync;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{Config, Event, Machine, MtrrScope, Op, firmware_map};
use mtrr_pat::topology::Place;

fn two_by_two(scope: MtrrScope) -> Config {
    let mut config = Config::new(2, 2);
    config.scope = scope;
    config.aps = another_map();
    config
}

fn ipis(machine: &Machine) -> usize {
    (0..machine.config().cpus())
        .map(|cpu| machine.counters(cpu).ipi as usize)
        .sum()
}

fn assert_all_in_line(kernel: &Kernel, machine: &Machine, why: &str) {
    assert_all_equal(machine, why);
    assert_eq!(kernel.sync.report().out_of_sync().count(), 0, "{why}");
    assert_eq!(
        kernel.sync.online() as usize,
        machine.config().cpus(),
        "{why}"
    );
    machine
        .check()
        .unwrap_or_else(|broken| panic!("{why}: {broken}"));
}

#[test]
fn with_its_siblings_absent_or_parked_an_ap_opens_its_window_at_once() {
    for scope in SCOPES {
        let machine = Machine::new(two_by_two(scope));
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) }.unwrap();
            kernel.bring_up(boot, &[2]);
            assert_eq!(outcome(&kernel, 2).path, Path::Window);
            assert_eq!(ipis(&machine), 0, "CPU 3 is absent: nobody is asked");
            unsafe { kernel.sync.parked(2) }.unwrap();
            // Also under a shared set: firmware took it away again while both were off.
            machine.set_registers(3, &another_map());
            kernel.bring_up(boot, &[3]);
            assert_eq!(outcome(&kernel, 3).path, Path::Window);
            assert_eq!(ipis(&machine), 0, "CPU 2 is parked: nobody is asked");
        });
        assert_cpu(&machine, 3, &firmware_map(), "alone");
        assert!(kernel.sync.report().cpus().all(|cpu| cpu.holds == 0));
        machine.check().unwrap();
    }
}

#[test]
fn a_pat_alone_is_written_beside_running_siblings_with_caching_on() {
    for scope in SCOPES {
        let mut config = two_by_two(scope);
        config.aps = firmware_map();
        config.aps.pat = Some(Pat::LINUX);
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) }.unwrap();
            kernel.bring_up(boot, &[1, 2, 3]);
        });
        for cpu in 1..4 {
            assert_eq!(outcome(&kernel, cpu).path, Path::Pat);
            assert_eq!(machine.counters(cpu).cr0_writes, 0);
        }
        assert_eq!((ipis(&machine), windows(&machine).len()), (0, 0));
        assert_all_in_line(&kernel, &machine, "PAT");
    }
}

/// The place of the first (or last) event of a CPU that fits.
fn at(events: &[Event], cpu: usize, fits: impl Fn(Op) -> bool) -> usize {
    let found = events
        .iter()
        .position(|event| event.cpu == cpu && fits(event.op));
    found.unwrap_or_else(|| panic!("CPU {cpu} never did it"))
}

fn last_at(events: &[Event], cpu: usize, fits: impl Fn(Op) -> bool) -> usize {
    let found = events
        .iter()
        .rposition(|event| event.cpu == cpu && fits(event.op));
    found.unwrap_or_else(|| panic!("CPU {cpu} never did it"))
}

#[test]
fn a_running_sibling_is_asked_answers_stands_still_and_is_let_go() {
    let mut config = two_by_two(MtrrScope::Thread);
    config.log_shared = true;
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) }.unwrap();
        kernel.bring_up(boot, &[2]);
        machine.clear_log();
        kernel.bring_up(boot, &[3]);
    });
    let events = machine.events();
    let off = |op: Op| matches!(op, Op::Cr0(value) if value & CR0_CD != 0);
    let on = |op: Op| matches!(op, Op::Cr0(value) if value & CR0_CD == 0);
    let flush = |op: Op| matches!(op, Op::Cr4(_));
    let requested = at(&events, 3, |op| op == Op::Ipi(2));
    let interrupted = at(&events, 2, |op| op == Op::Interrupt);
    let entered = at(&events, 3, off);
    let left = at(&events, 3, on);
    let returned = last_at(&events, 2, |op| op == Op::Iret);
    assert!(requested < interrupted && interrupted < entered && entered < left && left < returned);
    // It answers by a store and flushes its TLB before the window opens, and again after.
    let before = &events[interrupted..entered];
    assert!(
        before
            .iter()
            .any(|event| event.cpu == 2 && event.op == Op::SharedStore)
    );
    assert!(before.iter().any(|event| event.cpu == 2 && flush(event.op)));
    let after = &events[left..returned];
    assert!(after.iter().any(|event| event.cpu == 2 && flush(event.op)));
    // The request is taken back before the sibling goes on.
    let released = left + at(after, 3, |op| op == Op::SharedStore);
    assert!(released < last_at(&events, 2, flush));
    // Meanwhile it waits and flushes, and writes nothing that others see.
    for event in events[entered..left].iter().filter(|event| event.cpu == 2) {
        let waits = matches!(
            event.op,
            Op::Pause | Op::Rdtsc | Op::Mfence | Op::SharedLoad | Op::ReadCr4(_) | Op::Cr4(_)
        );
        assert!(waits, "{event:?}");
    }
    let held = kernel
        .sync
        .report()
        .cpus()
        .find(|cpu| cpu.cpu == 2)
        .unwrap();
    assert_eq!(held.holds, 1);
    assert!(held.held_ticks > 0);
    assert_eq!(outcome(&kernel, 3).path, Path::Window);
    machine.check().unwrap();
}

#[test]
fn without_callback_and_answer_it_is_postponed_and_says_so_until_the_next_rendezvous() {
    let machine = Machine::new(two_by_two(MtrrScope::Thread));
    let kernel = Kernel::new();
    machine.run(
        |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) }.unwrap();
            kernel.bring_up(boot, &[2, 3]);
            let postponed = outcome(&kernel, 3);
            assert_eq!(postponed.path, Path::Postponed);
            assert_eq!(postponed.error, Some(Error::SiblingsNotHeld { cpu: 2 }));
            assert_eq!(machine.registers(3), another_map(), "nothing was written");
            assert_eq!(machine.counters(3).register_writes(), 0);
            let off: Vec<usize> = kernel.sync.report().out_of_sync().map(|c| c.cpu).collect();
            assert_eq!((off, kernel.sync.online()), (vec![3], 2));
            let summary = kernel.resync(boot).unwrap();
            assert_eq!(
                (summary.cpus, summary.differed, summary.out_of_sync),
                (3, 1, 0)
            );
        },
        |ap| {
            let me = ap.number();
            ap.work(1000);
            // Interrupts of CPU 2 stay masked for longer than CPU 3 asks.
            let _ = kernel.sync.ap_online(ap, me, |_| {}).unwrap();
            kernel.signal(me);
            ap.work(if me == 2 { 60_000_000 } else { 1000 });
            ap.sti();
            while ap.halt_until_ipi() {}
        },
        |cpu| kernel.interrupt(cpu),
    );
    for cpu in [2, 3] {
        assert_cpu(&machine, cpu, &firmware_map(), "after the rendezvous");
    }
    machine.check().unwrap();
}

#[test]
fn a_polling_sibling_is_waited_for_without_a_callback() {
    // CPU 1's only sibling is the boot CPU, which polls in its wait loop.
    let machine = Machine::new(two_by_two(MtrrScope::Thread));
    let kernel = Kernel::new();
    machine.run(
        |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) }.unwrap();
            assert!(kernel.bring_up(boot, &[1]).is_empty());
        },
        |ap| {
            let _ = kernel.sync.ap_online(ap, 1, |_| {}).unwrap();
            kernel.signal(1);
        },
        |_| {},
    );
    assert_eq!(outcome(&kernel, 1).path, Path::Window);
    assert_eq!(ipis(&machine), 0);
    let boot = kernel.sync.report().cpus().next().unwrap();
    assert_eq!((boot.cpu, boot.holds), (0, 1));
    machine.check().unwrap();
}

#[test]
fn unknown_siblings_count_as_running() {
    for scope in SCOPES {
        let mut config = Config::new(3, 1);
        config.scope = scope;
        config.aps = another_map();
        // No topology leaf, and leaf 1 says that there may be other threads, but not how many.
        let leaf_0 = CpuidWords {
            eax: 4,
            ebx: u32::from_le_bytes(*b"Genu"),
            ecx: u32::from_le_bytes(*b"ntel"),
            edx: u32::from_le_bytes(*b"ineI"),
        };
        config.cpuid.push((None, 0, 0, leaf_0));
        for cpu in 0..3 {
            let leaf_1 = CpuidWords {
                eax: config.signature,
                ebx: cpu << 24 | 8 << 8,
                ecx: 1 << 21 | 1,
                edx: 0x1f8b_fbff,
            };
            config.cpuid.push((Some(cpu as usize), 1, 0, leaf_1));
        }
        let machine = Machine::new(config);
        let kernel = Kernel::new();
        kernel.run(&machine, |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) }.unwrap();
            assert_eq!(kernel.sync.platform().unwrap().smt_shift, None);
            kernel.bring_up(boot, &[1, 2]);
            for cpu in [1, 2] {
                let error = outcome(&kernel, cpu).error;
                assert_eq!(error, Some(Error::TopologyUnknown));
                assert_eq!(outcome(&kernel, cpu).path, Path::Postponed);
                assert_eq!(machine.registers(cpu), another_map());
            }
            assert_eq!(kernel.resync(boot).unwrap().out_of_sync, 0);
        });
        // Any two may share a core: one after the other.
        let all = windows(&machine);
        assert_eq!(all.len(), 2);
        assert!(!all[0].overlaps(&all[1]), "{all:?}");
        assert_all_in_line(&kernel, &machine, "unknown");
    }
}

#[test]
fn the_kernels_word_about_a_place_is_taken() {
    // CPUID knows nothing; the kernel knows that each CPU has a core of its own.
    let mut config = Config::new(3, 1);
    config.aps = another_map();
    let machine = Machine::new(config);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let _ = unsafe {
            kernel.sync.boot_init_at(
                boot,
                0,
                Place::Core { core: 5, thread: 0 },
                policy(Resync::Early),
            )
        }
        .unwrap();
        // One CPU of unknown place makes everybody's siblings unknown.
        kernel.start_at(boot, 1, Place::Unknown).unwrap();
        assert!(kernel.wait_for(boot, 1));
        assert_eq!(outcome(&kernel, 1).error, Some(Error::TopologyUnknown));
        unsafe { kernel.sync.offline(1) }.unwrap();
        let place = Place::Core {
            core: 77,
            thread: 0,
        };
        kernel.start_at(boot, 1, place).unwrap();
        assert!(kernel.wait_for(boot, 1));
        assert_eq!(outcome(&kernel, 1).path, Path::Window);
        let place = Place::Core { core: 6, thread: 0 };
        kernel.start_at(boot, 2, place).unwrap();
        assert!(kernel.wait_for(boot, 2));
        assert_eq!(outcome(&kernel, 2).path, Path::Window);
    });
    assert_all_in_line(&kernel, &machine, "the kernel's word");
}
