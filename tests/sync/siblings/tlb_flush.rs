//! A CPU whose sibling had a window flushes its own TLB, even when its registers compare equal.

use crate::common::{Kernel, assert_all_equal, outcome, policy};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::memtype::PatType;
use mtrr_pat::policy::Resync;
use mtrr_pat::report::Path;
use mtrr_pat::sim::{Config, Machine, MtrrScope, Op, SimCpu, firmware_map};

/// Kernel data every CPU uses; not global, so that only its own flush reaches it.
const DATA: u64 = 0x1_2345_6000;

fn machine(mode_threads: usize) -> Machine {
    let mut config = Config::new(2, mode_threads);
    config.scope = MtrrScope::Core;
    // Firmware left the second core's MTRRs off: all that its threads touch is uncachable.
    config.aps.def_type = config.aps.def_type.disabled();
    config.ap_cr0 = 0x10;
    Machine::new(config)
}

#[test]
fn a_thread_that_finds_its_shared_set_in_line_already_drops_its_old_translations() {
    let machine = machine(2);
    let kernel = Kernel::new();
    machine.run(
        |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Deferred)) }.unwrap();
            kernel.bring_up(boot, &[2, 3]);
            let summary = kernel.resync(boot).unwrap();
            assert_eq!((summary.cpus, summary.out_of_sync), (3, 0));
            // Nothing shows in the registers: CPU 2 wrote them for both.
            assert_eq!(outcome(&kernel, 2).path, Path::Window);
            assert_eq!(outcome(&kernel, 3).path, Path::Flush);
            boot.send_ipi(2);
            boot.send_ipi(3);
            boot.work(100_000);
        },
        |ap| {
            let me = ap.number();
            ap.load(DATA);
            let _ = kernel.sync.ap_online(ap, me, |_| {}).unwrap();
            kernel.signal(me);
            ap.sti();
            while ap.halt_until_ipi() {
                ap.load(DATA);
            }
        },
        |cpu| {
            kernel.interrupt(cpu);
        },
    );
    // CPU 3 held `DATA` as uncachable before: using that entry again would break a rule.
    machine.check().unwrap();
    assert!(machine.stale_entries(3).is_empty());
    let loads = |cpu| {
        machine
            .ops(cpu)
            .iter()
            .filter(|op| **op == Op::Load(DATA))
            .count()
    };
    assert!(loads(3) >= 2, "it was used before and after");
    let types: Vec<PatType> = machine
        .stale_entries(2)
        .iter()
        .map(|entry| entry.1)
        .collect();
    assert!(types.is_empty());
}

#[test]
fn a_waiter_whose_sibling_writes_drops_its_old_translations_too() {
    // CPU 3 is in line; then SMM rewrites the set of its core, and CPU 2 comes up and, whose turn is
    // first, mends it.
    let machine = machine(2);
    let kernel = Kernel::new();
    let uses = Word::new(0);
    let use_data = |boot: &mut SimCpu<'_>| {
        let seen = uses.load(Ordering::Acquire);
        boot.send_ipi(3);
        while uses.load(Ordering::Acquire) == seen {
            boot.pause_while(&uses, seen, u64::MAX);
        }
    };
    machine.run(
        |boot| {
            let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Deferred)) }.unwrap();
            kernel.bring_up(boot, &[3]);
            let _ = kernel.resync(boot).unwrap();
            let mut broken = firmware_map();
            broken.def_type = broken.def_type.disabled();
            machine.set_registers(3, &broken);
            // CPU 3 touches `DATA` for the first time: uncachable.
            use_data(boot);
            kernel.bring_up(boot, &[2]);
            machine.clear_log();
            let summary = kernel.resync(boot).unwrap();
            assert_eq!(summary.out_of_sync, 0);
            assert_eq!(machine.counters(3).wrmsr, 0, "it only waited");
            assert_eq!(outcome(&kernel, 2).path, Path::Window);
            assert_eq!(outcome(&kernel, 3).path, Path::Flush);
            use_data(boot);
        },
        |ap| {
            let me = ap.number();
            let _ = kernel.sync.ap_online(ap, me, |_| {}).unwrap();
            kernel.signal(me);
            ap.sti();
            while ap.halt_until_ipi() {
                let broken = !machine.registers(me).def_type.enabled();
                let mended = machine.ops(2).iter().any(|op| matches!(op, Op::Wrmsr(..)));
                if me == 3 && (broken || mended) {
                    ap.load(DATA);
                    let seen = uses.load(Ordering::Acquire);
                    uses.store(seen + 1, Ordering::Release);
                }
            }
        },
        |cpu| {
            kernel.interrupt(cpu);
        },
    );
    machine.check().unwrap();
    assert!(machine.ops(3).contains(&Op::Load(DATA)));
    assert!(machine.stale_entries(3).is_empty());
}

#[test]
fn a_cpu_without_siblings_pays_nothing_for_the_rule() {
    let machine = machine(1);
    let kernel = Kernel::new();
    kernel.run(&machine, |boot| {
        let _ = unsafe { kernel.sync.boot_init(boot, 0, policy(Resync::Early)) }.unwrap();
        kernel.bring_up(boot, &[1]);
        let writes = machine.counters(0).cr4_writes;
        assert_eq!(
            writes, 0,
            "a window of another core is none of the boot CPU's business"
        );
    });
    assert_all_equal(&machine, "no siblings");
    machine.check().unwrap();
}
