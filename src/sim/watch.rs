//! Watches the rules while the CPUs run.

use super::check::Rule;
use super::registers::Register;
use super::state::State;
use crate::atomic::Touch;
use crate::regs::VariableMtrr;

impl State {
    /// The window rule, and where windows begin.
    pub(super) fn check_mtrr_write(&mut self, cpu: usize, register: Register, value: u64) {
        let this = &self.cpus[cpu];
        let set = &self.sets[this.set];
        let unused = match register {
            Register::Base(n) => !set.variable[n].valid(),
            Register::Mask(n) => !set.variable[n].valid() && value & VariableMtrr::V == 0,
            _ => false,
        };
        let same = this.regs.read(set, register) == value;
        let caching_off = this.regs.cache_disabled();
        let enabled = set.enabled();
        let allowed = caching_off && (!enabled || register == Register::DefType);
        if same {
            self.cpus[cpu].counters.same_value_writes += 1;
        }
        if caching_off && !(same || unused) {
            let this = &mut self.cpus[cpu];
            this.owns_cd = true;
            this.reset_cd = false;
            if !this.in_window {
                this.in_window = true;
                this.life.window_ops = 0;
                this.counters.windows += 1;
            }
            self.check_siblings_hold(cpu);
        }
        if !(same || unused || allowed) {
            let text = format!("{register:?} := {value:#x} with E={enabled}, CD={caching_off}");
            self.violate(cpu, Rule::MtrrWriteOutsideWindow, text);
        }
    }

    /// When caching goes off under a sibling that is in the middle of kernel work.
    pub(super) fn check_siblings_hold(&mut self, cpu: usize) {
        let now = self.cpus[cpu].time;
        let core = self.cpus[cpu].core;
        for n in self.threads_of(core) {
            let other = &self.cpus[n];
            let busy = other.working && other.time > now;
            if n != cpu && other.runs() && busy {
                let text = format!("does {:?} while CPU {cpu} has caching off", other.last);
                self.violate(n, Rule::SiblingRan, text);
                self.cpus[n].working = false;
            }
        }
    }

    /// The rule for a thread whose sibling has caching off: wait and flush, nothing else.
    pub(super) fn check_sibling(&mut self, cpu: usize, what: &str) {
        let core = self.cpus[cpu].core;
        let owner = self
            .threads_of(core)
            .find(|&n| n != cpu && self.cpus[n].holds_core());
        if let Some(owner) = owner {
            self.violate(
                cpu,
                Rule::SiblingRan,
                format!("{what} while CPU {owner} has caching off"),
            );
        }
    }

    /// The rules for shared words.
    pub(super) fn check_touch(&mut self, cpu: usize, how: Touch) {
        let this = &self.cpus[cpu];
        let mtrrs_off = this.regs.cap.is_some() && !self.sets[this.set].enabled();
        if this.in_window {
            let text = format!("{how:?} of a shared word inside the window");
            self.violate(cpu, Rule::SharedTouchInWindow, text);
        } else if how == Touch::Locked && mtrrs_off {
            let text = String::from("a locked instruction is a bus lock on uncachable memory");
            self.violate(cpu, Rule::LockedWithMtrrsOff, text);
        }
    }
}
