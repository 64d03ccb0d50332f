//! CPUs that are declared or polled for around the call of a rendezvous: whoever may be started is in it,
//! and whoever is in it sees all others.

use crate::common::{Kernel, policy};
use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::error::Error;
use mtrr_pat::policy::Resync;
use mtrr_pat::sim::{At, Config, Fault, Machine, MtrrScope, SimCpu, What, firmware_map};
use mtrr_pat::snapshot::Snapshot;
use mtrr_pat::sync::Summary;

/// The firmware's map with one register changed.
fn new_map() -> Snapshot {
    let mut map = firmware_map();
    map.fixed[5] = 0;
    map
}

/// What the CPUs of one run tell each other.
struct Run {
    machine: Machine,
    kernel: Kernel,
    /// The boot CPU is about to call the rendezvous.
    calls: Word,
    /// CPU 3 was declared.
    declared: Word,
    /// The rendezvous is over.
    over: Word,
    /// CPU 2 is in `attend`.
    attends: Word,
    /// CPU 3 was declared, and the rendezvous called, while CPU 2 was interrupted in `attend`.
    overtaken: Word,
}

impl Run {
    fn new(config: Config) -> Self {
        Self {
            machine: Machine::new(config),
            kernel: Kernel::new(),
            calls: Word::new(0),
            declared: Word::new(0),
            over: Word::new(0),
            attends: Word::new(0),
            overtaken: Word::new(0),
        }
    }

    /// CPUs said to be in line that do not hold the new map.
    fn wrongly_in_line(&self) -> Vec<usize> {
        let cpus = self.kernel.sync.report().cpus();
        cpus.filter(|line| line.in_sync())
            .map(|line| line.cpu)
            .filter(|cpu| self.machine.registers(*cpu).fixed != new_map().fixed)
            .collect()
    }

    fn online(&self, ap: &mut SimCpu<'_>) {
        let me = ap.number();
        let ipis = ap.ipis();
        let _ = self
            .kernel
            .sync
            .ap_online(ap, me, |sibling| ipis.send(sibling));
        self.kernel.signal(me);
        ap.sti();
    }
}

/// The boot CPU loses time before its `op`-th instruction, as if SMM took it away. If that is in its
/// call of a rendezvous, CPU 1 declares and starts CPU 3 meanwhile.
fn change_while_another_is_declared(op: u64) -> (Run, Result<Summary, Error>) {
    let mut config = Config::new(2, 2);
    config.scope = MtrrScope::Thread;
    config.faults = vec![Fault::new(0, At::Op(op), What::Delay(300_000_000))];
    let run = Run::new(config);
    let met = run.machine.run(
        |boot| {
            run.kernel.init(boot, policy(Resync::Early));
            assert!(run.kernel.bring_up(boot, &[1, 2]).is_empty());
            run.calls.store(1, Ordering::Release);
            let met = run.kernel.change(boot, &new_map());
            boot.work(2_000_000);
            met
        },
        |ap| {
            run.online(ap);
            match ap.number() {
                1 => start_another(&run, ap),
                3 => ap.work(1_000_000),
                _ => {}
            }
            while ap.halt_until_ipi() {}
        },
        |cpu| run.kernel.interrupt(cpu),
    );
    (run, met)
}

/// CPU 1 declares and starts CPU 3 a little after the boot CPU set out to call.
fn start_another(run: &Run, ap: &mut SimCpu<'_>) {
    while run.calls.load(Ordering::Acquire) == 0 {
        let now = ap.rdtsc();
        ap.pause_while(&run.calls, 0, now + 1_000_000);
    }
    let since = ap.rdtsc();
    while ap.rdtsc() < since + 100_000 {
        ap.work(1000);
    }
    if run.kernel.start(ap, 3).is_ok() {
        run.declared.store(1, Ordering::Release);
    }
}

#[test]
fn a_cpu_declared_just_before_the_call_is_in_the_rendezvous() {
    let mut meant = 0;
    for op in 1..260 {
        let (run, met) = change_while_another_is_declared(op);
        let met = met.unwrap();
        run.machine
            .check()
            .unwrap_or_else(|broken| panic!("{op}: {broken}"));
        assert_eq!(run.wrongly_in_line(), [0; 0], "{op}: {met}");
        if met.cpus == 4 {
            assert_eq!(run.declared.load(Ordering::Acquire), 1, "{op}");
            meant += 1;
        }
    }
    assert!(meant > 0, "no case was the one meant");
}

/// CPUs 1 and 2 poll for rendezvous; a device interrupts CPU 2 for 100 us, while the boot CPU declares
/// its sibling CPU 3 and calls a rendezvous.
fn change_while_another_polls(phase: u64) -> (Run, Result<Summary, Error>) {
    let mut config = Config::new(1, 4);
    config.scope = MtrrScope::Thread;
    let run = Run::new(config);
    let met = run.machine.run(
        |boot| {
            run.kernel.init(boot, policy(Resync::Early));
            assert!(run.kernel.bring_up(boot, &[2, 1]).is_empty());
            boot.work(10_000 + phase * 7);
            boot.send_ipi(2);
            run.kernel.start(boot, 3).unwrap();
            run.declared.store(1, Ordering::Release);
            let met = unsafe { run.kernel.sync.change(boot, 0, &new_map(), |_| {}) };
            run.over.store(1, Ordering::Release);
            met
        },
        |ap| {
            run.online(ap);
            poll(&run, ap);
        },
        |cpu| device(&run, cpu),
    );
    (run, met)
}

fn poll(run: &Run, ap: &mut SimCpu<'_>) {
    let me = ap.number();
    while run.over.load(Ordering::Acquire) == 0 {
        let _ = run.kernel.sync.hold_point(ap, me);
        if me == 2 {
            run.attends.store(1, Ordering::Release);
        }
        let _ = run.kernel.sync.attend(ap, me);
        if me == 2 {
            run.attends.store(0, Ordering::Release);
        }
    }
}

/// A handler that takes its time; that of a kick has nothing to do but stand still.
fn device(run: &Run, cpu: &mut SimCpu<'_>) {
    let me = cpu.number();
    if me == 2 && run.kernel.sync.online() >= 3 {
        let before = run.declared.load(Ordering::Acquire);
        cpu.work(300_000);
        let after = run.declared.load(Ordering::Acquire);
        if before < after && run.attends.load(Ordering::Acquire) == 1 {
            run.overtaken.store(1, Ordering::Release);
        }
    } else {
        let _ = run.kernel.sync.hold_point(cpu, me);
    }
}

#[test]
fn a_cpu_that_polls_while_another_is_declared_waits_for_its_turn() {
    let mut meant = 0;
    for phase in 0..200 {
        let (run, met) = change_while_another_polls(phase);
        run.machine
            .check()
            .unwrap_or_else(|broken| panic!("{phase}: {broken}"));
        assert_eq!(met.unwrap().out_of_sync, 0, "{phase}");
        meant += run.overtaken.load(Ordering::Acquire);
    }
    assert!(meant > 0, "no case was the one meant");
}
