//! A simulated machine's life under one way of syncing: boot, S3, every AP up again, everybody in line; or a map that changes while
//! all caches are full. What it takes, in virtual time and in operations.

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::{CR0_CD, CpuOps};
use mtrr_pat::memtype::MemType;
use mtrr_pat::regs::VariableMtrr;
use mtrr_pat::sim::{Activity, Counters, Machine, S3, SimCpu};
use mtrr_pat::snapshot::Snapshot;
use mtrr_pat::topology::{Place, bringup_order};
use std::sync::atomic::{AtomicBool, Ordering as Std};

/// A way of giving every CPU the boot CPU's memory types.
pub trait Method: Sync {
    /// Boot CPU, at power-on.
    fn boot(&self, boot: &mut SimCpu<'_>);
    /// Boot CPU, before the SIPI of this AP; interrupts masked.
    fn starting(&self, boot: &mut SimCpu<'_>, ap: usize);
    /// An AP, before it says that it is up.
    fn online(&self, ap: &mut SimCpu<'_>);
    /// Any CPU, in the interrupt handler.
    fn attend(&self, cpu: &mut SimCpu<'_>);
    /// Boot CPU, when the last AP is up: returns when everybody is in line.
    fn meet(&self, boot: &mut SimCpu<'_>);
    /// Boot CPU, before S3.
    fn suspend(&self, boot: &mut SimCpu<'_>);
    /// Boot CPU, after it woke.
    fn wake(&self, boot: &mut SimCpu<'_>);
    /// Boot CPU: another map for everybody, who all run.
    fn change(&self, boot: &mut SimCpu<'_>, want: &Snapshot);
}

/// Instructions an AP executes before and after its sync on the way up. Assumed.
const BRING_UP: (u64, u64) = (1_000, 100_000);

/// What one life took. Times are picoseconds of the boot CPU.
#[derive(Clone)]
pub struct Figures {
    /// From the wake of the boot CPU to everybody in line.
    pub resume: u64,
    /// The part of it after the last AP was up; or the run-time change.
    pub rendezvous: u64,
    /// Of every CPU, in the rendezvous or, where there was none to speak of, while coming up.
    pub counters: Vec<Counters>,
    /// The most windows that follow one another without overlap in the rendezvous.
    pub in_series: usize,
    /// Rules broken from the wake on, in which a CPU did what hardware punishes silently.
    pub broken: usize,
}

/// One machine and what runs on it.
pub struct Life<'a> {
    method: &'a dyn Method,
    machine: Machine,
    up: Vec<Word>,
    /// Whether bring-up work costs time: not before the part that is measured.
    busy: AtomicBool,
    /// Whether interrupts ask a CPU to fill its caches.
    filling: AtomicBool,
    filled: Vec<Word>,
    /// All APs start at once.
    parallel: bool,
}

impl<'a> Life<'a> {
    pub fn new(method: &'a dyn Method, machine: Machine) -> Self {
        let words = || (0..machine.config().cpus()).map(|_| Word::new(0)).collect();
        Self {
            method,
            up: words(),
            busy: AtomicBool::new(false),
            filling: AtomicBool::new(false),
            filled: words(),
            parallel: false,
            machine,
        }
    }

    /// The same, but that all APs are started at once.
    pub fn in_parallel(mut self, parallel: bool) -> Self {
        self.parallel = parallel;
        self
    }

    /// Boots, sleeps, wakes with what `profile` leaves, and brings everybody in line.
    pub fn resume(&self, profile: &S3) -> Figures {
        self.run(|boot| {
            self.method.boot(boot);
            self.bring_up(boot);
            self.method.meet(boot);
            self.method.suspend(boot);
            boot.s3(profile);
            self.machine.clear_log();
            self.busy.store(true, Std::Relaxed);
            let woke = self.machine.time(0);
            self.method.wake(boot);
            self.bring_up(boot);
            let coming_up = self.counters();
            let broken = self.machine.violations().len();
            let mut figures = self.rendezvous(boot, |boot| self.method.meet(boot));
            if figures.counters.iter().all(|one| one.rdmsr == 0) {
                figures.counters = coming_up;
            }
            figures.resume = self.machine.time(0) - woke;
            figures.broken += broken;
            figures
        })
    }

    /// Boots, fills every cache with dirty lines, and gives the running machine another map.
    pub fn change(&self, base: u64, memtype: MemType) -> Figures {
        self.run(|boot| {
            self.method.boot(boot);
            self.bring_up(boot);
            self.method.meet(boot);
            self.fill_caches(boot);
            let want = with_another_range(self.machine.registers(0), base, memtype);
            self.rendezvous(boot, |boot| self.method.change(boot, &want))
        })
    }

    /// Boots, and sets the map to what it is.
    pub fn same_map(&self) -> Figures {
        self.run(|boot| {
            self.method.boot(boot);
            self.bring_up(boot);
            self.method.meet(boot);
            let want = self.machine.registers(0);
            self.rendezvous(boot, |boot| self.method.change(boot, &want))
        })
    }

    fn run(&self, boot: impl FnOnce(&mut SimCpu<'_>) -> Figures) -> Figures {
        let figures = self
            .machine
            .run(boot, |ap| self.ap(ap), |cpu| self.interrupt(cpu));
        self.check();
        figures
    }

    /// A row about machines that are not in line afterwards would be worth nothing.
    fn check(&self) {
        let want = self.machine.registers(0);
        assert!(want.def_type.enabled());
        for cpu in 0..self.up.len() {
            let have = self.machine.registers(cpu);
            let same = have.variable_ranges() == want.variable_ranges()
                && have.fixed == want.fixed
                && have.def_type == want.def_type;
            assert!(same, "CPU {cpu} differs from the boot CPU");
            let (cr0, ..) = self.machine.control_registers(cpu);
            assert_eq!(cr0 & CR0_CD, 0, "CPU {cpu} has caching off");
        }
    }

    fn rendezvous(&self, boot: &mut SimCpu<'_>, meet: impl FnOnce(&mut SimCpu<'_>)) -> Figures {
        self.machine.clear_log();
        let start = self.machine.time(0);
        meet(boot);
        let rendezvous = self.machine.time(0) - start;
        Figures {
            resume: rendezvous,
            rendezvous,
            counters: self.counters(),
            in_series: self.in_series(),
            broken: self.machine.violations().len(),
        }
    }

    fn counters(&self) -> Vec<Counters> {
        (0..self.up.len())
            .map(|cpu| self.machine.counters(cpu))
            .collect()
    }

    /// The largest number of windows of which none overlaps another.
    fn in_series(&self) -> usize {
        let spans = (0..self.up.len()).flat_map(|cpu| self.machine.timeline(cpu));
        let mut windows: Vec<(u64, u64)> = spans
            .filter(|span| span.activity == Activity::Window)
            .map(|span| (span.end, span.start))
            .collect();
        windows.sort_unstable();
        let mut free = 0;
        let mut count = 0;
        for (end, start) in windows {
            if start >= free {
                count += 1;
                free = end;
            }
        }
        count
    }

    /// Starts the APs one at a time, or all at once; first threads first.
    fn bring_up(&self, boot: &mut SimCpu<'_>) {
        let config = self.machine.config();
        let places: Vec<Place> = (0..config.cpus())
            .map(|n| Place::Apic(config.apic_id(n)))
            .collect();
        let shift = u8::try_from(config.smt_shift()).ok();
        let order = || bringup_order(&places, shift).filter(|ap| *ap != 0);
        if self.parallel {
            boot.cli();
            for ap in order() {
                self.up[ap].store(0, Ordering::Release);
                self.method.starting(boot, ap);
            }
            order().for_each(|ap| boot.send_init_sipi(ap));
            boot.sti();
            return order().for_each(|ap| wait(boot, &self.up[ap], 1));
        }
        for ap in order() {
            self.up[ap].store(0, Ordering::Release);
            boot.cli();
            self.method.starting(boot, ap);
            boot.send_init_sipi(ap);
            boot.sti();
            wait(boot, &self.up[ap], 1);
        }
    }

    fn ap(&self, ap: &mut SimCpu<'_>) {
        let busy = self.busy.load(Std::Relaxed);
        let (before, after) = if busy { BRING_UP } else { (0, 0) };
        ap.work(before);
        self.method.online(ap);
        ap.work(after);
        self.up[ap.number()].store(1, Ordering::Release);
        ap.sti();
        while ap.halt_until_ipi() {}
    }

    fn interrupt(&self, cpu: &mut SimCpu<'_>) {
        if self.filling.load(Std::Relaxed) {
            self.fill_own_share(cpu);
            self.filled[cpu.number()].store(1, Ordering::Release);
        } else {
            self.method.attend(cpu);
        }
    }

    fn fill_caches(&self, boot: &mut SimCpu<'_>) {
        self.filling.store(true, Std::Relaxed);
        for ap in 1..self.up.len() {
            boot.send_ipi(ap);
        }
        self.fill_own_share(boot);
        for filled in &self.filled[1..] {
            wait(boot, filled, 1);
        }
        self.filling.store(false, Std::Relaxed);
    }

    /// As much work as leaves this thread's share of its core's and last-level cache dirty.
    fn fill_own_share(&self, cpu: &mut SimCpu<'_>) {
        let config = self.machine.config();
        let costs = &config.costs;
        let lines = costs.core_lines + costs.llc_lines / config.cores_per_llc.max(1) as u64;
        let share = lines.div_ceil(config.threads as u64);
        cpu.work(share * 1000 / costs.dirty_per_1000.max(1));
    }
}

/// Waits until another CPU has stored `value`, taking interrupts.
pub fn wait(cpu: &mut SimCpu<'_>, word: &Word, value: u32) {
    loop {
        let seen = word.load(Ordering::Acquire);
        if seen == value {
            return;
        }
        cpu.pause_while(word, seen, u64::MAX);
    }
}

/// What a graphics driver asks for: write combining for a quarter of a gigabyte below 4 GiB.
fn with_another_range(mut registers: Snapshot, base: u64, memtype: MemType) -> Snapshot {
    let range = VariableMtrr::from_block(base, 0x1000_0000, memtype, registers.phys_bits);
    let last = registers.variable_count() - 1;
    registers.variable[last] = range.expect("an aligned block");
    registers
}
