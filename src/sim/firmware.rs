//! What reset, INIT and the firmware's wake from S3 do to the registers.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::config::{Config, Init, MtrrScope, Trampoline};
use super::registers::{CR0_KERNEL, CR0_RESET};
use super::scribble::{Rewrite, Scribble};
use super::state::State;
use crate::cpu::{CR0_CD, CR0_NW};
use crate::memtype::MemType;
use crate::pat::Pat;
use crate::regs::{MAX_VARIABLE, MtrrDefType, VariableMtrr};
use crate::snapshot::Snapshot;

impl Scribble {
    /// Writes the further MSRs of a CPU.
    fn write_msrs(&self, config: &Config, cpu: usize, msrs: &mut BTreeMap<u32, u64>) {
        match self {
            Self::Msr(msr, value, inner) => {
                inner.write_msrs(config, cpu, msrs);
                msrs.insert(msr.0, *value);
            }
            Self::OnlyCores(cores, inner) if cores.contains(&config.place(cpu).0) => {
                inner.write_msrs(config, cpu, msrs);
            }
            _ => {}
        }
    }

    /// The registers a CPU ends up with.
    fn result(&self, config: &Config, cpu: usize, before: &Snapshot) -> Snapshot {
        let mut boot = config.firmware(cpu);
        boot.pat = boot.pat.map(|_| Pat::POWER_ON);
        match self {
            Self::Kept => return *before,
            Self::Reset => boot = after_reset(cpu, before),
            Self::LikeBoot => {}
            Self::Off => boot.def_type = boot.def_type.disabled(),
            Self::Zeroed => {
                boot.def_type = MtrrDefType::from_raw(0);
                boot.variable = [VariableMtrr::default(); MAX_VARIABLE];
                boot.fixed = Default::default();
            }
            Self::AnotherRange => {
                let last = boot.variable_count().wrapping_sub(1);
                let range = VariableMtrr::from_block(
                    0xc000_0000,
                    0x1000_0000,
                    MemType::WriteThrough,
                    boot.phys_bits,
                );
                if let (Some(pair), Some(range)) = (boot.variable.get_mut(last), range) {
                    *pair = range;
                }
            }
            Self::PatReset => {
                let pat = boot.pat;
                boot = *before;
                boot.pat = pat;
            }
            Self::Msr(_, _, inner) => return inner.result(config, cpu, before),
            Self::OnlyCores(cores, inner) => {
                return if cores.contains(&config.place(cpu).0) {
                    inner.result(config, cpu, before)
                } else {
                    *before
                };
            }
            Self::Custom(Rewrite(rewrite)) => rewrite(cpu, &mut boot),
        }
        boot
    }
}

/// A suspend to RAM and what the firmware does on the way back.
#[derive(Clone, Debug)]
pub struct S3 {
    /// The boot CPU's registers at the waking vector.
    pub boot: Scribble,
    /// The APs' registers. With MTRRs per core, the boot CPU's core has what `boot` says.
    pub aps: Scribble,
    /// CR0 of the APs: out of reset, if firmware did not run them.
    pub ap_cr0: u64,
}

impl S3 {
    /// Every CPU comes back like this; APs with CR0 as reset leaves it.
    #[must_use]
    pub fn all(scribble: Scribble) -> Self {
        Self {
            boot: scribble.clone(),
            aps: scribble,
            ap_cr0: CR0_RESET,
        }
    }

    /// The boot CPU keeps its registers, every other one comes back like this.
    #[must_use]
    pub fn aps(scribble: Scribble) -> Self {
        Self {
            boot: Scribble::Kept,
            aps: scribble,
            ap_cr0: CR0_RESET,
        }
    }

    /// The same with another CR0 for the APs.
    #[must_use]
    pub const fn with_ap_cr0(mut self, cr0: u64) -> Self {
        self.ap_cr0 = cr0;
        self
    }
}

impl State {
    /// Puts a whole snapshot in place. The set of a shared core is left to its first thread.
    pub(super) fn load_registers(&mut self, cpu: usize, snapshot: &Snapshot) {
        self.cpus[cpu].regs.load(snapshot);
        let set = self.cpus[cpu].set;
        if self.config.scope == MtrrScope::Thread || self.cpus[cpu].thread == 0 {
            self.sets[set] = snapshot.into();
        }
    }

    /// System management code rewrites a CPU's registers, whoever shares them.
    pub(super) fn smm(&mut self, cpu: usize, scribble: &Scribble) {
        let config = Arc::clone(&self.config);
        let result = scribble.result(&config, cpu, &self.snapshot(cpu));
        let set = self.cpus[cpu].set;
        self.cpus[cpu].regs.load(&result);
        scribble.write_msrs(&config, cpu, &mut self.cpus[cpu].regs.other);
        self.sets[set] = (&result).into();
        self.refresh(self.cpus[cpu].core);
    }

    /// The registers out of reset: V and E clear, the rest whatever it happens to be.
    pub(super) fn reset(&mut self, cpu: usize) {
        let junk = after_reset(cpu, &self.snapshot(cpu));
        self.load_registers(cpu, &junk);
        let thread = &mut self.cpus[cpu];
        thread.regs.cr0 = CR0_RESET;
        thread.regs.cr4 = 0;
        thread.regs.interrupts = false;
        thread.tlb.flush_all();
        thread.alive = false;
        thread.forget_windows();
        self.refresh(self.cpus[cpu].core);
    }

    /// Everything is lost, and firmware brings back what the profile says.
    pub(super) fn lose_and_restore(&mut self, profile: &S3) {
        let config = Arc::clone(&self.config);
        let before: Vec<Snapshot> = (0..self.cpus.len()).map(|n| self.snapshot(n)).collect();
        for cpu in 0..self.cpus.len() {
            self.reset(cpu);
        }
        for (cpu, before) in before.iter().enumerate() {
            let scribble = if cpu == 0 {
                &profile.boot
            } else {
                &profile.aps
            };
            let result = scribble.result(&config, cpu, before);
            self.load_registers(cpu, &result);
            let regs = &mut self.cpus[cpu].regs;
            regs.other = config.other(cpu);
            scribble.write_msrs(&config, cpu, &mut regs.other);
            regs.cr0 = profile.ap_cr0;
        }
        self.forget_caches();
        self.enter_kernel(0, CR0_KERNEL);
        for core in 0..config.cores {
            self.refresh(core);
        }
    }

    /// INIT, then the trampoline, up to kernel code.
    pub(super) fn init(&mut self, cpu: usize) {
        let config = Arc::clone(&self.config);
        if config.init == Init::WipesMtrrs && config.scope == MtrrScope::Thread {
            let set = self.cpus[cpu].set;
            self.sets[set].def_type = 0;
            self.sets[set].variable = [VariableMtrr::default(); MAX_VARIABLE];
            self.sets[set].fixed = Default::default();
        }
        if config.init == Init::ResetsPat {
            let regs = &mut self.cpus[cpu].regs;
            regs.pat = regs.pat.map(|_| Pat::POWER_ON.raw());
            regs.cr0 = CR0_RESET;
        }
        let kept = match config.trampoline {
            Trampoline::LeavesCaching => self.cpus[cpu].regs.cr0 & (CR0_CD | CR0_NW),
            Trampoline::EnablesCaching => 0,
        };
        self.enter_kernel(cpu, CR0_KERNEL | kept);
        self.cpus[cpu].regs.interrupts = false;
    }

    /// The state in which kernel code begins.
    pub(super) fn enter_kernel(&mut self, cpu: usize, cr0: u64) {
        let (cr3, cr4) = (self.config.cr3, self.config.cr4);
        let thread = &mut self.cpus[cpu];
        thread.regs.cr0 = cr0;
        thread.regs.cr3 = cr3;
        thread.regs.cr4 = cr4;
        thread.tlb.flush_all();
        thread.alive = true;
        thread.pending = false;
        thread.forget_windows();
        self.refresh(self.cpus[cpu].core);
    }
}

/// The registers out of reset: V and E clear, the rest whatever it happens to be.
fn after_reset(cpu: usize, before: &Snapshot) -> Snapshot {
    let mut junk = *before;
    let low = junk.phys_bits.page_mask();
    junk.def_type = MtrrDefType::from_raw(6);
    for (n, pair) in junk.variable.iter_mut().enumerate() {
        let pattern = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul((n + cpu + 1) as u64);
        *pair = VariableMtrr {
            base: (pattern & low) | 6,
            mask: pattern.rotate_left(17) & low,
        };
    }
    junk.fixed = [0x0500_0604_0006_0106; crate::regs::FIXED_COUNT];
    junk.pat = junk.pat.map(|_| Pat::POWER_ON);
    junk
}
