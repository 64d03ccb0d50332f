//! What must hold of every CPU, whatever went wrong.

use mtrr_pat::cpu::{CR0_CD, CR0_NW};
use mtrr_pat::error::Error;
use mtrr_pat::report::{CpuReport, Path};
use mtrr_pat::sim::{MtrrScope, Rule, SimCpu, firmware_map};
use mtrr_pat::snapshot::Snapshot;

use super::{CORES, Lived, THREADS, When, Wrong, smm_map};
use crate::common::{assert_cpu, outcome};

impl Lived<'_> {
    /// A rendezvous that works, names the stuck one, or names the missing one and changes nothing.
    pub(super) fn judge_rendezvous(
        &self,
        boot: &mut SimCpu<'_>,
        meet: fn(&Self, &mut SimCpu<'_>) -> Result<(), Error>,
    ) {
        let life = self.life;
        let before: Vec<Snapshot> = (0..6).map(|cpu| self.machine.registers(cpu)).collect();
        match meet(self, boot) {
            Ok(()) => self.judge(boot, "met"),
            Err(Error::Stuck { count: 1, first }) => {
                assert!(life.wrong.stuck(), "{life:?}");
                assert_eq!(first, life.cpu, "{life:?}");
                self.lost.lock().unwrap().push(first);
                self.judge(boot, "stuck");
                self.judge_sibling();
            }
            Err(Error::Missing { count: 1, first }) => {
                assert_eq!(
                    (life.wrong, first),
                    (Wrong::NeverArrives, life.cpu),
                    "{life:?}"
                );
                for (cpu, before) in before.iter().enumerate() {
                    assert_eq!(self.machine.registers(cpu), *before, "{life:?}");
                }
                self.lose(first);
                meet(self, boot).unwrap();
                self.judge(boot, "met without it");
            }
            Err(error) => panic!("{life:?}: {error}"),
        }
    }

    /// What must hold of every CPU at any time when nobody is at work.
    pub(super) fn judge(&self, boot: &mut SimCpu<'_>, at: &str) {
        let life = self.life;
        // Whoever is still on its way out of a rendezvous gets there.
        boot.wait_until(self.machine.time(0) + 1_000_000_000);
        let lost = self.lost.lock().unwrap().clone();
        let report: Vec<CpuReport> = self.kernel.sync.report().cpus().collect();
        let whole = [life.old(), life.target(), smm_map(), firmware_map()];
        for cpu in 0..CORES * THREADS {
            let why = format!("{life:?} {at}: CPU {cpu}: {}", self.kernel.sync.report());
            let have = self.machine.registers(cpu);
            let off = !have.def_type.enabled();
            // As far as this CPU has pairs.
            let count = have.variable_count();
            let mtrrs = |of: &Snapshot| (of.def_type, of.variable[..count].to_vec(), of.fixed);
            let partial = !whole.iter().any(|map| mtrrs(map) == mtrrs(&have));
            assert!(off || !partial, "{why}: a partial map in force");
            if lost.contains(&cpu) {
                continue;
            }
            let line = report.iter().find(|line| line.cpu == cpu).unwrap();
            let outcome = line.outcome.unwrap();
            assert_eq!(outcome.error.is_some(), !line.in_sync(), "{why}");
            // One that may not touch its core's caches now is left as it came.
            let untouched = matches!(outcome.error, Some(Error::SiblingStuck { .. }));
            if outcome.path != Path::Postponed && !untouched {
                let (cr0, ..) = self.machine.control_registers(cpu);
                assert_eq!(cr0 & (CR0_CD | CR0_NW), 0, "{why}: caching is off");
            }
            if line.in_sync() {
                self.judge_in_line(cpu, &why);
            } else {
                // The struck CPU may fail; its sibling may be left, if it could not be held or
                // waited for.
                let left = matches!(
                    outcome.error,
                    Some(Error::SiblingStuck { .. } | Error::SiblingsNotHeld { .. })
                );
                let sibling = cpu == life.sibling() && left;
                let unheld = outcome.path == Path::Postponed;
                assert!(cpu == life.cpu || sibling || unheld, "{why}");
            }
        }
    }

    /// Whose turn came after that of a stuck CPU of its core is left as it is, and says why.
    fn judge_sibling(&self) {
        let (cpu, sibling) = (self.life.cpu, self.life.sibling());
        if sibling > cpu {
            let error = outcome(self.kernel, sibling).error;
            assert_eq!(error, Some(Error::SiblingStuck { cpu }), "{:?}", self.life);
        }
    }

    fn judge_in_line(&self, cpu: usize, why: &str) {
        // The set of a core whose other thread is stuck in its window is what that one left.
        let at_its_mercy = self.life.wrong.stuck()
            && self.life.scope == MtrrScope::Core
            && cpu == self.life.sibling();
        if !at_its_mercy {
            let (when, early) = (self.life.when, self.life.old());
            let changed = when != When::RunTime || self.machine.registers(0) == self.life.target();
            let want = if changed { self.life.target() } else { early };
            assert_cpu(self.machine, cpu, &want, why);
        }
    }

    /// After two more rendezvous everybody who came is in line.
    pub(super) fn judge_end(&self) {
        let off: Vec<usize> = self
            .kernel
            .sync
            .report()
            .out_of_sync()
            .map(|c| c.cpu)
            .collect();
        // The map the machine sleeps with needs three pairs; the one of a change needs ten.
        let too_few = self.life.wrong == Wrong::VcntDiffers && self.life.when == When::RunTime;
        if too_few {
            assert_eq!(off, [self.life.cpu], "{:?}", self.life);
        } else {
            assert!(
                off.is_empty(),
                "{:?}: {}",
                self.life,
                self.kernel.sync.report()
            );
        }
        let lost = self.lost.lock().unwrap().len();
        let online = CORES * THREADS - lost - off.len();
        assert_eq!(
            self.kernel.sync.online() as usize,
            online,
            "{:?}",
            self.life
        );
    }

    /// The fault struck: who is lost is the CPU that never came or is stuck, unless it had no window
    /// to be stuck in, and its sibling if that was not started.
    pub(super) fn judge_lost(&self) {
        let life = self.life;
        let lost = self.lost.lock().unwrap().clone();
        let first = life.cpu.is_multiple_of(THREADS);
        let struck = match life.wrong {
            Wrong::NeverArrives => true,
            wrong => wrong.stuck() && (first || life.scope == MtrrScope::Thread),
        };
        assert_eq!(lost.contains(&life.cpu), struck, "{life:?}: {lost:?}");
        let others = |cpu: &usize| *cpu != life.cpu && *cpu != life.sibling();
        assert!(!lost.iter().any(others), "{life:?}: {lost:?}");
    }

    /// No rule is broken, but by a sibling that goes on after its bound while the stuck CPU has
    /// their core's caches off.
    pub(super) fn judge_rules(&self) {
        for violation in self.machine.violations() {
            let excused = self.life.wrong.stuck()
                && violation.cpu == self.life.sibling()
                && matches!(
                    violation.rule,
                    Rule::SiblingRan | Rule::LockedWithMtrrsOff | Rule::StaleTlb
                );
            assert!(excused, "{:?}: {violation}", self.life);
        }
    }
}
