//! Whether this CPU holds the target already, register by register and without a copy of either.
//!
//! Owns the quick answer only: whatever is not plainly equal is left to [`super::Plan`], which says
//! what differs and why a register could not be read.

use super::Arrival;
use crate::cpu::CpuOps;
use crate::delta::routing_bits;
use crate::platform::Platform;
use crate::policy::{AmdFixed, Policy};
use crate::ranges::FIXED_RANGES;
use crate::regs::{MsrAddr, SysCfg};
use crate::snapshot::Head;

/// Whether every register [`super::Plan::look`] compares holds what the `words` of a target say.
/// Only reads, each register once, and stops at the first that does not: after S3 that is the first.
/// Interrupts as they are.
pub(crate) fn holds(
    cpu: &mut impl CpuOps,
    mut words: impl Iterator<Item = u64>,
    platform: &Platform,
    policy: &Policy,
    arrival: Arrival,
) -> bool {
    if platform.amd && policy.amd_fixed == AmdFixed::SaveDramBits {
        // Reading RdMem and WrMem means writing SYSCFG.
        return false;
    }
    let head = Head::take(&mut words);
    let mut is = |msr: MsrAddr, value: u64| cpu.rdmsr(msr) == Ok(value);
    let cap = head.cap.filter(|_| arrival == Arrival::First);
    let same = cap.is_none_or(|cap| is(MsrAddr::MTRRCAP, cap.raw()))
        && (head.cap.is_none() || is(MsrAddr::MTRR_DEF_TYPE, head.def_type.raw()))
        && head.pat.is_none_or(|pat| is(MsrAddr::PAT, pat.raw()))
        && head.syscfg.is_none_or(|syscfg| {
            same_routing(cpu, syscfg) && cpu.rdmsr(MsrAddr::TOP_MEM2) == Ok(head.top_mem2)
        });
    if !same {
        return false;
    }
    let mut next = || words.next().unwrap_or(0);
    for range in &FIXED_RANGES {
        let word = next();
        if platform.has_fixed() && cpu.rdmsr(range.msr) != Ok(word) {
            return false;
        }
    }
    (0..platform.variable_count()).all(|n| {
        cpu.rdmsr(MsrAddr::phys_base(n)) == Ok(next())
            && cpu.rdmsr(MsrAddr::phys_mask(n)) == Ok(next())
    })
}

fn same_routing(cpu: &mut impl CpuOps, wanted: SysCfg) -> bool {
    let here = cpu.rdmsr(MsrAddr::SYSCFG).map(SysCfg::from_raw);
    here.is_ok_and(|here| routing_bits(here) == routing_bits(wanted))
}

#[cfg(all(test, feature = "sim", not(loom)))]
mod tests {
    use super::*;
    use crate::delta::Changes;
    use crate::pat::Pat;
    use crate::program::Plan;
    use crate::regs::{FIXED_COUNT, MtrrCap};
    use crate::sim::{Config, Machine, SimCpu};
    use crate::snapshot::Snapshot;
    use std::vec::Vec;

    /// A CPU of `config` that holds `have` beside a target captured with `config.boot`: whether it holds
    /// that, how many registers were read for the answer, and what the full comparison says.
    fn asked(
        config: &Config,
        have: &Snapshot,
        policy: &Policy,
        arrival: Arrival,
    ) -> (bool, u64, Changes) {
        let machine = Machine::new(config.clone());
        let ask = |cpu: &mut SimCpu<'_>| {
            let platform = Platform::detect(cpu);
            let want = Snapshot::capture(cpu, &platform, policy.amd_fixed).unwrap();
            machine.set_registers(0, have);
            machine.clear_log();
            let words = want.to_words().into_iter();
            let before = machine.counters(0).rdmsr;
            let held = holds(cpu, words, &platform, policy, arrival);
            let reads = machine.counters(0).rdmsr - before;
            assert_eq!(machine.counters(0).register_writes(), 0);
            let plan = Plan::examine(cpu, &want, &platform, policy, arrival).unwrap();
            (held, reads, plan.changes())
        };
        machine.run(ask, |_| {}, |_| {})
    }

    /// The state with one bit of one register turned, register by register in the order of the words.
    fn turned(of: &Snapshot) -> Vec<Snapshot> {
        let mut all = Vec::new();
        let mut turn = |change: &dyn Fn(&mut Snapshot)| {
            let mut other = *of;
            change(&mut other);
            all.push(other);
        };
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
        for (config, registers) in [(Config::new(1, 1), 33), (Config::amd(1, 1), 35)] {
            let policy = &Policy::DEFAULT;
            for (arrival, first) in [(Arrival::Again, 0), (Arrival::First, 1)] {
                let (held, reads, changes) = asked(&config, &config.boot, policy, arrival);
                assert_eq!((held, reads), (true, registers + first));
                assert_eq!(changes, Changes::empty());
                let turned = turned(&config.boot);
                assert_eq!(turned.len() as u64, registers);
                for (n, have) in turned.iter().enumerate() {
                    let (held, reads, changes) = asked(&config, have, policy, arrival);
                    assert!(!held && !changes.is_empty(), "register {n}");
                    assert_eq!(reads, n as u64 + 1 + first, "register {n}");
                }
            }
        }
    }

    #[test]
    fn parts_the_machine_lacks_are_not_read() {
        let policy = &Policy::DEFAULT;
        let config = |change: &dyn Fn(&mut Snapshot)| {
            let mut config = Config::new(1, 1);
            change(&mut config.boot);
            config
        };
        let no_fixed = config(&|s| {
            s.cap = s.cap.map(|cap| cap.difference(MtrrCap::FIX));
            s.fixed = [0; FIXED_COUNT];
        });
        let no_pat = config(&|s| s.pat = None);
        let no_mtrr = config(&|s| {
            *s = Snapshot {
                pat: s.pat,
                ..Snapshot::empty(s.phys_bits)
            }
        });
        for (config, reads) in [(no_fixed, 33 - 11), (no_pat, 33 - 1), (no_mtrr, 1)] {
            let found = asked(&config, &config.boot, policy, Arrival::Again);
            assert_eq!(found, (true, reads, Changes::empty()));
        }
    }

    #[test]
    fn what_cannot_be_told_by_reading_is_left_to_the_plan() {
        let saving = Policy {
            amd_fixed: AmdFixed::SaveDramBits,
            ..Policy::DEFAULT
        };
        let config = Config::amd(1, 1);
        let (held, reads, changes) = asked(&config, &config.boot, &saving, Arrival::Again);
        assert_eq!((held, reads, changes), (false, 0, Changes::empty()));
    }

    /// The target of a machine with one pair more than this CPU has.
    #[test]
    fn a_register_that_faults_is_not_held() {
        let whole = Config::new(1, 1);
        let platform = Machine::new(whole.clone()).run(|cpu| Platform::detect(cpu), |_| {}, |_| {});
        let mut fewer = whole.clone();
        fewer.boot.cap = Some(MtrrCap::from_raw(0xd09));
        let machine = Machine::new(fewer);
        for (arrival, reads) in [(Arrival::First, (1, 0)), (Arrival::Again, (31, 1))] {
            machine.clear_log();
            let words = whole.boot.to_words().into_iter();
            let ask =
                |cpu: &mut SimCpu<'_>| holds(cpu, words, &platform, &Policy::DEFAULT, arrival);
            assert!(!machine.run(ask, |_| {}, |_| {}));
            let counters = machine.counters(0);
            assert_eq!((counters.rdmsr, counters.rdmsr_fault), reads);
        }
    }
}
