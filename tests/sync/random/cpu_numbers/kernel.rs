//! A kernel whose CPU numbers are not the machine's.

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::error::Error;
use mtrr_pat::policy::Policy;
use mtrr_pat::sim::SimCpu;
use mtrr_pat::snapshot::Snapshot;
use mtrr_pat::sync::{CacheSync, Summary};
use mtrr_pat::topology::Place;

pub const SLOTS: usize = 24;

/// Its CPUs go by the machine's numbers here, but for [`Numbered::number`].
pub struct Numbered {
    pub sync: CacheSync<SLOTS>,
    numbers: Vec<usize>,
    places: Vec<Place>,
    up: [Word; SLOTS],
    /// Ticks the boot CPU waits for an AP.
    patience: u64,
}

impl Numbered {
    pub fn new(numbers: Vec<usize>, places: Vec<Place>, patience: u64) -> Self {
        Self {
            sync: CacheSync::new(),
            numbers,
            places,
            up: [const { Word::new(0) }; SLOTS],
            patience,
        }
    }

    /// The kernel's number of a CPU.
    pub fn number(&self, cpu: usize) -> usize {
        self.numbers[cpu]
    }

    /// The CPU with this number.
    fn cpu(&self, number: usize) -> usize {
        self.numbers.iter().position(|n| *n == number).unwrap()
    }

    pub fn init(&self, boot: &mut SimCpu<'_>, policy: Policy) {
        let me = self.number(0);
        let booted = unsafe { self.sync.boot_init_at(boot, me, self.places[0], policy) };
        assert_eq!(booted.unwrap().error, None);
    }

    pub fn start(&self, boot: &mut SimCpu<'_>, ap: usize) {
        self.up[ap].store(0, Ordering::Release);
        let enabled = boot.interrupts_enabled();
        boot.cli();
        let declared = unsafe { self.sync.starting(boot, self.number(ap), self.places[ap]) };
        declared.unwrap();
        boot.send_init_sipi(ap);
        if enabled {
            boot.sti();
        }
    }

    pub fn wait(&self, boot: &mut SimCpu<'_>, ap: usize) {
        let deadline = boot.rdtsc() + self.patience;
        while self.up[ap].load(Ordering::Acquire) == 0 {
            let _ = self.sync.hold_point(boot, self.number(0));
            let now = boot.rdtsc();
            assert!(now < deadline, "CPU {ap} does not come");
            boot.pause_while(&self.up[ap], 0, now + 20_000);
        }
    }

    pub fn ap(&self, cpu: &mut SimCpu<'_>) {
        let me = cpu.number();
        let ipis = cpu.ipis();
        let kick = |sibling| ipis.send(self.cpu(sibling));
        cpu.work(500);
        let _ = self.sync.ap_online(cpu, self.number(me), kick).unwrap();
        cpu.work(500);
        self.up[me].store(1, Ordering::Release);
        cpu.sti();
        while cpu.halt_until_ipi() {}
    }

    pub fn interrupt(&self, cpu: &mut SimCpu<'_>) {
        let me = self.number(cpu.number());
        self.sync.hold_point(cpu, me).unwrap();
        let _ = self.sync.attend(cpu, me).unwrap();
    }

    pub fn resync(&self, boot: &mut SimCpu<'_>) -> Result<Summary, Error> {
        let ipis = boot.ipis();
        let kick = |number| ipis.send(self.cpu(number));
        self.sync.resync(boot, self.number(0), kick)
    }

    pub fn check(&self, boot: &mut SimCpu<'_>) -> Result<Summary, Error> {
        let ipis = boot.ipis();
        let kick = |number| ipis.send(self.cpu(number));
        self.sync.check(boot, self.number(0), kick)
    }

    pub fn change(&self, boot: &mut SimCpu<'_>, to: &Snapshot) -> Result<Summary, Error> {
        let ipis = boot.ipis();
        let kick = |number| ipis.send(self.cpu(number));
        unsafe { self.sync.change(boot, self.number(0), to, kick) }
    }
}
