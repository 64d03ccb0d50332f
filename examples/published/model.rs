//! A kernel's resume on the simulated machine, with the work it does as parameters.
//!
//! The laws, chosen with the published table in view:
//! - what an AP executes before its sync grows with the CPUs that are online; what it executes
//!   after it does not;
//! - between two APs the boot CPU does something for every CPU that is online, and calls every
//!   other one, one at a time, to do something itself;
//! - idle CPUs sleep, except those whose core another thread is coming up on;
//! - the firmware leaves the boot CPU's core alone, and E clear on all others.
//!
//! Speeds (cached, uncached, beside an uncached sibling) are the simulator's defaults.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::policy::{CacheFlush, Policy, Resync};
use mtrr_pat::sim::{Config, Costs, Machine, MtrrScope, S3, Scribble, SimCpu, Trampoline};
use mtrr_pat::sync::CacheSync;
use mtrr_pat::topology::Place;

use super::figures::Computer;

const CPUS: usize = 8;
const MS: f64 = 1e9;

/// What the kernel does, in instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    /// By an AP before its sync, for each CPU that is online, itself included.
    pub before: u64,
    /// By an AP after its sync, until it is up.
    pub after: u64,
    /// By the boot CPU between two APs, for each CPU that is online.
    pub between: u64,
    /// By each other CPU that is online, when the boot CPU calls it between two APs.
    pub called: u64,
}

/// What idle CPUs do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Sleep, unless another thread of the core is coming up.
    Sleep,
    /// Poll: they fetch all the time.
    Poll,
}

/// When all CPUs meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meet {
    /// Not before the last AP is up.
    AtTheEnd,
    /// For the sync of each AP, as the published early kernel does it. With [`Resync::Deferred`].
    ForEachAp,
}

/// One resume to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Model {
    pub computer: Computer,
    pub scope: MtrrScope,
    pub mode: Resync,
    pub work: Work,
    pub idle: Idle,
    pub meet: Meet,
}

/// What came out, in milliseconds: from start to up, from up to the next start, for each AP.
#[derive(Clone, Debug, PartialEq)]
pub struct Resumed {
    pub rows: Vec<(f64, f64)>,
    /// Summed over the APs: how long they stood still for others, held or in a rendezvous.
    pub still: f64,
}

impl Resumed {
    pub fn total(&self) -> f64 {
        self.rows.iter().map(|(up, next)| up + next).sum()
    }
}

/// The words this kernel's CPUs share.
struct Kernel {
    sync: CacheSync<CPUS>,
    up: [Word; CPUS],
    /// Not 0: this CPU does not sleep when idle.
    awake: [Word; CPUS],
    /// Counts calls, and answers to them.
    call: [Word; CPUS],
    answer: [Word; CPUS],
    /// An AP reached its sync; it may go on.
    arrived: [Word; CPUS],
    go: [Word; CPUS],
    /// Picoseconds APs stood still; no part of the simulation.
    still: AtomicU64,
    model: Model,
}

impl Model {
    /// The machine of the model; its log begins when it wakes.
    pub fn machine(&self) -> Machine {
        let mut config = Config::new(self.computer.cores, self.computer.threads);
        config.scope = self.scope;
        config.trampoline = Trampoline::EnablesCaching;
        config.log = false;
        config.timeline = true;
        config.costs.slice = 10_000_000_000;
        Machine::new(config)
    }

    pub fn run(&self) -> Resumed {
        self.run_on(&self.machine())
    }

    /// Runs it on a machine that can be looked at afterwards.
    pub fn run_on(&self, machine: &Machine) -> Resumed {
        let kernel = Kernel::new(*self);
        let rows = machine.run(
            |boot| kernel.resume(boot),
            |ap| kernel.ap(ap),
            |cpu| kernel.interrupt(cpu),
        );
        machine.check().expect("the rules are kept");
        let still = kernel.still.load(Relaxed) as f64 / MS;
        Resumed { rows, still }
    }

    /// The boot CPU's own part of bringing up one AP, always cached. Given by the AP with APIC id
    /// 1, which is cached throughout: the rest of its published early time.
    fn boot_side(&self) -> u64 {
        let costs = Costs::default();
        let early = self.computer.published(Resync::Early);
        let place = early.iter().position(|figure| figure.apic == 1);
        let place = place.expect("an AP with APIC id 1");
        let ap = self.work.before * (place as u64 + 2) + self.work.after;
        let whole = (early[place].up * MS) as u64 / costs.cached_instruction;
        whole.saturating_sub(ap + costs.start_instructions)
    }
}

impl Kernel {
    fn new(model: Model) -> Self {
        let words = || [const { Word::new(0) }; CPUS];
        let awake = words();
        if model.idle == Idle::Poll {
            awake
                .iter()
                .for_each(|word| word.store(1, Ordering::Release));
        }
        Self {
            sync: CacheSync::new(),
            up: words(),
            awake,
            call: words(),
            answer: words(),
            arrived: words(),
            go: words(),
            still: AtomicU64::new(0),
            model,
        }
    }

    /// Boots, suspends with no AP up, wakes, and brings up all APs: milliseconds of each.
    fn resume(&self, boot: &mut SimCpu<'_>) -> Vec<(f64, f64)> {
        let Model { computer, mode, .. } = self.model;
        let policy = Policy {
            resync: mode,
            // The kernels of the published figures flushed in every window.
            cache_flush: CacheFlush::Always,
            ..Policy::DEFAULT
        };
        let scribble = Scribble::only_cores(1..computer.cores, Scribble::Off);
        let _ = unsafe { self.sync.boot_init(boot, 0, policy) }.expect("first call");
        self.sync.suspend(boot, 0).expect("running");
        boot.s3(&S3::aps(scribble).with_ap_cr0(0x10));
        boot.machine().clear_log();
        let _ = unsafe { self.sync.boot_resume(boot, 0) }.expect("suspended");
        boot.sti();
        let rows = (0..computer.order.len())
            .map(|place| self.bring_up(boot, place))
            .collect();
        for word in &self.awake {
            word.store(0, Ordering::Release);
        }
        rows
    }

    fn bring_up(&self, boot: &mut SimCpu<'_>, place: usize) -> (f64, f64) {
        let order = self.model.computer.order;
        let ap = order[place];
        let now = |boot: &SimCpu<'_>| boot.machine().time(0) as f64 / MS;
        let start = now(boot);
        boot.work(self.model.boot_side());
        self.wake_siblings(boot, ap, &order[..place], 1);
        let apic = Place::Apic(ap as u32);
        unsafe { self.sync.starting(boot, ap, apic) }.expect("not running yet");
        boot.send_init_sipi(ap);
        if self.model.meet == Meet::ForEachAp {
            self.wait(boot, &self.arrived[ap]);
            self.meet(boot);
            self.go[ap].store(1, Ordering::Release);
        }
        self.wait(boot, &self.up[ap]);
        self.wake_siblings(boot, ap, &order[..place], 0);
        let up = now(boot);
        if place + 1 < order.len() {
            boot.work(self.model.work.between); // for itself
            for &online in &order[..=place] {
                boot.work(self.model.work.between);
                self.call(boot, online);
            }
        } else {
            self.meet(boot);
            boot.work(self.model.boot_side());
        }
        (up - start, now(boot) - up)
    }

    /// Waits on the boot CPU for a word to become 1, as every wait loop must.
    fn wait(&self, boot: &mut SimCpu<'_>, word: &Word) {
        while word.load(Ordering::Acquire) == 0 {
            self.sync.hold_point(boot, 0).expect("a number in range");
            boot.pause_while(word, 0, u64::MAX);
        }
    }

    fn meet(&self, boot: &mut SimCpu<'_>) {
        let ipis = boot.ipis();
        let met = self.sync.resync(boot, 0, |n| ipis.send(n));
        assert_eq!(met.map(|summary| summary.out_of_sync), Ok(0));
    }

    /// The threads of an AP's core that are online stay awake while it comes up.
    fn wake_siblings(&self, boot: &mut SimCpu<'_>, ap: usize, online: &[usize], awake: u32) {
        if self.model.idle == Idle::Poll {
            return;
        }
        let core = ap / self.model.computer.threads;
        for &sibling in online {
            if sibling / self.model.computer.threads == core {
                self.awake[sibling].store(awake, Ordering::Release);
                boot.send_ipi(sibling);
            }
        }
    }

    fn call(&self, boot: &mut SimCpu<'_>, cpu: usize) {
        let call = self.call[cpu].load(Ordering::Relaxed) + 1;
        self.call[cpu].store(call, Ordering::Release);
        boot.send_ipi(cpu);
        while self.answer[cpu].load(Ordering::Acquire) != call {
            boot.pause_while(&self.answer[cpu], call - 1, u64::MAX);
        }
    }

    fn ap(&self, ap: &mut SimCpu<'_>) {
        let Work { before, after, .. } = self.model.work;
        let (me, ipis) = (ap.number(), ap.ipis());
        let order = self.model.computer.order;
        let place = order.iter().position(|n| *n == me).expect("in the order");
        ap.work(before * (place as u64 + 2));
        let outcome = self.sync.ap_online(ap, me, |n| ipis.send(n));
        assert!(outcome.is_ok_and(|outcome| outcome.error.is_none()));
        if self.model.meet == Meet::ForEachAp {
            self.arrived[me].store(1, Ordering::Release);
            ap.sti();
            while self.go[me].load(Ordering::Acquire) == 0 {
                ap.pause_while(&self.go[me], 0, u64::MAX);
            }
            ap.cli();
        }
        ap.work(after);
        self.up[me].store(1, Ordering::Release);
        ap.sti();
        loop {
            while self.awake[me].load(Ordering::Acquire) != 0 {
                ap.pause_while(&self.awake[me], 1, u64::MAX);
            }
            if !ap.halt_until_ipi() {
                return;
            }
        }
    }

    fn interrupt(&self, cpu: &mut SimCpu<'_>) {
        let me = cpu.number();
        let before = cpu.machine().time(me);
        self.sync.hold_point(cpu, me).expect("no stuck sibling");
        self.sync.attend(cpu, me).expect("it is online");
        if me != 0 {
            let still = cpu.machine().time(me) - before;
            self.still.fetch_add(still, Relaxed);
        }
        let call = self.call[me].load(Ordering::Acquire);
        if call != self.answer[me].load(Ordering::Relaxed) {
            cpu.work(self.model.work.called);
            self.answer[me].store(call, Ordering::Release);
        }
    }
}
