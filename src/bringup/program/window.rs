//! The full procedure, with caches off: from the first clear of E to CD clear this CPU touches only
//! its stack, its code and the job.

use super::{flush_without_global, masked, put};
use crate::cpu::{CR0_CD, CR0_NW, CR4_PGE, CpuOps};
use crate::delta::{Delta, Write};
use crate::error::{Error, Left};
use crate::platform::Platform;
use crate::policy::AmdFixed;
use crate::regs::{MsrAddr, MtrrDefType, SysCfg};
use crate::snapshot::ExposedDramBits;

/// What one window is to do: all of it on this CPU's stack, or read-only.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) delta: Delta<'a>,
    pub(super) syscfg: Option<SysCfg>,
    pub(super) platform: &'a Platform,
    pub(super) amd_fixed: AmdFixed,
    /// Whether caches are flushed.
    pub(super) flush: bool,
}

impl Job<'_> {
    /// Caches off, registers written and read back, caches on. In the manual's order.
    pub(super) fn window(&self, cpu: &mut impl CpuOps) -> Result<(), Error> {
        masked(cpu, |cpu| {
            let cr0 = cpu.read_cr0();
            // SAFETY: no other thread of the core runs anything but a wait loop, says the caller of `apply`.
            unsafe { cpu.write_cr0((cr0 | CR0_CD) & !CR0_NW) };
            if self.flush {
                cpu.wbinvd();
            }
            let cr4 = cpu.read_cr4();
            if cr4 & CR4_PGE != 0 {
                // SAFETY: only PGE differs from what was read.
                unsafe { cpu.write_cr4(cr4 & !CR4_PGE) };
            } else {
                flush_without_global(cpu, cr4);
            }
            let result = self.reprogram(cpu, cr4 & !CR4_PGE);
            // SAFETY: both bits clear.
            unsafe { cpu.write_cr0(cr0 & !(CR0_CD | CR0_NW)) };
            if cr4 & CR4_PGE != 0 {
                // SAFETY: what was read.
                unsafe { cpu.write_cr4(cr4) };
            }
            result
        })
    }

    /// DEF_TYPE from what was compared to `value`.
    fn def_type(&self, value: u64) -> Write {
        Write {
            msr: MsrAddr::MTRR_DEF_TYPE,
            value,
            before: self.delta.def_type_before(),
        }
    }

    /// DEF_TYPE with E clear, over what was compared.
    fn disable(&self) -> Write {
        let before = MtrrDefType::from_raw(self.delta.def_type_before());
        self.def_type(before.disabled().raw())
    }

    /// The part with E clear. Nothing may be written while the old map is in force, and the new one
    /// is in force only once every register of it has been read back.
    fn reprogram(&self, cpu: &mut impl CpuOps, cr4: u64) -> Result<(), Error> {
        put(cpu, self.disable()).map_err(|error| {
            let left = self.not_disabled(cpu, error);
            flush_without_global(cpu, cr4);
            error.with_left(left)
        })?;
        if self.flush {
            cpu.wbinvd();
        }
        // RdMem and WrMem, if the policy wants them, stay visible until they have been read back.
        let exposed = ExposedDramBits::enter(cpu, self.syscfg, self.platform, self.amd_fixed);
        let result = exposed.and_then(|_| self.write_all(cpu));
        flush_without_global(cpu, cr4);
        let result = result.map_err(|failed| {
            let left = self.roll_back(cpu);
            flush_without_global(cpu, cr4);
            failed.with_left(left)
        });
        let hidden = exposed.and_then(|exposed| exposed.leave(cpu));
        result.and(hidden.map_err(|error| error.with_left(Left::UnusedPairs)))
    }

    /// What is left where DEF_TYPE did not become what it was with E clear. If E is set, it is as before or
    /// somebody else's, whose map stays.
    fn not_disabled(&self, cpu: &mut impl CpuOps, error: Error) -> Left {
        match (error, error.left()) {
            (Error::ReadBackFault { .. }, _) => return Left::Torn,
            (_, Some(Left::Altered)) => {}
            _ => return Left::Unchanged,
        }
        let disable = self.disable();
        let now = cpu.rdmsr(disable.msr).map(MtrrDefType::from_raw);
        if now.is_ok_and(MtrrDefType::enabled) {
            Left::Altered
        } else if put(cpu, disable.back()).is_ok() {
            Left::RolledBack
        } else {
            let _ = put(cpu, disable);
            Left::Torn
        }
    }

    /// Fixed, variable and PAT, then DEF_TYPE. Stops at the first that does not take its value.
    fn write_all(&self, cpu: &mut impl CpuOps) -> Result<(), Error> {
        let enable = self.def_type(self.delta.def_type_wanted());
        let mut writes = self.delta.window().chain(self.delta.pat()).chain([enable]);
        writes.try_for_each(|write| put(cpu, write))
    }

    /// Puts back what every register of the plan held before; if one refuses, leaves E clear.
    #[inline(never)]
    fn roll_back(&self, cpu: &mut impl CpuOps) -> Left {
        let disable = self.disable();
        // E may have been set before the fault, or by it.
        let mut restored = put(cpu, disable).is_ok();
        for write in self.delta.window().chain(self.delta.pat()) {
            // The register that faulted still holds its old value: it is not written again.
            restored &= cpu.rdmsr(write.msr) == Ok(write.before) || put(cpu, write.back()).is_ok();
        }
        if restored && put(cpu, disable.back()).is_ok() {
            return Left::RolledBack;
        }
        let _ = put(cpu, disable);
        Left::Torn
    }
}
