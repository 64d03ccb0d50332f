//! What of a machine its dump shows.

use mtrr_pat::snapshot::Snapshot;

use super::doubt::Doubt;
use super::machine::Machine;
use super::map::Map;
use super::regs::{Regs, Variable};

impl Machine {
    /// The first CPU's registers, as far as the dump has them.
    pub fn in_dump(&self) -> Option<&Snapshot> {
        self.shown.as_ref().or(self.boot())
    }

    /// Whether the map is the one a kernel printed, and the registers behind it are not known.
    pub fn is_listed(&self) -> bool {
        self.shown.is_some()
    }

    /// Whether all that makes the map is in the dump.
    pub fn map_whole(&self) -> bool {
        !self.gaps.variable() || self.is_listed()
    }

    /// Whether the dump says that the MTRRs are on, or has what Linux shows only when they are.
    pub fn on_known(&self) -> bool {
        let ranges = |regs: &Regs| {
            let mut all = regs.variable.values();
            all.any(|entry| matches!(entry, Variable::Range { .. }))
        };
        self.enabled_known || self.boot_regs().is_some_and(ranges)
    }

    /// Whether the dump tells what variable range `index` is, or that it is off.
    pub fn shows(&self, index: usize) -> bool {
        let listed = self.boot_regs().is_some_and(|regs| {
            let last = regs.variable.keys().next_back();
            last.is_some_and(|last| index <= usize::from(*last))
        });
        let missing = self.gaps.missing.iter().any(|n| usize::from(*n) == index);
        (self.count_known || listed) && !missing && !self.gaps.none_shown
    }

    /// What the dump lacks, in sentences.
    pub fn missing(&self) -> Vec<String> {
        let regs = self.boot_regs();
        regs.map_or_else(Vec::new, |regs| self.gaps.sentences(regs, &self.dump))
    }

    /// Whether the list of variable ranges is the last thing in the input.
    pub fn list_ends_input(&self) -> bool {
        let last = self.dump.listing.last_record;
        last > 0 && self.dump.records <= last
    }

    /// Whether the input shows that `start..end` has one type.
    pub fn has_one_type(&self, start: u64, end: u64) -> bool {
        if self.is_listed() {
            return self.dump.kernel_map.one_type(start, end);
        }
        let known = self.map_known() && !self.doubt().touches(start, end);
        self.boot()
            .filter(|_| known && start < end)
            .is_some_and(|boot| {
                let runs = Map::new(boot).runs;
                runs.iter().any(|run| run.start <= start && end <= run.end)
            })
    }

    /// Whether the input holds neither registers nor mapped pages.
    pub fn has_nothing_else(&self) -> bool {
        self.boot().is_none_or(|boot| boot.cap.is_none()) && self.dump.page_types.is_empty()
    }

    /// What would show what is missing.
    pub fn ask_for(&self) -> &'static str {
        if self.gaps.variable() && self.dump.listing.debugger {
            "give all that `!mtrr` prints"
        } else if self.gaps.variable() && self.dump.listing.every {
            "give the whole of `dmesg` (the lines of the list have no \"MTRR\" in them for grep to \
             find), or /proc/mtrr"
        } else if self.gaps.none_shown && self.dump.listing.lengths.is_some() {
            "give the firmware's log to its end (coreboot: `cbmem -c`), or paste /proc/mtrr"
        } else if self.gaps.none_shown {
            self.dump.system.ask_for()
        } else {
            "give the whole dump"
        }
    }

    /// Where the map is not certain.
    pub fn doubt(&self) -> Doubt {
        match (self.boot(), self.boot_regs()) {
            (Some(_), Some(regs)) if self.is_listed() => {
                let map = &self.dump.kernel_map;
                Doubt::of_list(map.open(self.default_known, self.bits.end()), regs)
            }
            (Some(boot), Some(regs)) => Doubt::of(boot, regs, &self.gaps),
            _ => Doubt::default(),
        }
    }

    /// Whether the map can be worked out: a summary has no ranges.
    pub fn map_known(&self) -> bool {
        let shown = |regs: &Regs| !regs.variable.is_empty();
        let boot = self.boot().is_some_and(|boot| boot.cap.is_some());
        let regs = self.boot_regs();
        let nothing = self.gaps.none_shown
            && !regs.is_some_and(|regs| regs.fixed_seen() || regs.enabled == Some(false));
        self.is_listed()
            || boot && !nothing && (!self.dump.summary || self.dump.cpus.values().any(shown))
    }
}
