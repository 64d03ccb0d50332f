//! This CPU: read, compare, and do the cheapest of what brings it in line.
//!
//! Owns the order of instructions; refuses to know other CPUs. The caller has made sure that no
//! other thread of this core runs anything but a wait loop while a window is open.

use crate::cpu::{CR0_CD, CR0_NW, CR4_PCIDE, CR4_PGE, CpuOps};
use crate::delta::{Changes, Delta, Write};
use crate::error::{Error, Left};
use crate::pat::Pat;
use crate::platform::Platform;
use crate::policy::{PatFlush, Policy};
use crate::regs::{MsrAddr, MtrrCap, MtrrDefType};
use crate::snapshot::{ExposedDramBits, Snapshot};

/// What this CPU has to do to hold the target state, dearest first in meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Nothing: every register compares equal and caching is on.
    Nothing,
    /// One write of CR0: the registers are right, but CD or NW is set.
    CachingOn,
    /// Pairs that are not in use, outside any window.
    UnusedPairs,
    /// The PAT, and a flush of this CPU's TLB.
    Pat,
    /// MTRRs, with caches off.
    Window,
}

/// How often MTRRCAP is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// This CPU is compared for the first time: its MTRRCAP is read and compared too.
    First,
    /// It was compared before.
    Again,
}

/// What a CPU was found to have, compared with a target.
#[derive(Clone, Debug)]
pub struct Plan {
    delta: Delta,
    syscfg: Option<crate::regs::SysCfg>,
    caching_off: bool,
    /// Why the MTRR part is left alone here though the platform has one.
    mtrr_error: Option<Error>,
}

impl Plan {
    /// Reads this CPU and compares it with `want`; only reads. Interrupts as they are.
    ///
    /// A CPU whose MTRR part fails (a read faults, MTRRCAP differs) still gets its PAT; the error
    /// is kept and returned by [`Plan::apply`].
    ///
    /// # Errors
    /// [`Error::ReadFault`] when even the PAT cannot be read.
    pub fn examine(
        cpu: &mut impl CpuOps,
        want: &Snapshot,
        platform: &Platform,
        policy: &Policy,
        arrival: Arrival,
    ) -> Result<Self, Error> {
        let mut here = *platform;
        let mut mtrr_error = None;
        if arrival == Arrival::First
            && let Err(error) = compare_cap(cpu, platform)
        {
            here.mtrr = Err(error);
            mtrr_error = Some(error);
        }
        let compared = Snapshot::capture(cpu, &here, policy.amd_fixed)
            .and_then(|have| Ok((Delta::between(&have, want)?, have.syscfg)));
        let (delta, syscfg) = match compared {
            Ok(compared) => compared,
            Err(error) if here.mtrr.is_ok() => {
                mtrr_error = Some(error);
                here.mtrr = Err(error);
                let have = Snapshot::capture(cpu, &here, policy.amd_fixed)?;
                (Delta::between(&have, want)?, have.syscfg)
            }
            Err(error) => return Err(error),
        };
        let caching_off = cpu.read_cr0() & (CR0_CD | CR0_NW) != 0;
        Ok(Self {
            delta,
            syscfg,
            caching_off,
            mtrr_error,
        })
    }

    /// The dearest thing that has to be done.
    #[must_use]
    pub fn need(&self) -> Need {
        if self.delta.needs_window() {
            Need::Window
        } else if self.delta.pat().is_some() {
            Need::Pat
        } else if !self.delta.outside().is_empty() {
            Need::UnusedPairs
        } else if self.caching_off {
            Need::CachingOn
        } else {
            Need::Nothing
        }
    }

    /// The groups in which this CPU differs from the target.
    #[must_use]
    pub fn changes(&self) -> Changes {
        let mut changes = self.delta.changes();
        changes.set(Changes::CACHING, self.caching_off);
        changes
    }

    /// Why the MTRR part is left alone on this CPU, if it is.
    #[must_use]
    pub const fn mtrr_error(&self) -> Option<Error> {
        self.mtrr_error
    }

    /// Writes what differs and reads it back. Ends with CR0.CD and CR0.NW clear, in error too;
    /// CR4 and RFLAGS.IF as they were.
    ///
    /// `want` is the target this plan was made for. For [`Need::Window`] no other thread of the
    /// core may run anything but a wait loop meanwhile. VMCS and VMCB copies of the PAT and
    /// ASID-tagged TLB entries are the hypervisor's business.
    ///
    /// # Errors
    /// [`Error::WriteFault`] and [`Error::WriteIgnored`], saying what became of the old map; what
    /// [`Plan::mtrr_error`] says, after the PAT was brought in line.
    ///
    /// Source: Intel SDM 3A, "MTRR Considerations in MP Systems", "Programming the PAT"; AMD APM 2,
    /// "Changing Memory Types".
    pub fn apply(
        &self,
        cpu: &mut impl CpuOps,
        want: &Snapshot,
        platform: &Platform,
        policy: &Policy,
    ) -> Result<(), Error> {
        let pairs = write_unused(cpu, self.delta.outside());
        let rest = match self.need() {
            Need::Window => window(cpu, self, want, platform, policy),
            _ => {
                let pat = match self.delta.pat() {
                    Some(write) => pat_only(cpu, write, platform, policy),
                    None => Ok(()),
                };
                if self.caching_off {
                    let cr0 = cpu.read_cr0();
                    cpu.write_cr0(cr0 & !(CR0_CD | CR0_NW));
                }
                pat
            }
        };
        rest.and(pairs).and(self.mtrr_error.map_or(Ok(()), Err))
    }
}

fn compare_cap(cpu: &mut impl CpuOps, platform: &Platform) -> Result<(), Error> {
    let Ok(expected) = platform.mtrr else {
        return Ok(());
    };
    let msr = MsrAddr::MTRRCAP;
    let cap = cpu.rdmsr(msr).map_err(|_| Error::ReadFault { msr })?;
    if MtrrCap::from_raw(cap) == expected {
        Ok(())
    } else {
        Err(Error::CapDiffers { cap })
    }
}

/// Flushes every TLB entry of this logical processor, global ones and those of all PCIDs: PGE is
/// toggled and left as it was.
///
/// Source: Intel SDM 3A, "Operations that Invalidate TLBs and Paging-Structure Caches".
pub fn flush_tlb(cpu: &mut impl CpuOps) {
    let cr4 = cpu.read_cr4();
    cpu.write_cr4(cr4 ^ CR4_PGE);
    cpu.write_cr4(cr4);
}

/// Runs `f` with interrupts masked, and leaves RFLAGS.IF as it was.
pub(crate) fn masked<C: CpuOps, R>(cpu: &mut C, f: impl FnOnce(&mut C) -> R) -> R {
    let enabled = cpu.interrupts_enabled();
    if enabled {
        cpu.cli();
    }
    let result = f(cpu);
    if enabled {
        cpu.sti();
    }
    result
}

/// The PAT alone: written, then the TLB flushed; CR0.CD is not touched. Caches are flushed where a
/// slot stops being cacheable, last, so that no stale translation can fill them again.
fn pat_only(
    cpu: &mut impl CpuOps,
    write: Write,
    platform: &Platform,
    policy: &Policy,
) -> Result<(), Error> {
    let flush = policy.pat_flush == PatFlush::WhenUncached
        && platform.guest.is_none()
        && loses_cacheable_slot(write);
    masked(cpu, |cpu| {
        cpu.wrmsr(write.msr, write.value)
            .map_err(|_| fault(write, Left::Unchanged))?;
        flush_tlb(cpu);
        if flush {
            cpu.wbinvd();
        }
        match cpu.rdmsr(write.msr) {
            Ok(value) if value == write.value => Ok(()),
            _ => Err(ignored(write, Left::Unchanged)),
        }
    })
}

fn loses_cacheable_slot(write: Write) -> bool {
    let cacheable = |raw, slot| {
        Pat::from_raw(raw)
            .slot(slot)
            .is_ok_and(|t| t.is_cacheable())
    };
    (0..8).any(|slot| cacheable(write.before, slot) && !cacheable(write.value, slot))
}

/// Pairs with V clear before and after: they match nothing, so the map in force is the same
/// whatever becomes of the writes.
fn write_unused(cpu: &mut impl CpuOps, writes: &[Write]) -> Result<(), Error> {
    for write in writes {
        cpu.wrmsr(write.msr, write.value)
            .map_err(|_| fault(*write, Left::Unchanged))?;
    }
    for write in writes {
        if cpu.rdmsr(write.msr) != Ok(write.value) {
            return Err(ignored(*write, Left::Unchanged));
        }
    }
    Ok(())
}

fn fault(write: Write, left: Left) -> Error {
    Error::WriteFault {
        msr: write.msr,
        value: write.value,
        left,
    }
}

fn ignored(write: Write, left: Left) -> Error {
    Error::WriteIgnored {
        msr: write.msr,
        value: write.value,
        left,
    }
}

/// The full procedure. From the first clear of E to CD clear this CPU touches only its stack, its
/// code and the plan.
fn window(
    cpu: &mut impl CpuOps,
    plan: &Plan,
    want: &Snapshot,
    platform: &Platform,
    policy: &Policy,
) -> Result<(), Error> {
    let flush = platform.flushes_caches(policy);
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
        let result = reprogram(cpu, plan, want, platform, policy, cr4 & !CR4_PGE);
        cpu.write_cr0(cr0 & !(CR0_CD | CR0_NW));
        if cr4 & CR4_PGE != 0 {
            cpu.write_cr4(cr4);
        }
        result
    })
}

/// Flushes the TLB while PGE is clear: CR3 reaches the current PCID only.
fn flush_without_global(cpu: &mut impl CpuOps, cr4: u64) {
    if cr4 & CR4_PCIDE != 0 {
        cpu.write_cr4(cr4 | CR4_PGE);
        cpu.write_cr4(cr4);
    } else {
        let cr3 = cpu.read_cr3();
        cpu.write_cr3(cr3);
    }
}

/// The part of the window with E clear, and the proof that it worked.
fn reprogram(
    cpu: &mut impl CpuOps,
    plan: &Plan,
    want: &Snapshot,
    platform: &Platform,
    policy: &Policy,
    cr4: u64,
) -> Result<(), Error> {
    let before = plan.delta.def_type_before();
    let disable = Write {
        msr: MsrAddr::MTRR_DEF_TYPE,
        value: MtrrDefType::from_raw(before).disabled().raw(),
        before,
    };
    cpu.wrmsr(disable.msr, disable.value)
        .map_err(|_| fault(disable, Left::Unchanged))?;
    if !is_off(cpu) {
        // Nothing may be written while the old map is in force.
        return Err(ignored(disable, Left::Unchanged));
    }
    if platform.flushes_caches(policy) {
        cpu.wbinvd();
    }
    let enable = Write {
        value: want.def_type.raw(),
        ..disable
    };
    // RdMem and WrMem, if the policy wants them, stay visible until they have been read back.
    let exposed = ExposedDramBits::enter(cpu, plan.syscfg, platform, policy.amd_fixed);
    let result = match exposed {
        Err(error) => Err(error),
        Ok(_) => write_all(cpu, &plan.delta, enable).map_err(|write| fault(write, Left::Torn)),
    };
    flush_without_global(cpu, cr4);
    let result = result.and_then(|()| verify(cpu, want, platform, policy));
    let result = result.map_err(|failed| {
        let left = roll_back(cpu, plan, want, platform, policy, disable);
        flush_without_global(cpu, cr4);
        failed.with_left(left)
    });
    match exposed.map(|exposed| exposed.leave(cpu)) {
        Ok(Err(error)) => result.and(Err(error)),
        _ => result,
    }
}

/// Fixed, variable and PAT, then DEF_TYPE. Stops at the first fault.
fn write_all(cpu: &mut impl CpuOps, delta: &Delta, enable: Write) -> Result<(), Write> {
    let pat = delta.pat();
    for write in delta.window().iter().chain(&pat).chain([&enable]) {
        cpu.wrmsr(write.msr, write.value).map_err(|_| *write)?;
    }
    Ok(())
}

/// Reads the whole state back: a write may have been ignored, and a register outside the plan may
/// have been written by firmware since it was compared.
fn verify(
    cpu: &mut impl CpuOps,
    want: &Snapshot,
    platform: &Platform,
    policy: &Policy,
) -> Result<(), Error> {
    let have = Snapshot::capture(cpu, platform, policy.amd_fixed)?;
    let delta = Delta::between(&have, want)?;
    match delta.first() {
        None => Ok(()),
        Some(write) => Err(ignored(write, Left::Torn)),
    }
}

/// Puts back what every register of the plan held before; if one refuses, or one outside the plan
/// was changed behind our back meanwhile, leaves E clear.
fn roll_back(
    cpu: &mut impl CpuOps,
    plan: &Plan,
    want: &Snapshot,
    platform: &Platform,
    policy: &Policy,
    disable: Write,
) -> Left {
    // E may have been set again before a mismatch was seen.
    turn_off(cpu, disable);
    let pat = plan.delta.pat();
    for write in plan.delta.window().iter().chain(&pat) {
        // The register that faulted still holds its old value: it is not written again.
        if cpu.rdmsr(write.msr) != Ok(write.before) {
            // Whether it worked is seen below.
            let _ = cpu.wrmsr(write.msr, write.before);
        }
    }
    let enable = disable.before;
    if differs_as_before(cpu, &plan.delta, want, platform, policy)
        && cpu.wrmsr(disable.msr, enable).is_ok()
        && cpu.rdmsr(disable.msr) == Ok(enable)
    {
        return Left::RolledBack;
    }
    turn_off(cpu, disable);
    Left::Torn
}

/// Whether this CPU, but for DEF_TYPE, differs from `want` in exactly what it did when the plan was
/// made: then it holds the old map whole.
fn differs_as_before(
    cpu: &mut impl CpuOps,
    before: &Delta,
    want: &Snapshot,
    platform: &Platform,
    policy: &Policy,
) -> bool {
    let now = Snapshot::capture(cpu, platform, policy.amd_fixed)
        .and_then(|have| Delta::between(&have, want));
    now.is_ok_and(|now| now.window() == before.window() && now.pat() == before.pat())
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
