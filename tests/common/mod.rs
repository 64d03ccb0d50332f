//! A kernel for the simulated machine, written against the public API as a kernel author would.
#![allow(dead_code)] // each test file uses its part

pub mod dice;
pub mod lists;
pub mod matrix;
pub mod one_cpu;
pub mod smm;
pub mod timeline;
pub mod wrapped;

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CpuOps};
use mtrr_pat::error::Error;
use mtrr_pat::platform::Platform;
use mtrr_pat::policy::{Bounds, PatChoice, Policy, Resync};
use mtrr_pat::regs::VariableMtrr;
use mtrr_pat::sim::{Machine, MtrrScope, Op, S3, SimCpu};
use mtrr_pat::snapshot::Snapshot;
use mtrr_pat::sync::{CacheSync, Summary};
use mtrr_pat::topology::Place;

pub const CPUS: usize = 64;

/// What one run of the kernel shares between its CPUs.
pub struct Kernel {
    pub sync: CacheSync<CPUS>,
    /// Bumped by each AP when it is up.
    up: [Word; CPUS],
    /// Instructions an AP executes before and after its `ap_online`.
    pub work: (u64, u64),
    /// Ticks the boot CPU waits for an AP.
    pub patience: u64,
}

/// A bound in ticks of the simulated machine, which are nanoseconds.
pub fn ticks(bound: std::time::Duration) -> u64 {
    bound.as_nanos() as u64
}

/// Bounds that let a test with a missing CPU end soon in virtual time (ticks are nanoseconds).
pub const BOUNDS: Bounds = Bounds {
    gather: std::time::Duration::from_nanos(20_000_000),
    hold: std::time::Duration::from_nanos(2_000_000),
    finish: std::time::Duration::from_nanos(50_000_000),
};

pub fn policy(resync: Resync) -> Policy {
    Policy {
        resync,
        bounds: BOUNDS,
        ..Policy::DEFAULT
    }
}

pub fn with_pat(mut policy: Policy, pat: mtrr_pat::pat::Pat) -> Policy {
    policy.pat = PatChoice::Layout(pat);
    policy
}

pub const SCOPES: [MtrrScope; 2] = [MtrrScope::Core, MtrrScope::Thread];
pub const MODES: [Resync; 2] = [Resync::Early, Resync::Deferred];

impl Default for Kernel {
    fn default() -> Self {
        Self::new()
    }
}

impl Kernel {
    pub fn new() -> Self {
        Self {
            sync: CacheSync::new(),
            up: [const { Word::new(0) }; CPUS],
            work: (1000, 1000),
            patience: 100_000_000,
        }
    }

    /// Starts the APs in this order, one at a time; each that does not come is declared offline.
    /// Returns those.
    pub fn bring_up(&self, boot: &mut SimCpu<'_>, order: &[usize]) -> Vec<usize> {
        let mut lost = Vec::new();
        for &ap in order {
            if self.start(boot, ap).is_err() || !self.wait_for(boot, ap) {
                let _ = unsafe { self.sync.offline(ap) };
                lost.push(ap);
            }
        }
        lost
    }

    /// Forgets that this AP was up.
    pub fn awaits(&self, ap: usize) {
        self.up[ap].store(0, Ordering::Release);
    }

    /// Declares and starts one AP.
    pub fn start(&self, boot: &mut SimCpu<'_>, ap: usize) -> Result<(), Error> {
        let apic = boot.machine().config().apic_id(ap);
        self.start_at(boot, ap, Place::Apic(apic))
    }

    /// The same with the kernel's word about its place.
    pub fn start_at(&self, boot: &mut SimCpu<'_>, ap: usize, place: Place) -> Result<(), Error> {
        self.up[ap].store(0, Ordering::Release);
        // Between its declaration and its SIPI a CPU answers nobody: who starts it must not be
        // made to wait for it by an interrupt.
        let enabled = boot.interrupts_enabled();
        boot.cli();
        let declared = unsafe { self.sync.starting(boot, ap, place) };
        if declared.is_ok() {
            boot.send_init_sipi(ap);
        }
        if enabled {
            boot.sti();
        }
        declared
    }

    /// Waits until an AP is up, as every wait loop of the boot CPU must.
    pub fn wait_for(&self, boot: &mut SimCpu<'_>, ap: usize) -> bool {
        let deadline = boot.rdtsc() + self.patience;
        while self.up[ap].load(Ordering::Acquire) == 0 {
            let _ = self.sync.hold_point(boot, 0);
            let now = boot.rdtsc();
            if now >= deadline {
                return false;
            }
            boot.pause_while(&self.up[ap], 0, now + 20_000);
        }
        true
    }

    /// Tells the boot CPU that an AP is up.
    pub fn signal(&self, me: usize) {
        self.up[me].store(1, Ordering::Release);
    }

    /// What an AP does from its SIPI on.
    pub fn ap(&self, cpu: &mut SimCpu<'_>) {
        let me = cpu.number();
        let ipis = cpu.ipis();
        cpu.work(self.work.0);
        let _ = self.sync.ap_online(cpu, me, |sibling| ipis.send(sibling));
        cpu.work(self.work.1);
        self.signal(me);
        cpu.sti();
        while cpu.halt_until_ipi() {}
    }

    /// The handler of the kick interrupt.
    pub fn interrupt(&self, cpu: &mut SimCpu<'_>) {
        let me = cpu.number();
        let _ = self.sync.hold_point(cpu, me);
        let _ = self.sync.attend(cpu, me);
    }

    /// Runs `boot` on the boot CPU of `machine`, with this kernel on the other CPUs.
    pub fn run<R>(&self, machine: &Machine, boot: impl FnOnce(&mut SimCpu<'_>) -> R) -> R {
        machine.run(boot, |ap| self.ap(ap), |cpu| self.interrupt(cpu))
    }

    /// Initialises the boot CPU, which must work.
    pub fn init(&self, boot: &mut SimCpu<'_>, policy: Policy) {
        let booted = unsafe { self.sync.boot_init(boot, 0, policy) }.unwrap();
        assert_eq!(booted.error, None, "{booted}");
    }

    /// Leads a deferred resync.
    pub fn resync(&self, boot: &mut SimCpu<'_>) -> Result<Summary, Error> {
        let ipis = boot.ipis();
        self.sync.resync(boot, 0, |cpu| ipis.send(cpu))
    }

    /// Leads a change of the target.
    pub fn change(&self, boot: &mut SimCpu<'_>, to: &Snapshot) -> Result<Summary, Error> {
        let ipis = boot.ipis();
        unsafe { self.sync.change(boot, 0, to, |cpu| ipis.send(cpu)) }
    }

    /// Leads a check.
    pub fn check(&self, boot: &mut SimCpu<'_>) -> Result<Summary, Error> {
        let ipis = boot.ipis();
        self.sync.check(boot, 0, |cpu| ipis.send(cpu))
    }

    /// Suspends the machine and gives the boot CPU its state back.
    pub fn sleep(&self, boot: &mut SimCpu<'_>, profile: &S3) {
        // Longer than an uncached AP takes to leave its handler: a kernel stops its devices meanwhile.
        boot.work(1_000_000);
        self.sync.suspend(boot, 0).unwrap();
        for ap in 1..boot.machine().config().cpus() {
            unsafe { self.sync.offline(ap) }.unwrap();
        }
        boot.s3(profile);
        let outcome = unsafe { self.sync.boot_resume(boot, 0) }.unwrap();
        assert_eq!(outcome.error, None, "{outcome}");
    }
}

/// What a CPU's last sync came to.
pub fn outcome(kernel: &Kernel, cpu: usize) -> mtrr_pat::report::Outcome {
    let line = kernel.sync.report().cpus().find(|line| line.cpu == cpu);
    line.and_then(|line| line.outcome).unwrap()
}

/// All APs in order of their numbers.
pub fn aps(machine: &Machine) -> Vec<usize> {
    (1..machine.config().cpus()).collect()
}

/// Checks that every CPU holds the boot CPU's MTRRs and PAT, with caching on and no stale TLB.
pub fn assert_all_equal(machine: &Machine, why: &str) {
    let boot = machine.registers(0);
    for cpu in 0..machine.config().cpus() {
        assert_cpu(machine, cpu, &boot, why);
    }
}

/// Checks one CPU against `want`.
pub fn assert_cpu(machine: &Machine, cpu: usize, want: &Snapshot, why: &str) {
    let why = &format!("{why}: CPU {cpu}");
    assert_same(&machine.registers(cpu), want, why);
    assert_caching_on(machine, cpu, why);
    assert!(
        machine.stale_entries(cpu).is_empty(),
        "{why} has stale translations"
    );
}

/// Checks that two CPUs hold the same MTRRs and PAT.
pub fn assert_same(have: &Snapshot, want: &Snapshot, why: &str) {
    assert_eq!(have.def_type, want.def_type, "{why}");
    // CPUs may have pairs of different number: those one of them lacks are unused on the other.
    let (mine, others) = (have.variable_ranges(), want.variable_ranges());
    let both = mine.len().min(others.len());
    assert_eq!(mine[..both], others[..both], "{why}");
    let mut rest = mine[both..].iter().chain(&others[both..]);
    assert!(rest.all(|pair| *pair == VariableMtrr::default()), "{why}");
    assert_eq!(have.fixed, want.fixed, "{why}");
    assert_eq!(have.pat, want.pat, "{why}");
}

/// Checks that a CPU has neither CR0.CD nor CR0.NW set.
pub fn assert_caching_on(machine: &Machine, cpu: usize, why: &str) {
    let (cr0, ..) = machine.control_registers(cpu);
    assert_eq!(cr0 & (CR0_CD | CR0_NW), 0, "{why} has caching off");
}

/// The reads and writes of registers in an operation list: what an event-list test states.
pub fn registers_only(ops: &[Op]) -> Vec<Op> {
    ops.iter()
        .copied()
        .filter(|op| {
            !matches!(
                op,
                Op::Mfence | Op::Pause | Op::Rdtsc | Op::ReadIf(_) | Op::Cpuid(..) | Op::Work(_)
            )
        })
        .collect()
}

/// What the library decides on this machine's boot CPU.
pub fn platform(machine: &Machine) -> Platform {
    machine.run(|boot| Platform::detect(boot), |_| {}, |_| {})
}
