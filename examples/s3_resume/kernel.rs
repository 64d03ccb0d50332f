//! A little kernel on the simulated machine.

use std::sync::Mutex;

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::{CR0_CD, CR0_NW, CpuOps};
use mtrr_pat::error::Error;
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::{PatChoice, Policy};
use mtrr_pat::sim::{S3, SimCpu};
use mtrr_pat::snapshot::Snapshot;
use mtrr_pat::sync::CacheSync;
use mtrr_pat::topology::{Place, bringup_order};

use crate::args::Mode;
use crate::progress::Progress;

pub const MOST_CPUS: usize = 1024;

/// Instructions an AP executes before its sync: 10 ms if uncached.
const BEFORE: u64 = 100_000;
/// Instructions it executes after it, until it is up: 50 ms if uncached, 0.2 ms if not.
const AFTER: u64 = 500_000;
/// Instructions the boot CPU executes for each AP: 0.3 ms.
const BETWEEN: u64 = 1_000_000;

/// What this little kernel knows about the run besides the crate's own state.
pub struct Kernel {
    pub sync: Box<CacheSync<MOST_CPUS>>,
    /// The number of the AP that came up last.
    up: Word,
    /// Registers as the firmware left them, written by each CPU before its sync.
    pub before: Vec<Mutex<Option<(Snapshot, bool)>>>,
    progress: Progress,
}

impl Kernel {
    pub fn new(cpus: usize, mode: Mode) -> Self {
        Self {
            sync: Box::new(CacheSync::new()),
            up: Word::new(0),
            before: (0..cpus).map(|_| Mutex::new(None)).collect(),
            progress: Progress::new(mode.name(), 2 * (cpus - 1)),
        }
    }

    fn start_aps(&self, boot: &mut SimCpu<'_>) -> Result<(), Error> {
        let config = boot.machine().config();
        let places: Vec<Place> = (0..config.cpus())
            .map(|n| Place::Apic(config.apic_id(n)))
            .collect();
        let shift = self.sync.platform().and_then(|platform| platform.smt_shift);
        for ap in bringup_order(&places, shift).filter(|n| *n != 0) {
            boot.work(BETWEEN);
            self.up.store(0, Ordering::Release);
            unsafe { self.sync.starting(boot, ap, places[ap]) }?;
            boot.send_init_sipi(ap);
            while self.up.load(Ordering::Acquire) != ap as u32 {
                self.sync.hold_point(boot, 0)?;
                let soon = boot.rdtsc() + 100_000_000;
                boot.pause_while(&self.up, 0, soon);
            }
            self.progress.step();
        }
        let ipis = boot.ipis();
        self.sync.resync(boot, 0, |n| ipis.send(n)).map(drop)
    }

    fn note_before(&self, cpu: &SimCpu<'_>) {
        let n = cpu.number();
        let machine = cpu.machine();
        let (cr0, ..) = machine.control_registers(n);
        let seen = (machine.registers(n), cr0 & (CR0_CD | CR0_NW) != 0);
        *self.before[n].lock().expect("no CPU panicked") = Some(seen);
    }

    /// Boots, suspends, wakes and resumes: picoseconds from the wake to everybody in line.
    pub fn boot(&self, boot: &mut SimCpu<'_>, mode: Mode, profile: &S3) -> Result<u64, Error> {
        let policy = Policy {
            resync: mode.resync(),
            pat: PatChoice::Layout(Pat::LINUX),
            ..Policy::DEFAULT
        };
        let _ = unsafe { self.sync.boot_init(boot, 0, policy) }?;
        self.start_aps(boot)?;
        self.sync.suspend(boot, 0)?;
        for ap in 1..boot.machine().config().cpus() {
            unsafe { self.sync.offline(ap) }?;
        }
        boot.s3(profile);
        boot.machine().clear_log(); // the picture begins here
        self.note_before(boot);
        let woken = boot.machine().now();
        let _ = unsafe { self.sync.boot_resume(boot, 0) }?;
        boot.sti(); // a sibling may need this CPU to stand still
        self.start_aps(boot)?;
        Ok(boot.machine().now() - woken)
    }

    /// What an AP does from its SIPI on.
    pub fn ap(&self, ap: &mut SimCpu<'_>) {
        let (n, ipis) = (ap.number(), ap.ipis());
        self.note_before(ap);
        ap.work(BEFORE);
        // What goes wrong with its registers is in the report; its number was declared.
        let _ = self.sync.ap_online(ap, n, |sibling| ipis.send(sibling));
        ap.work(AFTER);
        self.up.store(n as u32, Ordering::Release);
        ap.sti();
        while ap.halt_until_ipi() {}
    }

    /// The handler of the kick interrupt.
    pub fn interrupt(&self, cpu: &mut SimCpu<'_>) {
        let n = cpu.number();
        // A stuck sibling or a second arrival is in the report of the boot CPU.
        let _ = self.sync.hold_point(cpu, n);
        let _ = self.sync.attend(cpu, n);
    }
}
