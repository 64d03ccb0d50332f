//! Which lines each core has cached, and whether an access still gets what was last stored.
//!
//! Contents are version numbers: every store makes a new one. Caches of different cores are
//! coherent, as they are on all known processors. An uncached access looks into the caches of other
//! cores and not into its own: "the data could never have been cached" (note 1 of Intel's table of
//! effective types). That is the harm a flush is owed for.

use std::collections::BTreeMap;

use super::check::Rule;
use super::cpu::SimCpu;
use super::state::State;
use crate::memtype::PatType;

/// One line of memory in one core's cache.
#[derive(Clone, Copy, Debug)]
struct Line {
    version: u64,
    dirty: bool,
}

/// The lines the kernel has touched, by their number (address over 64).
#[derive(Debug, Default)]
pub(crate) struct Caches {
    cores: BTreeMap<(usize, u64), Line>,
    memory: BTreeMap<u64, u64>,
    /// What was stored last, by whomever.
    latest: BTreeMap<u64, u64>,
    stores: u64,
}

/// How one access goes about the caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Through the cache, by this type: WB, WT or WP.
    Cached(PatType),
    /// CR0.CD: hits are hits, misses fill nothing.
    NoFill,
    /// Past it.
    Uncached,
}

/// A line that is cached though its memory must not be so any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StaleLine {
    /// First byte of the line.
    pub address: u64,
    /// Whether memory does not have what is in it.
    pub dirty: bool,
    /// The type its memory has now.
    pub now: PatType,
}

impl Caches {
    fn in_memory(&self, line: u64) -> u64 {
        self.memory.get(&line).copied().unwrap_or(0)
    }

    /// Writes this core's line back, if it is dirty, and keeps it.
    fn clean(&mut self, core: usize, line: u64) {
        if let Some(cached) = self.cores.get_mut(&(core, line))
            && cached.dirty
        {
            cached.dirty = false;
            self.memory.insert(line, cached.version);
        }
    }

    /// Makes memory current for another core's access; a store also takes the copies away.
    fn snoop_others(&mut self, core: usize, line: u64, store: bool) {
        let others = self.cores.keys().filter(|(n, l)| *n != core && *l == line);
        let others: Vec<usize> = others.map(|(n, _)| *n).collect();
        for other in others {
            self.clean(other, line);
            if store {
                self.cores.remove(&(other, line));
            }
        }
    }

    /// What a load gets.
    fn load(&mut self, core: usize, line: u64, way: Way) -> u64 {
        let hit = self.cores.get(&(core, line)).map(|cached| cached.version);
        if let (Some(version), false) = (hit, way == Way::Uncached) {
            return version;
        }
        self.snoop_others(core, line, false);
        let version = self.in_memory(line);
        if matches!(way, Way::Cached(_)) {
            let clean = Line {
                version,
                dirty: false,
            };
            self.cores.insert((core, line), clean);
        }
        version
    }

    fn store(&mut self, core: usize, line: u64, way: Way) {
        self.snoop_others(core, line, true);
        self.stores += 1;
        let version = self.stores;
        self.latest.insert(line, version);
        let hit = self.cores.get_mut(&(core, line));
        match (way, hit) {
            (Way::Cached(PatType::WriteBack), _) | (Way::NoFill, Some(_)) => {
                let dirty = Line {
                    version,
                    dirty: true,
                };
                self.cores.insert((core, line), dirty);
                return;
            }
            (Way::Cached(PatType::WriteThrough), Some(cached)) => cached.version = version,
            // Takes the line for clean: what else was in it is lost.
            (Way::Cached(_), Some(_)) => drop(self.cores.remove(&(core, line))),
            (_, None) | (Way::Uncached, Some(_)) => {}
        }
        self.memory.insert(line, version);
    }

    /// WBINVD, or what a cache may do by itself at any time: dirty lines go to memory, all are gone.
    pub(super) fn write_back(&mut self, core: usize) {
        let own: Vec<u64> = {
            let lines = self.cores.keys().filter(|(n, _)| *n == core);
            lines.map(|(_, line)| *line).collect()
        };
        for line in own {
            self.clean(core, line);
            self.cores.remove(&(core, line));
        }
    }
}

impl State {
    /// The moment at which E is cleared.
    pub(super) fn before_mtrrs_go_off(&mut self, cpu: usize) {
        let core = self.cpus[cpu].core;
        if !self.sets[self.cpus[cpu].set].enabled() {
            return;
        }
        let mut own = self.caches.cores.iter().filter(|((n, _), _)| *n == core);
        let modified = own.any(|(_, line)| line.dirty);
        if modified && !self.config.self_snoop {
            self.violate(cpu, Rule::ModifiedWhenOff, String::from("no flush before"));
        }
        if self.config.fills_despite_cd {
            let touched: Vec<u64> = self.caches.latest.keys().copied().collect();
            for line in touched {
                let held = self.mapped_type(cpu, line << 6);
                if held.is_cacheable() {
                    self.caches.load(core, line, Way::Cached(held));
                }
            }
        }
    }

    /// One kernel access; a load of something stale breaks a rule.
    pub(super) fn cached_access(&mut self, cpu: usize, address: u64, held: PatType, store: bool) {
        let core = self.cpus[cpu].core;
        let line = address >> 6;
        let way = if !held.is_cacheable() {
            Way::Uncached
        } else if self.core_cache_disabled(core) {
            Way::NoFill
        } else {
            Way::Cached(held)
        };
        if store {
            self.caches.store(core, line, way);
            return;
        }
        let found = self.caches.load(core, line, way);
        let latest = self.caches.latest.get(&line).copied().unwrap_or(0);
        if found != latest {
            let text = format!(
                "{address:#x} read as {}: store {found}, not {latest}",
                held.short()
            );
            self.violate(cpu, Rule::StaleLine, text);
        }
    }

    /// Lines in a CPU's caches that its registers no longer allow: of memory that is not cacheable
    /// now, or dirty in memory that is not WB.
    pub(crate) fn stale_lines(&self, cpu: usize) -> Vec<StaleLine> {
        let core = self.cpus[cpu].core;
        let own = self.caches.cores.iter().filter(|((n, _), _)| *n == core);
        own.map(|((_, line), cached)| {
            let address = line << 6;
            StaleLine {
                address,
                dirty: cached.dirty,
                now: self.mapped_type(cpu, address),
            }
        })
        .filter(|line| !line.now.is_cacheable() || (line.dirty && line.now != PatType::WriteBack))
        .collect()
    }
}

impl SimCpu<'_> {
    /// This core's caches give up every line, as they may at any moment.
    pub fn evict(&mut self) {
        let number = self.number;
        let mut state = self.shared.enter(number);
        let core = state.cpus[number].core;
        state.caches.write_back(core);
    }
}
