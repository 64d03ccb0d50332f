//! The quick answer: what it reads, and that it is the full comparison's.

use std::vec::Vec;

use super::*;
use crate::delta::Changes;
use crate::pat::Pat;
use crate::program::{Arrival, Plan};
use crate::regs::{FIXED_COUNT, MAX_VARIABLE, MtrrCap, MtrrDefType, VariableMtrr};
use crate::sim::{At, Config, Fault, Machine, SimCpu, What};
use crate::snapshot::Snapshot;

/// What a CPU that holds `have` answers beside the target captured with `config.boot`.
struct Answer {
    held: bool,
    reads: u64,
    /// What the full comparison says.
    changes: Option<Changes>,
}

/// Asks a CPU that holds `have` and has these faults beside a target captured with `config.boot`; `None`
/// when such a boot CPU has none to give.
fn ask(config: &Config, have: &Snapshot, policy: &Policy, faults: Vec<Fault>) -> Option<Answer> {
    let capture = |cpu: &mut SimCpu<'_>| {
        let platform = Platform::detect(cpu);
        let want = Snapshot::capture(cpu, &platform, policy.amd_fixed).ok()?;
        Some((platform, want))
    };
    let (platform, want) = Machine::new(config.clone()).run(capture, |_| {}, |_| {})?;
    let mut other = config.clone();
    (other.boot, other.faults) = (*have, faults);
    let machine = Machine::new(other);
    let answer = |cpu: &mut SimCpu<'_>| {
        let held = holds(cpu, want.to_words().into_iter(), &platform, policy);
        let counters = machine.counters(0);
        assert_eq!(counters.register_writes(), 0);
        let plan = Plan::examine(cpu, &want, &platform, policy, Arrival::First);
        let clear = plan.ok().filter(|plan| plan.mtrr_error().is_none());
        Answer {
            held,
            reads: counters.rdmsr + counters.rdmsr_fault,
            changes: clear.map(|plan| plan.changes()),
        }
    };
    Some(machine.run(answer, |_| {}, |_| {}))
}

fn in_order(config: &Config, have: &Snapshot, policy: &Policy) -> Answer {
    ask(config, have, policy, Vec::new()).expect("nothing is wrong with this boot CPU")
}

/// The state with one bit of one register turned, register by register in the order they are read.
fn turned(of: &Snapshot) -> Vec<Snapshot> {
    let mut all = Vec::new();
    let mut turn = |change: &dyn Fn(&mut Snapshot)| {
        let mut other = *of;
        change(&mut other);
        all.push(other);
    };
    turn(&|s| s.cap = s.cap.map(|cap| MtrrCap::from_raw(cap.raw() ^ 1 << 11)));
    turn(&|s| s.def_type = s.def_type.disabled());
    turn(&|s| s.pat = s.pat.map(|pat| Pat::from_raw(pat.raw() ^ 1 << 56)));
    if let Some(syscfg) = of.syscfg {
        turn(&|s| s.syscfg = Some(syscfg ^ SysCfg::MTRR_TOM2_EN));
        turn(&|s| s.top_mem2 ^= 1 << 33);
    }
    for n in 0..of.fixed.len() {
        turn(&|s| s.fixed[n] ^= 1 << 32);
    }
    for n in 0..of.variable_count() {
        turn(&|s| s.variable[n].base ^= 1 << 32);
        turn(&|s| s.variable[n].mask ^= 1 << 12);
    }
    all
}

#[test]
fn each_register_is_read_once_until_one_differs() {
    for (config, registers) in [(Config::new(1, 1), 34), (Config::amd(1, 1), 36)] {
        let policy = &Policy::DEFAULT;
        let same = in_order(&config, &config.boot, policy);
        assert_eq!((same.held, same.reads), (true, registers));
        let turned = turned(&config.boot);
        assert_eq!(turned.len() as u64, registers);
        for (n, have) in turned.iter().enumerate() {
            let other = in_order(&config, have, policy);
            let clear = other.changes.is_some_and(|changes| changes.is_empty());
            assert!(!other.held && !clear, "register {n}");
            assert_eq!(other.reads, n as u64 + 1, "register {n}");
        }
    }
}

#[test]
fn parts_the_machine_lacks_are_not_read() {
    let with = |change: &dyn Fn(&mut Snapshot)| {
        let mut config = Config::new(1, 1);
        change(&mut config.boot);
        config
    };
    let no_fixed = with(&|s| {
        s.cap = s.cap.map(|cap| cap.difference(MtrrCap::FIX));
        s.fixed = [0; FIXED_COUNT];
    });
    let no_pat = with(&|s| s.pat = None);
    let no_mtrr = with(&|s| {
        *s = Snapshot {
            pat: s.pat,
            ..Snapshot::empty(s.phys_bits)
        }
    });
    for (config, reads) in [(no_fixed, 34 - 11), (no_pat, 34 - 1), (no_mtrr, 1)] {
        let same = in_order(&config, &config.boot, &Policy::DEFAULT);
        assert_eq!((same.held, same.reads), (true, reads));
        assert_eq!(same.changes, Some(Changes::empty()));
    }
}

/// RdMem and WrMem can only be read after a write: the full comparison does that, on AMD alone.
#[test]
fn what_cannot_be_told_by_reading_is_left_to_the_plan() {
    let saving = Policy {
        amd_fixed: AmdFixed::SaveDramBits,
        ..Policy::DEFAULT
    };
    for (config, held, reads) in [(Config::amd(1, 1), false, 0), (Config::new(1, 1), true, 34)] {
        let same = in_order(&config, &config.boot, &saving);
        assert_eq!((same.held, same.reads), (held, reads));
        assert_eq!(same.changes, Some(Changes::empty()));
    }
}

/// A linear congruential generator: the same machines in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(0x5851_f42d_4c95_7f2d)
            .wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Any count of pairs, with and without each part.
    fn machine(&mut self) -> Config {
        let amd = self.one_in(2);
        let mut config = if amd {
            Config::amd(1, 1)
        } else {
            Config::new(1, 1)
        };
        config.log = false;
        let boot = &mut config.boot;
        let vcnt = self.below(MAX_VARIABLE as u64 + 1);
        boot.cap = Some(MtrrCap::from_raw(0xc00 | self.below(4).min(1) << 8 | vcnt));
        if !boot.has_fixed() {
            boot.fixed = [0; FIXED_COUNT];
        }
        for (n, pair) in (0..).zip(&mut boot.variable) {
            *pair = VariableMtrr { base: 0, mask: 0 };
            if n < vcnt {
                (pair.base, pair.mask) = (n << 32 | 6, 0x7f_0000_0000 | self.below(2) << 11);
            }
        }
        if self.one_in(8) {
            boot.pat = None;
        }
        if self.one_in(4) {
            let shown = SysCfg::MTRR_FIX_DRAM_MOD_EN;
            boot.syscfg = boot.syscfg.map(|syscfg| syscfg | shown);
        }
        if self.one_in(8) {
            (boot.cap, boot.fixed) = (None, [0; FIXED_COUNT]);
            boot.def_type = MtrrDefType::from_raw(0);
            boot.variable = [VariableMtrr { base: 0, mask: 0 }; MAX_VARIABLE];
        }
        config
    }

    /// Turns one bit somewhere.
    fn disturb(&mut self, have: &mut Snapshot) {
        let pair = self.below(have.variable_count().max(1) as u64) as usize;
        match self.below(8) {
            0 => {
                let bit = [0x800, 0x400, 6][self.below(3) as usize];
                have.def_type = MtrrDefType::from_raw(have.def_type.raw() ^ bit);
            }
            1 => {
                let bit = 1 << (8 * self.below(8));
                have.pat = have.pat.map(|pat| Pat::from_raw(pat.raw() ^ bit));
            }
            2 => {
                let bit = 1 << self.below(27);
                have.syscfg = have.syscfg.map(|all| SysCfg::from_raw(all.raw() ^ bit));
            }
            3 if have.syscfg.is_some() => have.top_mem2 ^= 1 << (23 + self.below(10)),
            4 if have.has_fixed() => {
                let bits = if have.syscfg.is_some() {
                    0b1_1010
                } else {
                    0b10
                };
                let bit = 1 << self.below(5) & bits;
                have.fixed[self.below(11) as usize] ^= bit << (8 * self.below(8));
            }
            5 => {
                let bit = [1, 1 << 8, 1 << 11][self.below(3) as usize];
                have.cap = have.cap.map(|cap| MtrrCap::from_raw(cap.raw() ^ bit));
            }
            6 if have.cap.is_some() => have.variable[pair].base ^= 1 << (12 + self.below(20)),
            7 if have.cap.is_some() => have.variable[pair].mask ^= 1 << (11 + self.below(20)),
            _ => {}
        }
    }

    fn fault(&mut self) -> Fault {
        let pair = self.below(MAX_VARIABLE as u64) as usize;
        let msrs = [
            MsrAddr::MTRRCAP,
            MsrAddr::MTRR_DEF_TYPE,
            MsrAddr::PAT,
            MsrAddr::SYSCFG,
            MsrAddr::TOP_MEM2,
            MsrAddr(0x250),
            MsrAddr(0x26f),
            MsrAddr::phys_base(pair),
            MsrAddr::phys_mask(pair),
        ];
        let msr = msrs[self.below(msrs.len() as u64) as usize];
        Fault::new(0, At::Msr(msr), What::Gp)
    }
}

#[test]
fn the_quick_answer_is_that_of_the_full_comparison() {
    let dice = &mut Dice(1);
    let (mut held, mut not) = (0, 0);
    for round in 0..4000 {
        let config = dice.machine();
        let mut have = config.boot;
        for _ in 0..dice.below(3) {
            dice.disturb(&mut have);
        }
        let amd_fixed = if dice.one_in(4) {
            AmdFixed::SaveDramBits
        } else {
            AmdFixed::AsFound
        };
        let policy = Policy {
            amd_fixed,
            ..Policy::DEFAULT
        };
        let faults = if dice.one_in(4) {
            [dice.fault()].into()
        } else {
            Vec::new()
        };
        let Some(answer) = ask(&config, &have, &policy, faults.clone()) else {
            continue;
        };
        let clear = answer.changes.is_some_and(|changes| changes.is_empty());
        let quick = amd_fixed == AmdFixed::AsFound || config.boot.syscfg.is_none();
        let why = std::format!("round {round}: {:?} {have:?} {faults:?}", config.boot);
        assert_eq!(answer.held, clear && quick, "{why}");
        if answer.held {
            held += 1;
        } else {
            not += 1;
        }
    }
    assert!(held > 1000 && not > 1000, "{held} {not}");
}
