//! The full procedure, with caches off: from the first clear of E to CD clear this CPU touches only
//! its stack, its code and the job.

use super::{fault, flush_without_global, ignored, masked};
use crate::cpu::{CR0_CD, CR0_NW, CR4_PGE, CpuOps};
use crate::delta::{Delta, Write};
use crate::error::{Error, Left};
use crate::platform::Platform;
use crate::policy::Policy;
use crate::regs::{MsrAddr, MtrrDefType, SysCfg};
use crate::snapshot::{ExposedDramBits, Snapshot};

/// What one window is to do: all of it on this CPU's stack, or read-only.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub(super) delta: Delta<'a>,
    pub(super) want: &'a Snapshot,
    pub(super) syscfg: Option<SysCfg>,
    pub(super) platform: &'a Platform,
    pub(super) policy: &'a Policy,
}

impl Job<'_> {
    /// Caches off, registers written and read back, caches on. In the manual's order.
    ///
    /// Also says which pair that is not in use reads back otherwise than wanted.
    pub(super) fn window(&self, cpu: &mut impl CpuOps) -> Result<Option<Write>, Error> {
        let flush = self.platform.flushes_caches(self.policy);
        masked(cpu, |cpu| {
            let cr0 = cpu.read_cr0();
            cpu.write_cr0((cr0 | CR0_CD) & !CR0_NW);
            if flush {
                cpu.wbinvd();
            }
            let cr4 = cpu.read_cr4();
            if cr4 & CR4_PGE != 0 {
                cpu.write_cr4(cr4 & !CR4_PGE);
            } else {
                flush_without_global(cpu, cr4);
            }
            let result = self.reprogram(cpu, cr4 & !CR4_PGE);
            cpu.write_cr0(cr0 & !(CR0_CD | CR0_NW));
            if cr4 & CR4_PGE != 0 {
                cpu.write_cr4(cr4);
            }
            result
        })
    }

    /// DEF_TYPE with E clear, over what was compared.
    fn disable(&self) -> Write {
        let before = self.delta.def_type_before();
        Write {
            msr: MsrAddr::MTRR_DEF_TYPE,
            value: MtrrDefType::from_raw(before).disabled().raw(),
            before,
        }
    }

    /// The part with E clear, and the proof that it worked.
    fn reprogram(&self, cpu: &mut impl CpuOps, cr4: u64) -> Result<Option<Write>, Error> {
        let disable = self.disable();
        cpu.wrmsr(disable.msr, disable.value)
            .map_err(|_| fault(disable, Left::Unchanged))?;
        if !is_off(cpu) {
            // Nothing may be written while the old map is in force.
            return Err(ignored(disable, Left::Unchanged));
        }
        if self.platform.flushes_caches(self.policy) {
            cpu.wbinvd();
        }
        // RdMem and WrMem, if the policy wants them, stay visible until they have been read back.
        let amd_fixed = self.policy.amd_fixed;
        let exposed = ExposedDramBits::enter(cpu, self.syscfg, self.platform, amd_fixed);
        let result = match exposed {
            Err(error) => Err(error),
            Ok(_) => self
                .write_all(cpu)
                .map_err(|write| fault(write, Left::Torn)),
        };
        flush_without_global(cpu, cr4);
        let result = result.and_then(|()| self.verify(cpu));
        let result = result.map_err(|failed| {
            let left = self.roll_back(cpu);
            flush_without_global(cpu, cr4);
            failed.with_left(left)
        });
        match exposed.map(|exposed| exposed.leave(cpu)) {
            Ok(Err(error)) => result.and(Err(error)),
            _ => result,
        }
    }

    /// Fixed, variable and PAT, then DEF_TYPE. Stops at the first fault.
    fn write_all(&self, cpu: &mut impl CpuOps) -> Result<(), Write> {
        let enable = Write {
            value: self.want.def_type.raw(),
            ..self.disable()
        };
        for write in self.delta.window().chain(self.delta.pat()).chain([enable]) {
            cpu.wrmsr(write.msr, write.value).map_err(|_| write)?;
        }
        Ok(())
    }

    /// Reads the whole state back: a write may have been ignored, and a register outside the plan
    /// may have been written by firmware since it was compared. Returns what differs among the pairs
    /// that are not in use: nothing is put back for their sake.
    #[inline(never)] // its snapshot is not to be on the stack of those who wait for others
    fn verify(&self, cpu: &mut impl CpuOps) -> Result<Option<Write>, Error> {
        let mut have = Snapshot::empty(self.platform.phys_bits);
        let read = have.recapture(cpu, self.platform, self.policy.amd_fixed);
        read.map_err(|error| match error {
            Error::ReadFault { msr } => Error::ReadBackFault {
                msr,
                left: Left::Torn,
            },
            other => other,
        })?;
        let now = Delta::between(&have, self.want)?;
        match now.first_in_force() {
            None => Ok(now.outside().next()),
            Some(write) => Err(ignored(write, Left::Torn)),
        }
    }

    /// Puts back what every register of the plan held before; if one refuses, or one outside the
    /// plan was changed behind our back meanwhile, leaves E clear.
    #[inline(never)]
    fn roll_back(&self, cpu: &mut impl CpuOps) -> Left {
        let disable = self.disable();
        // E may have been set again before a mismatch was seen.
        turn_off(cpu, disable);
        for write in self.delta.window().chain(self.delta.pat()) {
            // The register that faulted still holds its old value: it is not written again.
            if cpu.rdmsr(write.msr) != Ok(write.before) {
                // Whether it worked is seen below.
                let _ = cpu.wrmsr(write.msr, write.before);
            }
        }
        let enable = disable.before;
        if self.differs_as_before(cpu)
            && cpu.wrmsr(disable.msr, enable).is_ok()
            && cpu.rdmsr(disable.msr) == Ok(enable)
        {
            return Left::RolledBack;
        }
        turn_off(cpu, disable);
        Left::Torn
    }

    /// Whether this CPU, but for DEF_TYPE, differs from the target in exactly what it did when the
    /// plan was made: then it holds the old map whole.
    fn differs_as_before(&self, cpu: &mut impl CpuOps) -> bool {
        let mut have = Snapshot::empty(self.platform.phys_bits);
        let read = have.recapture(cpu, self.platform, self.policy.amd_fixed);
        let now = read.and_then(|()| Delta::between(&have, self.want));
        now.is_ok_and(|now| now.window().eq(self.delta.window()) && now.pat() == self.delta.pat())
    }
}

/// Clears E, more than once if a write is ignored.
fn turn_off(cpu: &mut impl CpuOps, disable: Write) {
    const ATTEMPTS: u32 = 3;
    for _ in 0..ATTEMPTS {
        // Seen on reading back, whatever it returns.
        let _ = cpu.wrmsr(disable.msr, disable.value);
        if is_off(cpu) {
            return;
        }
    }
}

/// Whether E is clear.
fn is_off(cpu: &mut impl CpuOps) -> bool {
    cpu.rdmsr(MsrAddr::MTRR_DEF_TYPE)
        .is_ok_and(|raw| !MtrrDefType::from_raw(raw).enabled())
}
