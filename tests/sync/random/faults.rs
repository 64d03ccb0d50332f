//! Things that go wrong in the middle of rendezvous: no CPU runs on part of a map, and the report says
//! of each how it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use crate::common::dice::Dice;
use crate::common::{Kernel, aps, assert_caching_on, assert_cpu, outcome, policy};
use mtrr_pat::error::{Error, Left};
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::Resync;
use mtrr_pat::regs::{MsrAddr, MtrrDefType, VariableMtrr};
use mtrr_pat::report::{CpuReport, Outcome, Path};
use mtrr_pat::sim::{
    At, CR0_RESET, Config, Fault, Machine, MtrrScope, Schedule, Scribble, SimCpu, What,
    firmware_map,
};
use mtrr_pat::snapshot::Snapshot;

/// Base and mask of a range of 1 GiB.
const fn gibibyte(base: u64) -> VariableMtrr {
    VariableMtrr {
        base,
        mask: 0x7f_c000_0800,
    }
}

/// What the APs start with: the firmware's map but for a few registers.
fn old_map(dice: &mut Dice) -> Snapshot {
    let mut map = firmware_map();
    for _ in 0..1 + dice.below(5) {
        match dice.below(6) {
            0 | 1 => map.fixed[dice.below(11) as usize] = 0x0404_0404_0404_0404,
            2 => map.variable[dice.below(3) as usize].base ^= 1 << 35,
            3 => map.variable[5 + dice.below(3) as usize] = gibibyte(dice.below(16) << 33),
            4 => map.variable[8 + dice.below(2) as usize] = VariableMtrr { base: 6, mask: 0 },
            _ => map.def_type = MtrrDefType::from_raw(0xc04),
        }
    }
    if dice.one_in(3) {
        map.pat = Some(Pat::LINUX);
    }
    if dice.one_in(5) {
        map.def_type = map.def_type.disabled();
    }
    map
}

/// What the change is to.
fn new_map() -> Snapshot {
    let mut map = firmware_map();
    map.fixed[7] = 0;
    map.variable[8] = gibibyte(0x30_0000_0000);
    map
}

/// What SMM does the n-th time, each outside what most plans hold.
fn toggle(map: &mut Snapshot, n: u64) {
    match n {
        0 => map.fixed[10] ^= 0x06,
        1 => map.variable[1].base ^= 1 << 36,
        _ => map.variable[4] = gibibyte(0x40_0000_0000),
    }
}

/// Every whole map that a CPU may have: those, each as SMM may have left it.
fn whole_maps(bases: [Snapshot; 3]) -> Vec<Snapshot> {
    let mut maps = Vec::new();
    for base in bases {
        for set in 0..8_u64 {
            let mut map = base;
            (0..3)
                .filter(|n| set & 1 << n != 0)
                .for_each(|n| toggle(&mut map, n));
            maps.push(map);
        }
    }
    maps
}

/// What strikes one CPU; SMM only who acts first of its core.
fn strikes(dice: &mut Dice, cpu: usize, first: bool) -> Vec<Fault> {
    let mut faults = Vec::new();
    for n in 0..1 + dice.below(3) {
        let (at, what) = match dice.below(7) {
            0 | 1 => (At::Wrmsr(1 + dice.below(12)), What::Gp),
            2 => (At::Wrmsr(1 + dice.below(12)), What::Ignored),
            3 => (At::Msr(some_msr(dice)), What::Ignored),
            4 if first => {
                let smm = Scribble::custom(move |_, registers| toggle(registers, n));
                (At::WindowEntry(1 + n), What::Smm(smm))
            }
            5 => (At::Op(1 + dice.below(200)), What::Interrupt),
            _ => {
                let late = What::Delay(dice.below(400_000_000));
                (At::Op(1 + dice.below(200)), late)
            }
        };
        faults.push(Fault::new(cpu, at, what));
    }
    faults
}

fn some_msr(dice: &mut Dice) -> MsrAddr {
    match dice.below(5) {
        0 => MsrAddr::MTRR_DEF_TYPE,
        1 => MsrAddr::PAT,
        2 => MsrAddr(0x268 + dice.below(8) as u32),
        _ => MsrAddr(0x200 + dice.below(20) as u32),
    }
}

/// Everything of a map that has an effect: pairs with V clear have none.
fn in_force(of: &Snapshot) -> (MtrrDefType, BTreeMap<usize, VariableMtrr>, [u64; 11]) {
    let pairs = of.variable_ranges().iter().copied().enumerate();
    let valid = pairs.filter(|(_, pair)| pair.valid());
    (of.def_type, valid.collect(), of.fixed)
}

/// What a CPU that failed was left with.
fn left(outcome: &Outcome) -> Option<Left> {
    match outcome.error {
        Some(
            Error::WriteFault { left, .. }
            | Error::WriteIgnored { left, .. }
            | Error::ReadBackFault { left, .. },
        ) => Some(left),
        _ => None,
    }
}

/// Whether a CPU gave up with nothing of the target missing but words without effect.
fn left_unused_pairs(outcome: &Outcome) -> bool {
    left(outcome) == Some(Left::UnusedPairs) && outcome.path != Path::Differs
}

/// One machine, in whose rendezvous one or two CPUs are struck.
struct Struck {
    machine: Machine,
    kernel: Kernel,
    mode: Resync,
    whole: Vec<Snapshot>,
    /// CPUs whose MTRRs firmware wrote to in their windows: part of two maps may be in force there.
    altered: Mutex<BTreeSet<usize>>,
    why: String,
}

impl Struck {
    fn drawn(seed: u64, (cores, threads): (usize, usize)) -> Self {
        let mut dice = Dice(seed);
        let mut config = Config::new(cores, threads);
        config.scope = dice.pick(&crate::common::SCOPES);
        let seeds = [0, seed, 2 * seed];
        config.schedule = Schedule::Baton {
            seed: dice.pick(&seeds),
        };
        config.log = false;
        config.aps = old_map(&mut dice);
        if dice.one_in(2) {
            config.ap_cr0 = CR0_RESET;
        }
        for _ in 0..1 + dice.below(2) {
            let cpu = 1 + dice.below(config.cpus() as u64 - 1) as usize;
            let first = cpu.is_multiple_of(threads);
            config.faults.extend(strikes(&mut dice, cpu, first));
        }
        let mode = dice.pick(&crate::common::MODES);
        let why = format!(
            "seed {seed} {cores}x{threads} {:?} {mode:?} {:?}",
            config.scope, config.faults
        );
        Self {
            whole: whole_maps([config.aps, firmware_map(), new_map()]),
            machine: Machine::new(config),
            kernel: Kernel::new(),
            mode,
            altered: Mutex::default(),
            why,
        }
    }

    fn judge(&self, want: &Snapshot, line: &CpuReport) {
        let cpu = line.cpu;
        let have = self.machine.registers(cpu);
        let outcome = outcome(&self.kernel, cpu);
        let why = format!("{}: CPU {cpu}: {outcome}\n{have:x?}", self.why);
        if line.in_sync() {
            assert_cpu(&self.machine, cpu, want, &why);
        }
        if have.def_type.enabled() && !self.was_altered(cpu) {
            let whole = self
                .whole
                .iter()
                .any(|map| in_force(map) == in_force(&have));
            assert!(whole, "{why}: part of a map in force");
        }
        if left_unused_pairs(&outcome) {
            assert_eq!(in_force(&have), in_force(want), "{why}");
            assert_eq!(have.pat, want.pat, "{why}");
        }
        if !matches!(outcome.path, Path::Postponed | Path::CheckedIn) {
            assert_caching_on(&self.machine, cpu, &why);
        }
    }

    /// Takes down whose MTRRs firmware wrote to in the window, as the outcome said, and who is in line
    /// since.
    fn note_altered(&self, line: &CpuReport) {
        let mut altered = self.altered.lock().unwrap();
        if left(&outcome(&self.kernel, line.cpu)) == Some(Left::Altered) {
            altered.insert(line.cpu);
        } else if line.in_sync() {
            altered.remove(&line.cpu);
        }
    }

    /// Whether firmware wrote to this CPU's MTRRs, in its own window or in that of a thread it shares
    /// them with, and nobody has been in line since.
    fn was_altered(&self, cpu: usize) -> bool {
        let config = self.machine.config();
        let shares = |other: usize| match config.scope {
            MtrrScope::Core => other / config.threads == cpu / config.threads,
            MtrrScope::Thread => other == cpu,
        };
        let altered = self.altered.lock().unwrap();
        altered.iter().any(|other| shares(*other))
    }

    fn meet(&self, boot: &mut SimCpu<'_>, work: &str, want: &mut Snapshot) {
        let met = match work {
            "resync" => self.kernel.resync(boot),
            "check" => self.kernel.check(boot),
            _ => {
                *want = new_map();
                self.kernel.change(boot, want)
            }
        };
        let (met, report) = (met.unwrap(), self.kernel.sync.report());
        report.cpus().for_each(|line| self.note_altered(&line));
        report.cpus().for_each(|line| self.judge(want, &line));
        let seen = (met.cpus as usize, met.out_of_sync as usize);
        let truth = (self.machine.config().cpus(), report.out_of_sync().count());
        assert_eq!(seen, truth, "{}: {work}: {report}", self.why);
    }

    /// Returns whether some CPU failed.
    fn live(&self) -> bool {
        let mut failed = false;
        self.kernel.run(&self.machine, |boot| {
            self.kernel.init(boot, policy(self.mode));
            let lost = self.kernel.bring_up(boot, &aps(&self.machine));
            assert!(lost.is_empty(), "{}", self.why);
            let mut want = firmware_map();
            for work in ["resync", "check", "resync", "change", "check", "resync"] {
                self.meet(boot, work, &mut want);
                failed |= self.kernel.sync.report().out_of_sync().count() > 0;
            }
        });
        let broken = self.machine.check();
        assert!(broken.is_ok(), "{}: {broken:?}", self.why);
        failed
    }
}

#[test]
fn no_cpu_runs_on_part_of_a_map_and_the_report_is_true() {
    let mut failed = 0;
    for seed in 0..40 {
        for shape in [(2, 2), (1, 4), (3, 2)] {
            failed += u32::from(Struck::drawn(seed, shape).live());
        }
    }
    assert!(failed > 0, "no strike had an effect");
}
