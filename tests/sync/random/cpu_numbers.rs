//! Random lives: CPUs with any numbers and places, started, parked and met in any order.

mod kernel;

use crate::common::dice::Dice;
use crate::common::one_cpu::another_map;
use crate::common::{BOUNDS, assert_caching_on, assert_same};
use kernel::{Numbered, SLOTS};
use mtrr_pat::error::Error;
use mtrr_pat::policy::{AmdFixed, Bounds, Policy};
use mtrr_pat::regs::{SysCfg, VariableMtrr};
use mtrr_pat::sim::{CR0_RESET, Config, Machine, S3, Schedule, Scribble, SimCpu};
use mtrr_pat::snapshot::Snapshot;
use mtrr_pat::sync::Summary;
use mtrr_pat::topology::Place;

/// Long enough for a thread of this machine that is not scheduled for a while.
const LONG: u64 = 30_000_000_000;
const LONG_BOUNDS: Bounds = Bounds {
    gather: std::time::Duration::from_nanos(LONG),
    hold: std::time::Duration::from_nanos(LONG),
    finish: std::time::Duration::from_nanos(LONG),
};

/// What was drawn for one life.
struct Life {
    machine: Machine,
    kernel: Numbered,
    policy: Policy,
    why: String,
}

impl Life {
    fn drawn(seed: u64, dice: &mut Dice, (cores, threads): (usize, usize), free: bool) -> Self {
        let mut config = config(dice, cores, threads);
        config.schedule = if free {
            Schedule::Free { seed }
        } else {
            Schedule::Baton { seed }
        };
        let policy = Policy {
            resync: dice.pick(&crate::common::MODES),
            amd_fixed: dice.pick(&[AmdFixed::AsFound, AmdFixed::SaveDramBits]),
            bounds: if free { LONG_BOUNDS } else { BOUNDS },
            ..Policy::DEFAULT
        };
        let why = format!(
            "seed {seed} {cores}x{threads} {:?} {:?} free {free}",
            config.scope, policy.resync
        );
        let patience = if free { LONG } else { 100_000_000 };
        let places = places(&config, dice);
        Self {
            kernel: Numbered::new(numbers(dice), places, patience),
            machine: Machine::new(config),
            policy,
            why,
        }
    }

    fn cpus(&self) -> usize {
        self.machine.config().cpus()
    }

    /// All of these CPUs were met, and are in line.
    #[track_caller]
    fn assert_met(&self, met: &Summary, cpus: usize) {
        let report = self.kernel.sync.report();
        let seen = (met.cpus as usize, met.out_of_sync);
        assert_eq!(seen, (cpus, 0), "{}: {report}", self.why);
        assert_eq!(self.kernel.sync.online() as usize, cpus, "{}", self.why);
    }

    /// Starts all APs, one by one or all at once; returns the order.
    fn bring_up(&self, boot: &mut SimCpu<'_>, dice: &mut Dice) -> Vec<usize> {
        let mut order: Vec<usize> = (1..self.cpus()).collect();
        dice.shuffle(&mut order);
        let together = dice.one_in(2);
        for &ap in &order {
            self.kernel.start(boot, ap);
            if dice.one_in(4) {
                let checked = self.kernel.check(boot).unwrap();
                assert!(checked.cpus >= 2, "{}", self.why);
            }
            if !together {
                self.kernel.wait(boot, ap);
            }
        }
        for &ap in &order {
            self.kernel.wait(boot, ap);
        }
        order
    }

    /// One rendezvous, of all or without `other`, which is parked and started again.
    fn meet(&self, boot: &mut SimCpu<'_>, dice: &mut Dice, other: usize) {
        let kernel = &self.kernel;
        match dice.below(3) {
            0 => {
                let (_, now) = kernel.sync.target().unwrap();
                let met = kernel.change(boot, &changed(now, dice)).unwrap();
                return self.assert_met(&met, self.cpus());
            }
            1 => {
                unsafe { kernel.sync.parked(kernel.number(other)) }.unwrap();
                let met = if dice.one_in(2) {
                    kernel.resync(boot).unwrap()
                } else {
                    kernel.check(boot).unwrap()
                };
                self.assert_met(&met, self.cpus() - 1);
                kernel.start(boot, other);
                kernel.wait(boot, other);
            }
            _ => {}
        }
        let met = kernel.resync(boot).unwrap();
        self.assert_met(&met, self.cpus());
        let met = kernel.check(boot).unwrap();
        self.assert_met(&met, self.cpus());
        assert_eq!(met.differed, 0, "{}", self.why);
    }

    /// All CPUs hold what the boot CPU holds.
    fn judge(&self) {
        let boot = self.machine.registers(0);
        // RdMem and WrMem are lost in S3 when nobody saves them.
        let saved = self.policy.amd_fixed == AmdFixed::SaveDramBits;
        let kept = |mut of: Snapshot| {
            let mask = if saved { !0 } else { !0x1818_1818_1818_1818 };
            of.fixed = of.fixed.map(|word| word & mask);
            of
        };
        for cpu in 0..self.cpus() {
            let why = format!("{}: CPU {cpu}", self.why);
            let have = self.machine.registers(cpu);
            assert_same(&kept(have), &kept(boot), &why);
            assert_caching_on(&self.machine, cpu, &why);
            assert!(self.machine.stale_entries(cpu).is_empty(), "{why}");
            let open = |syscfg: SysCfg| syscfg.contains(SysCfg::MTRR_FIX_DRAM_MOD_EN);
            assert!(!have.syscfg.is_some_and(open), "{why}");
        }
        let out_of_sync = self.kernel.sync.report().out_of_sync().count();
        assert_eq!(out_of_sync, 0, "{}", self.why);
    }

    fn sleep(&self, boot: &mut SimCpu<'_>, dice: &mut Dice) {
        let (kernel, why) = (&self.kernel, &self.why);
        boot.work(1_000_000);
        kernel.sync.suspend(boot, kernel.number(0)).unwrap();
        assert_eq!(kernel.check(boot), Err(Error::Suspended), "{why}");
        for ap in 1..self.cpus() {
            unsafe { kernel.sync.offline(kernel.number(ap)) }.unwrap();
        }
        let scribble = dice.pick(&[Scribble::Off, Scribble::Reset, Scribble::LikeBoot]);
        boot.s3(&S3::all(scribble));
        let woken = unsafe { kernel.sync.boot_resume(boot, kernel.number(0)) }.unwrap();
        assert_eq!(woken.error, None, "{why}");
    }

    fn live(&self, dice: &mut Dice) {
        let main = |boot: &mut SimCpu<'_>| {
            self.kernel.init(boot, self.policy);
            for round in 0..2 {
                if round > 0 {
                    self.sleep(boot, dice);
                }
                let order = self.bring_up(boot, dice);
                let met = self.kernel.resync(boot).unwrap();
                self.assert_met(&met, self.cpus());
                for step in 0..4 {
                    self.meet(boot, dice, order[step % order.len()]);
                }
                self.judge();
            }
        };
        let kernel = &self.kernel;
        self.machine
            .run(main, |ap| kernel.ap(ap), |cpu| kernel.interrupt(cpu));
        let broken = self.machine.check();
        assert!(broken.is_ok(), "{}: {broken:?}", self.why);
    }
}

fn config(dice: &mut Dice, cores: usize, threads: usize) -> Config {
    let mut config = if dice.one_in(3) {
        Config::amd(cores, threads)
    } else {
        Config::new(cores, threads)
    };
    config.scope = dice.pick(&crate::common::SCOPES);
    config.log = false;
    match dice.below(4) {
        0 => {}
        1 => {
            config.aps = Snapshot {
                syscfg: config.boot.syscfg,
                top_mem2: config.boot.top_mem2,
                ..another_map()
            };
        }
        2 => config.aps.def_type = config.aps.def_type.disabled(),
        _ => {
            config.aps.fixed[3] = 0;
            config.aps.variable[9].base = 6;
        }
    }
    if dice.one_in(2) {
        config.ap_cr0 = CR0_RESET;
    }
    config
}

/// The numbers the kernel gives its CPUs; often the boot CPU has the highest.
fn numbers(dice: &mut Dice) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..SLOTS).collect();
    dice.shuffle(&mut numbers);
    if dice.one_in(3) {
        let last = numbers.iter().position(|n| *n == SLOTS - 1).unwrap();
        numbers.swap(0, last);
    }
    numbers
}

/// What the kernel knows of places: all, in words of one kind or of two, or some.
fn places(config: &Config, dice: &mut Dice) -> Vec<Place> {
    let apic = |cpu| Place::Apic(config.apic_id(cpu));
    let core = |cpu| {
        let (core, thread) = config.place(cpu);
        Place::Core {
            core: 1000 - core as u32,
            thread: thread as u32,
        }
    };
    let kind = dice.below(4);
    let mut place = |cpu| match kind {
        0 => apic(cpu),
        1 => core(cpu),
        2 => dice.pick(&[apic(cpu), core(cpu)]),
        _ => dice.pick(&[apic(cpu), Place::Unknown]),
    };
    (0..config.cpus()).map(&mut place).collect()
}

fn changed(mut map: Snapshot, dice: &mut Dice) -> Snapshot {
    match dice.below(3) {
        0 => map.fixed[4] ^= 6,
        1 => map.variable[8].base ^= 6,
        _ => {
            map.variable[9] = VariableMtrr {
                base: 0x4000_0000 + (dice.below(2) << 32),
                mask: 0x7f_c000_0800,
            };
        }
    }
    map
}

const SHAPES: [(usize, usize); 3] = [(2, 2), (1, 4), (3, 2)];

fn lives(seeds: u64, free: bool) {
    for seed in 0..seeds {
        for shape in SHAPES {
            let mut dice = Dice(seed);
            Life::drawn(seed, &mut dice, shape, free).live(&mut dice);
        }
    }
}

#[test]
fn all_are_in_line_whatever_their_numbers_places_and_order() {
    lives(16, false);
}

#[test]
fn all_are_in_line_on_free_threads() {
    lives(8, true);
}
