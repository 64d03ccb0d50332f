//! What WRMSR, MOV to CR0 and the time-stamp counter do to the machine.

use super::check::Rule;
use super::fault::{At, What};
use super::log::Op;
use super::registers::Register;
use super::state::State;
use crate::cpu::{CR0_CD, CR0_NW, MsrFault};
use crate::regs::{MsrAddr, MtrrDefType};

impl State {
    /// Counts a privileged instruction: its number in this life, and in this window.
    pub(super) fn count_op(&mut self, cpu: usize) -> (u64, Option<u64>) {
        let this = &mut self.cpus[cpu];
        this.life.ops += 1;
        if this.in_window {
            this.life.window_ops += 1;
        }
        let in_window = this.in_window.then_some(this.life.window_ops);
        (this.life.ops, in_window)
    }

    fn has_fault(&self, cpu: usize, at: At, what: fn(&What) -> bool) -> bool {
        self.config.faults.iter().any(|fault| {
            fault.cpu == cpu
                && fault.at == at
                && what(&fault.what)
                && fault.round.is_none_or(|round| round == self.round)
        })
    }

    pub(super) fn access_faults(&self, cpu: usize, msr: MsrAddr) -> bool {
        self.has_fault(cpu, At::Msr(msr), |what| matches!(what, What::Gp))
    }

    pub(super) fn wrmsr(
        &mut self,
        cpu: usize,
        msr: MsrAddr,
        value: u64,
        k: u64,
    ) -> Result<(), MsrFault> {
        let points = [At::Wrmsr(k), At::EveryWrmsr, At::Msr(msr)];
        let gp = points
            .iter()
            .any(|at| self.has_fault(cpu, *at, |what| matches!(what, What::Gp)));
        let register = match self.cpus[cpu].regs.register(msr) {
            Ok(register) if !gp && self.cpus[cpu].regs.accepts(register, value) => register,
            _ => {
                self.record(cpu, Op::WrmsrFault(msr.0, value));
                return Err(MsrFault);
            }
        };
        let ignored = points
            .iter()
            .any(|at| self.has_fault(cpu, *at, |what| matches!(what, What::Ignored)));
        if register.is_mtrr() {
            self.check_mtrr_write(cpu, register, value);
        }
        if self.cpus[cpu].regs.reroutes(register, value) {
            self.violate(cpu, Rule::RoutingWritten, format!("{msr} := {value:#x}"));
        }
        if ignored {
            self.record(cpu, Op::WrmsrIgnored(msr.0, value));
            return Ok(());
        }
        if self.cpus[cpu].regs.reserved_dram(register, value) {
            self.violate(cpu, Rule::ReservedFixedType, format!("{msr} := {value:#x}"));
        }
        self.record(cpu, Op::Wrmsr(msr.0, value));
        if register == Register::DefType && value & MtrrDefType::E == 0 {
            self.before_mtrrs_go_off(cpu);
        }
        let set = self.cpus[cpu].set;
        let mut mtrrs = self.sets[set];
        self.cpus[cpu].regs.write(&mut mtrrs, register, value);
        self.sets[set] = mtrrs;
        let core = self.cpus[cpu].core;
        self.refresh(core);
        Ok(())
    }

    pub(super) fn write_cr0(&mut self, cpu: usize, value: u64) -> Result<(), String> {
        if value & (CR0_CD | CR0_NW) == CR0_NW {
            return Err(format!("#GP: MOV CR0, {value:#x} with CD=0 and NW=1"));
        }
        if value & CR0_CD != 0 && self.config.cd_faults {
            return Err(format!(
                "MOV CR0, {value:#x} sets CD, which this guest may not"
            ));
        }
        self.record(cpu, Op::Cr0(value));
        let this = &mut self.cpus[cpu];
        let before = this.regs.cr0;
        this.regs.cr0 = value;
        if value & CR0_CD == 0 {
            this.owns_cd = false;
            this.in_window = false;
            this.reset_cd = false;
        } else if before & CR0_CD == 0 || before & CR0_NW != value & CR0_NW {
            this.owns_cd = true;
            this.reset_cd = false;
            self.check_siblings_hold(cpu);
        }
        let core = self.cpus[cpu].core;
        self.refresh(core);
        Ok(())
    }

    /// This CPU's time-stamp counter: nanoseconds, off by an amount of its own.
    pub(super) fn tsc(&self, cpu: usize) -> u64 {
        self.cpus[cpu].time / 1000 + tsc_offset(cpu)
    }

    /// The virtual time a time-stamp stands for; `None` for never.
    pub(super) fn deadline(&self, cpu: usize, tsc: u64) -> Option<u64> {
        let ns = tsc.saturating_sub(tsc_offset(cpu));
        ns.checked_mul(1000)
    }
}

const fn tsc_offset(cpu: usize) -> u64 {
    cpu as u64 * 1_000_003
}
