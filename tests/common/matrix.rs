//! One life of a machine in which one thing goes wrong, and what must hold whatever it was.

mod verdict;
mod wrong;

use std::sync::Mutex;

use mtrr_pat::atomic::{Ordering, Word};
use mtrr_pat::cpu::CpuOps;
use mtrr_pat::error::Error;
use mtrr_pat::policy::{Bounds, Resync};
use mtrr_pat::sim::{
    At, Config, Fault, Machine, MtrrScope, S3, Schedule, Scribble, SimCpu, What, firmware_map,
};
use mtrr_pat::snapshot::Snapshot;

pub use self::wrong::{Wrong, smm_map};
use super::one_cpu::another_map;
use super::{CPUS, Kernel, aps, policy};

/// When the target is given to the CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    Early,
    Deferred,
    RunTime,
}

pub const WHEN: [When; 3] = [When::Early, When::Deferred, When::RunTime];

/// One cell of the matrix.
#[derive(Clone, Copy, Debug)]
pub struct Life {
    pub wrong: Wrong,
    pub when: When,
    pub scope: MtrrScope,
    /// The CPU it happens to.
    pub cpu: usize,
    pub seed: u64,
    /// Threads that run as they like, not in turn.
    pub free: bool,
}

/// Very large: while a healthy CPU goes on, only nanoseconds pass.
const FREE_BOUNDS: Bounds = Bounds {
    gather: std::time::Duration::from_nanos(200_000_000),
    hold: std::time::Duration::from_nanos(200_000_000),
    finish: std::time::Duration::from_nanos(200_000_000),
};

const CORES: usize = 3;
const THREADS: usize = 2;

impl Life {
    fn config(&self) -> Config {
        let mut config = Config::new(CORES, THREADS);
        config.scope = self.scope;
        config.log = false;
        config.schedule = Schedule::Baton { seed: self.seed };
        if self.free {
            config.schedule = Schedule::Free { seed: self.seed };
            // A nanosecond each: no bound passes while CPUs only compute.
            config.max_steps = 20_000_000;
        }
        config.faults = self.wrong.faults(self.cpu, self.seed);
        let start = match (self.wrong, self.when) {
            // At run time all are up already: the AP's own code is deaf then.
            (_, When::RunTime) => None,
            (Wrong::NeverArrives, _) => Some(What::Stuck),
            (Wrong::ArrivesLate, _) => Some(What::Delay(3_000_000_000)),
            _ => None,
        };
        let start = start.map(|what| Fault::new(self.cpu, At::Start, what).in_round(1));
        config.faults.extend(start);
        if self.wrong == Wrong::VcntDiffers {
            config.vcnt = vec![(self.cpu, 8)];
        }
        config
    }

    fn policy(&self) -> mtrr_pat::policy::Policy {
        let mut policy = policy(match self.when {
            When::Deferred => Resync::Deferred,
            When::Early | When::RunTime => Resync::Early,
        });
        if self.free {
            policy.bounds = FREE_BOUNDS;
        }
        policy
    }

    /// The map the APs wake with.
    fn old(&self) -> Snapshot {
        match self.when {
            When::Early | When::Deferred => another_map(),
            When::RunTime => firmware_map(),
        }
    }

    fn target(&self) -> Snapshot {
        match self.when {
            When::Early | When::Deferred => firmware_map(),
            When::RunTime => another_map(),
        }
    }

    fn sleep(&self) -> S3 {
        match self.when {
            // Reset left CD and NW set.
            When::Early | When::Deferred => S3::all(Scribble::custom(|cpu, registers| {
                *registers = Snapshot {
                    cap: registers.cap,
                    ..another_map()
                };
                // The boot CPU finds its MTRRs off as well.
                if cpu == 0 {
                    registers.def_type = registers.def_type.disabled();
                }
            })),
            When::RunTime => S3::all(Scribble::LikeBoot),
        }
    }

    pub fn sibling(&self) -> usize {
        self.cpu ^ 1
    }

    /// Lives it, and judges.
    pub fn live(self) {
        let machine = Machine::new(self.config());
        let mut kernel = Kernel::new();
        if self.free {
            kernel.patience = 2 * super::ticks(FREE_BOUNDS.finish);
        }
        let lived = Lived {
            life: self,
            machine: &machine,
            kernel: &kernel,
            round: Word::new(0),
            lost: Mutex::new(Vec::new()),
        };
        machine.run(
            |boot| lived.boot(boot),
            |ap| lived.ap(ap),
            |cpu| lived.interrupt(cpu),
        );
        lived.judge_rules();
    }
}

/// A life while it is lived.
struct Lived<'a> {
    life: Life,
    machine: &'a Machine,
    kernel: &'a Kernel,
    /// Sleeps so far.
    round: Word,
    /// CPUs that did not come, or were not started because of a stuck sibling.
    lost: Mutex<Vec<usize>>,
}

impl Lived<'_> {
    fn boot(&self, boot: &mut SimCpu<'_>) {
        let Life { wrong, when, .. } = self.life;
        let (kernel, all) = (self.kernel, aps(self.machine));
        let _ = unsafe { kernel.sync.boot_init(boot, 0, self.life.policy()) }.unwrap();
        assert!(kernel.bring_up(boot, &all).is_empty(), "{:?}", self.life);
        let _ = kernel.resync(boot).unwrap();
        self.sleep(boot);
        if wrong == Wrong::S3Again {
            self.bring_up(boot, &all[..3]);
            if when == When::RunTime {
                self.change(boot).unwrap();
            }
            self.sleep(boot);
        }
        self.bring_up(boot, &all);
        match when {
            When::Early => self.judge(boot, "early"),
            When::Deferred => self.judge_rendezvous(boot, Self::resync),
            When::RunTime => self.judge_rendezvous(boot, Self::change),
        }
        if !wrong.stuck() {
            let _ = kernel.resync(boot).unwrap();
            let _ = kernel.resync(boot).unwrap();
            self.judge(boot, "in the end");
            self.judge_end();
        }
        self.judge_lost();
    }

    fn sleep(&self, boot: &mut SimCpu<'_>) {
        self.kernel.sleep(boot, &self.life.sleep());
        self.round
            .store(self.round.load(Ordering::Acquire) + 1, Ordering::Release);
    }

    /// Starts APs one by one, or (odd seeds) all at once. Who does not come is declared gone,
    /// unless it may be stuck with caches off: of that nobody can say that it does nothing.
    fn bring_up(&self, boot: &mut SimCpu<'_>, order: &[usize]) {
        let together = self.life.seed % 2 == 1 && !self.life.wrong.stuck();
        let mut started = Vec::new();
        for &ap in order {
            match self.kernel.start(boot, ap) {
                Ok(()) if together => started.push(ap),
                Ok(()) => self.await_one(boot, ap),
                Err(Error::SiblingStuck { cpu }) => {
                    assert_eq!((cpu, ap), (self.life.cpu, self.life.sibling()));
                    self.lost.lock().unwrap().push(ap);
                }
                Err(error) => panic!("{:?}: CPU {ap}: {error}", self.life),
            }
        }
        for ap in started {
            self.await_one(boot, ap);
        }
    }

    fn struck(&self, ap: usize) -> bool {
        ap == self.life.cpu && self.round.load(Ordering::Acquire) == 1
    }

    fn never_comes(&self, ap: usize) -> bool {
        self.life.wrong == Wrong::NeverArrives && self.life.when != When::RunTime && self.struck(ap)
    }

    fn await_one(&self, boot: &mut SimCpu<'_>, ap: usize) {
        if !self.kernel.wait_for(boot, ap) {
            let expected = self.never_comes(ap) || self.life.wrong.stuck() && self.struck(ap);
            assert!(expected, "{:?}: CPU {ap}", self.life);
            self.lose(ap);
        }
    }

    fn lose(&self, ap: usize) {
        self.lost.lock().unwrap().push(ap);
        if !self.life.wrong.stuck() {
            unsafe { self.kernel.sync.offline(ap) }.unwrap();
        }
    }

    fn ap(&self, cpu: &mut SimCpu<'_>) {
        let me = cpu.number();
        let wrong = if self.struck(me) {
            self.life.wrong
        } else {
            Wrong::Nothing
        };
        let sync = &self.kernel.sync;
        let ipis = cpu.ipis();
        cpu.work(1000);
        if wrong == Wrong::OtherNumber {
            let out = sync.ap_online(cpu, CPUS, |_| {});
            assert!(matches!(out, Err(Error::CpuOutOfRange { .. })), "{out:?}");
            let undeclared = sync.ap_online(cpu, CPUS - 1, |_| {});
            assert_eq!(undeclared, Err(Error::NotDeclared { cpu: CPUS - 1 }));
        }
        let _ = sync
            .ap_online(cpu, me, |sibling| ipis.send(sibling))
            .unwrap();
        if wrong == Wrong::ArrivesTwice {
            let twice = sync.ap_online(cpu, me, |_| {});
            assert_eq!(twice, Err(Error::ArrivedTwice { cpu: me }));
        }
        cpu.work(1000);
        self.kernel.signal(me);
        match (wrong, self.life.when) {
            (Wrong::NeverArrives, When::RunTime) => {}
            (Wrong::ArrivesLate, When::RunTime) => {
                cpu.work(10_000_000);
                cpu.sti();
            }
            _ => cpu.sti(),
        }
        while cpu.halt_until_ipi() {}
    }

    fn interrupt(&self, cpu: &mut SimCpu<'_>) {
        let me = cpu.number();
        if me == self.life.cpu && self.life.wrong == Wrong::OtherNumber {
            let out = self.kernel.sync.attend(cpu, CPUS);
            assert!(matches!(out, Err(Error::CpuOutOfRange { .. })), "{out:?}");
        }
        self.kernel.interrupt(cpu);
        if me == self.life.cpu && self.life.wrong == Wrong::ArrivesTwice {
            // Over, or the next one: never twice in one.
            let again = self.kernel.sync.attend(cpu, me);
            assert!(again.is_ok(), "{again:?}");
        }
    }

    fn resync(&self, boot: &mut SimCpu<'_>) -> Result<(), Error> {
        self.kernel.resync(boot).map(|_| ())
    }

    fn change(&self, boot: &mut SimCpu<'_>) -> Result<(), Error> {
        let ipis = boot.ipis();
        let to = another_map();
        let changed = unsafe { self.kernel.sync.change(boot, 0, &to, |cpu| ipis.send(cpu)) };
        changed.map(|_| ())
    }
}
