//! How virtual time passes: who runs how fast, and what the caches have to write back.

use super::cost::Pace;
use super::log::{Activity, Span};
use super::state::State;

impl State {
    /// Works out again who of a core fetches uncached, after a register or a status changed.
    pub(crate) fn refresh(&mut self, core: usize) {
        let off = self.core_cache_disabled(core);
        let mut any = false;
        for n in self.threads_of(core) {
            let uncached = off || !self.type_now(n, self.config.code, 0).is_cacheable();
            let this = &mut self.cpus[n];
            this.uncached = uncached && this.runs();
            any |= this.uncached;
        }
        if any != self.core_uncached[core] {
            self.core_uncached[core] = any;
            if any {
                self.uncached_cores += 1;
            } else {
                self.uncached_cores -= 1;
            }
        }
    }

    pub(crate) fn pace(&self, cpu: usize) -> Pace {
        let this = &self.cpus[cpu];
        let sibling_uncached = self.config.threads > 1
            && self
                .threads_of(this.core)
                .any(|n| n != cpu && self.cpus[n].uncached);
        Pace {
            uncached: this.uncached,
            sibling_uncached,
            other_cores: self.uncached_cores - u64::from(self.core_uncached[this.core]),
        }
    }

    /// Lets time pass on a CPU for one privileged instruction and the code around it.
    pub(crate) fn charge(&mut self, cpu: usize, cost: u64) {
        let pace = self.pace(cpu);
        let costs = &self.config.costs;
        let total = cost + costs.instructions(costs.instructions_per_op, pace);
        self.spend(cpu, total);
    }

    /// Lets time pass on a CPU; with a seed, more or less of it.
    pub(crate) fn spend(&mut self, cpu: usize, cost: u64) {
        let cost = if self.random == 0 {
            cost
        } else {
            let dice = self.dice();
            let scaled = cost / 1024 * (512 + dice % 1024) + cost % 1024;
            if dice >> 58 == 0 {
                scaled + (dice >> 20) % 20_000_000
            } else {
                scaled
            }
        };
        self.spend_exactly(cpu, cost);
    }

    /// The next pseudo-random number (splitmix64).
    pub(crate) const fn dice(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Lets exactly this much time pass.
    pub(super) fn spend_exactly(&mut self, cpu: usize, time: u64) {
        if self.free() {
            return;
        }
        let now = self.cpus[cpu].time;
        self.cpus[cpu].time += time;
        self.span(cpu, now, now + time, Activity::Cached);
    }

    /// Leaves dirty lines in the core's caches; what does not fit goes to the last-level cache.
    pub(super) fn dirty(&mut self, cpu: usize, lines: u64) {
        let core = self.cpus[cpu].core;
        let llc = core / self.config.cores_per_llc.max(1);
        let room = self
            .config
            .costs
            .core_lines
            .saturating_sub(self.core_dirty[core]);
        let here = lines.min(room);
        self.core_dirty[core] += here;
        let shared = self.llc_dirty[llc].saturating_add(lines - here);
        self.llc_dirty[llc] = shared.min(self.config.costs.llc_lines);
    }

    /// WBINVD: looks at every line, writes the dirty ones at the bandwidth all CPUs share.
    pub(super) fn write_back(&mut self, cpu: usize) {
        let costs = self.config.costs;
        let core = self.cpus[cpu].core;
        let llc = core / self.config.cores_per_llc.max(1);
        let now = self.cpus[cpu].time;
        let mut start = now;
        if costs.wbinvd_serialised_per_llc {
            start = start.max(self.llc_busy[llc]);
        }
        let lines =
            core::mem::take(&mut self.core_dirty[core]) + core::mem::take(&mut self.llc_dirty[llc]);
        self.cpus[cpu].counters.lines_written_back += lines;
        self.caches.write_back(core);
        let looked = (costs.core_lines + costs.llc_lines) * costs.wbinvd_per_line;
        let mut end = start + costs.wbinvd_base + looked;
        if lines > 0 {
            self.memory_busy = self.memory_busy.max(start) + lines * costs.write_back_line;
            end = end.max(self.memory_busy);
        }
        self.llc_busy[llc] = end;
        self.spend(cpu, end - now);
    }

    /// Notes what a CPU did from when to when. Execution is told apart here.
    pub(super) fn span(&mut self, cpu: usize, start: u64, end: u64, activity: Activity) {
        if !self.config.timeline || start == end {
            return;
        }
        let core = self.cpus[cpu].core;
        let mut siblings = self.threads_of(core).filter(|n| *n != cpu);
        let held = siblings.any(|n| self.cpus[n].holds_core());
        let this = &mut self.cpus[cpu];
        let activity = match activity {
            Activity::Waiting if held => Activity::Held,
            Activity::Cached if this.owns_cd => Activity::Window,
            Activity::Cached if this.uncached => Activity::Uncached,
            other => other,
        };
        match this.spans.last_mut() {
            Some(last) if last.activity == activity && last.end == start => last.end = end,
            _ => this.spans.push(Span {
                start,
                end,
                activity,
            }),
        }
    }
}
