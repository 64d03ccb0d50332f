//! Everything the simulated machine consists of, under one lock.

use std::collections::{BTreeSet, HashMap};
use std::panic::Location;
use std::sync::Arc;
use std::thread::Thread;

use super::caches::Caches;
use super::check::{Rule, Violation};
use super::config::{Config, MtrrScope, Schedule};
use super::counters::Counters;
use super::lines::Lines;
use super::log::{Event, Op, Span};
use super::registers::{CR0_KERNEL, MtrrSet, ThreadRegs};
use super::stop::Stop;
use super::tlb::Tlb;
use super::write_queue::WriteQueue;
use crate::snapshot::Snapshot;

/// What a CPU is doing, as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Status {
    /// Waits for a SIPI.
    Off,
    /// Runs, or will when it is its turn.
    Ready,
    /// Sleeps in `pause_while`.
    Waiting,
    /// Sleeps in HLT.
    Halted,
    /// Never goes on.
    Stuck,
}

/// What a sleeping CPU waits for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wait {
    pub(crate) word: usize,
    pub(crate) seen: u32,
    pub(crate) since: u64,
    pub(crate) place: &'static Location<'static>,
}

/// One logical processor.
#[derive(Debug)]
pub(crate) struct Cpu {
    pub(crate) core: usize,
    pub(crate) thread: usize,
    /// Index of its MTRR set.
    pub(crate) set: usize,
    pub(crate) regs: ThreadRegs,
    pub(crate) tlb: Tlb,
    /// Virtual time it has reached, picoseconds.
    pub(crate) time: u64,
    pub(crate) status: Status,
    pub(crate) wait: Option<Wait>,
    /// The key under which it is queued.
    pub(crate) queued: Option<u64>,
    pub(crate) handle: Option<Thread>,
    /// Executed something since reset, so that its CR0 counts for the core.
    pub(crate) alive: bool,
    pub(crate) pending: bool,
    /// Fetches uncached.
    pub(crate) uncached: bool,
    /// Set CR0.CD itself, or changed MTRRs under it: siblings must hold still.
    pub(crate) owns_cd: bool,
    /// Between its clear of E (or other MTRR write) with caching off, and CD=0.
    pub(crate) in_window: bool,
    /// CR0.CD is still what reset left.
    pub(crate) reset_cd: bool,
    /// It is about to store to a shared word, or did so after the last scheduling point
    /// (free-running only).
    pub(crate) storing: bool,
    /// Another CPU stored since this one last paused (free-running only).
    pub(crate) news: bool,
    /// It stored to a shared word, and nothing since has made that visible for certain.
    pub(crate) unfenced: bool,
    /// Its last operation was kernel work that lasts until `time`.
    pub(crate) working: bool,
    pub(crate) last: Option<Op>,
    pub(crate) counters: Counters,
    pub(crate) life: Life,
    pub(crate) spans: Vec<Span>,
}

/// Counts since the last SIPI, for faults.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Life {
    pub(crate) ops: u64,
    pub(crate) wrmsr: u64,
    pub(crate) window_ops: u64,
    pub(crate) entries: u64,
    pub(crate) exits: u64,
}

impl Cpu {
    pub(crate) const fn forget_windows(&mut self) {
        self.owns_cd = false;
        self.in_window = false;
        self.reset_cd = self.regs.cache_disabled();
    }

    /// Whether its siblings must hold still. For a CPU that is stuck they would do so for ever.
    pub(crate) fn holds_core(&self) -> bool {
        self.owns_cd && self.status != Status::Stuck
    }

    /// Whether it executes instructions.
    pub(crate) const fn runs(&self) -> bool {
        matches!(self.status, Status::Ready | Status::Waiting)
    }
}

/// The machine.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) config: Arc<Config>,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) sets: Vec<MtrrSet>,
    /// Runnable CPUs and sleepers with a deadline: (time, number).
    pub(crate) queue: BTreeSet<(u64, usize)>,
    /// Who sleeps on which word.
    pub(crate) waiters: HashMap<usize, Vec<usize>>,
    pub(crate) events: Vec<Event>,
    pub(crate) violations: Vec<Violation>,
    pub(crate) round: u32,
    pub(crate) stopping: bool,
    pub(crate) stop: Option<Stop>,
    pub(crate) uncached_cores: u64,
    pub(crate) core_uncached: Vec<bool>,
    pub(crate) core_dirty: Vec<u64>,
    pub(crate) llc_dirty: Vec<u64>,
    pub(crate) llc_busy: Vec<u64>,
    pub(crate) memory_busy: u64,
    pub(crate) random: u64,
    pub(crate) lines: Lines,
    pub(crate) caches: Caches,
    pub(crate) bus: WriteQueue,
    /// The machine's time, picoseconds (free-running only).
    pub(crate) clock: u64,
    /// Scheduling points of this run.
    pub(crate) steps: u64,
}

impl State {
    pub(crate) fn new(config: Arc<Config>) -> Self {
        let sets = match config.scope {
            MtrrScope::Core => config.cores,
            MtrrScope::Thread => config.cpus(),
        };
        let llcs = config.cores.div_ceil(config.cores_per_llc.max(1));
        let mut state = Self {
            sets: vec![MtrrSet::from(&config.boot); sets],
            cpus: (0..config.cpus()).map(|n| new_cpu(&config, n)).collect(),
            queue: BTreeSet::new(),
            waiters: HashMap::new(),
            events: Vec::new(),
            violations: Vec::new(),
            round: 0,
            stopping: false,
            stop: None,
            uncached_cores: 0,
            core_uncached: vec![false; config.cores],
            core_dirty: vec![0; config.cores],
            llc_dirty: vec![0; llcs],
            llc_busy: vec![0; llcs],
            memory_busy: 0,
            random: match config.schedule {
                Schedule::Baton { seed } | Schedule::Free { seed } => seed,
            },
            lines: Lines::default(),
            caches: Caches::default(),
            bus: WriteQueue::default(),
            clock: 0,
            steps: 0,
            config: Arc::clone(&config),
        };
        for cpu in 0..config.cpus() {
            state.load_registers(cpu, &config.firmware(cpu));
        }
        state.enter_kernel(0, CR0_KERNEL);
        state.cpus[0].regs.interrupts = true;
        state
    }

    pub(crate) fn free(&self) -> bool {
        matches!(self.config.schedule, Schedule::Free { .. })
    }

    pub(crate) fn snapshot(&self, cpu: usize) -> Snapshot {
        let cpu = &self.cpus[cpu];
        cpu.regs.snapshot(&self.sets[cpu.set])
    }

    /// Notes an operation in the counters and the event list.
    pub(crate) fn record(&mut self, cpu: usize, op: Op) {
        let (time, log, log_shared) =
            (self.cpus[cpu].time, self.config.log, self.config.log_shared);
        let this = &mut self.cpus[cpu];
        this.counters.count(op);
        this.last = Some(op);
        this.working = matches!(op, Op::Work(_) | Op::Load(_) | Op::Store(_));
        if op.drains_stores() {
            this.unfenced = false;
        } else if op == Op::SharedStore {
            this.unfenced = true;
        }
        let shared = matches!(op, Op::SharedLoad | Op::SharedStore | Op::SharedLocked);
        if log && (log_shared || !shared) {
            self.events.push(Event { time, cpu, op });
        }
    }

    pub(crate) fn violate(&mut self, cpu: usize, rule: Rule, text: String) {
        let time = self.cpus[cpu].time;
        self.violations.push(Violation {
            time,
            cpu,
            rule,
            text,
        });
    }

    /// The CPUs of a core.
    pub(crate) fn threads_of(&self, core: usize) -> impl Iterator<Item = usize> + use<> {
        let config = Arc::clone(&self.config);
        (0..config.threads).map(move |thread| config.cpu_at(core, thread))
    }

    /// Whether some thread of the core has caching off.
    pub(crate) fn core_cache_disabled(&self, core: usize) -> bool {
        self.threads_of(core)
            .any(|n| self.cpus[n].alive && self.cpus[n].regs.cache_disabled())
    }

    pub(crate) fn forget_caches(&mut self) {
        self.core_dirty.fill(0);
        self.llc_dirty.fill(0);
        self.lines = Lines::default();
        self.caches = Caches::default();
    }
}

fn new_cpu(config: &Config, n: usize) -> Cpu {
    let (core, thread) = config.place(n);
    let firmware = config.firmware(n);
    let mut regs = ThreadRegs {
        cap: None,
        pat: None,
        syscfg: None,
        top_mem2: 0,
        other: config.other(n),
        phys_bits: firmware.phys_bits,
        checks: config.write_checks,
        cr0: config.ap_cr0,
        cr3: 0,
        cr4: 0,
        interrupts: false,
    };
    regs.load(&firmware);
    Cpu {
        core,
        thread,
        set: match config.scope {
            MtrrScope::Core => core,
            MtrrScope::Thread => n,
        },
        regs,
        tlb: Tlb::default(),
        time: 0,
        status: Status::Off,
        wait: None,
        queued: None,
        handle: None,
        alive: false,
        pending: false,
        uncached: false,
        owns_cd: false,
        in_window: false,
        reset_cd: false,
        storing: false,
        news: false,
        unfenced: false,
        working: false,
        last: None,
        counters: Counters::default(),
        life: Life::default(),
        spans: Vec::new(),
    }
}
