//! This CPU: read, compare, and do the cheapest of what brings it in line.
//!
//! Owns the order of instructions; refuses to know other CPUs. The caller has made sure that no
//! other thread of this core runs anything but a wait loop while a window is open.

mod control;
mod held;
mod outside;
#[cfg(all(test, feature = "sim", not(loom)))]
mod renewal;
mod window;

pub use self::control::flush_tlb;
use self::control::flush_without_global;
pub(crate) use self::control::{masked, turn_caching_on};
pub(crate) use self::held::holds;
use self::outside::{pat_only, unused_ignored, write_unused};
use self::window::Job;
use crate::cpu::{CR0_CD, CR0_NW, CpuOps};
use crate::delta::{Changes, Delta, Marks, Write};
use crate::error::{Error, Left};
use crate::platform::Platform;
use crate::policy::Policy;
use crate::regs::{MsrAddr, MtrrCap};
use crate::snapshot::Snapshot;

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
    have: Snapshot,
    marks: Marks,
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
        let mut plan = Self::nothing(platform);
        plan.look(cpu, want, platform, policy, arrival)?;
        Ok(plan)
    }

    /// A plan that was not made yet.
    pub(crate) const fn nothing(platform: &Platform) -> Self {
        Self {
            have: Snapshot::empty(platform.phys_bits),
            marks: Marks::NONE,
            caching_off: false,
            mtrr_error: None,
        }
    }

    /// [`Plan::examine`] in place, over [`Plan::nothing`] or an earlier plan: a CPU that runs uncached
    /// pays for every move.
    pub(crate) fn look(
        &mut self,
        cpu: &mut impl CpuOps,
        want: &Snapshot,
        platform: &Platform,
        policy: &Policy,
        arrival: Arrival,
    ) -> Result<(), Error> {
        // What is not read now is not there; the rest is written over.
        self.have.cap = None;
        self.have.pat = None;
        self.marks = Marks::NONE;
        self.mtrr_error = None;
        let mut here = *platform;
        if arrival == Arrival::First
            && let Err(error) = compare_cap(cpu, platform)
        {
            here.mtrr = Err(error);
            self.mtrr_error = Some(error);
        }
        if let Err(error) = self.compare(cpu, want, &here, policy) {
            if here.mtrr.is_err() {
                return Err(error);
            }
            here.mtrr = Err(error);
            self.mtrr_error = Some(error);
            self.have = Snapshot::empty(platform.phys_bits);
            self.compare(cpu, want, &here, policy)?;
        }
        self.caching_off = cpu.read_cr0() & (CR0_CD | CR0_NW) != 0;
        Ok(())
    }

    fn compare(
        &mut self,
        cpu: &mut impl CpuOps,
        want: &Snapshot,
        here: &Platform,
        policy: &Policy,
    ) -> Result<(), Error> {
        self.have.recapture(cpu, here, policy.amd_fixed)?;
        self.marks = Marks::between(&self.have, want)?;
        Ok(())
    }

    /// What is to be written; `want` is the target this plan was made for.
    #[must_use]
    pub const fn delta<'a>(&'a self, want: &'a Snapshot) -> Delta<'a> {
        Delta::marked(&self.have, want, self.marks)
    }

    /// Compares again, after siblings had windows, if those wrote registers of this CPU: what was
    /// found is then not what would have to be put back. Keeps it if they cannot be read now.
    ///
    /// Threads that share registers share them by the group, and a sibling that was brought in line
    /// left none as this plan found it: one look per group tells.
    pub(crate) fn renew(
        &mut self,
        cpu: &mut impl CpuOps,
        want: &Snapshot,
        platform: &Platform,
        policy: &Policy,
    ) {
        let untouched = self.need() == Need::Window && {
            let mut looks = self.delta(want).one_of_each_group();
            looks.all(|write| cpu.rdmsr(write.msr) == Ok(write.before))
        };
        if !untouched && self.mtrr_error.is_none() {
            self.look_again(cpu, want, platform, policy);
        }
    }

    #[inline(never)] // the other plan is not to be on the stack of those who need none
    fn look_again(
        &mut self,
        cpu: &mut impl CpuOps,
        want: &Snapshot,
        platform: &Platform,
        policy: &Policy,
    ) {
        let mut now = Self::nothing(platform);
        let looked = now.look(cpu, want, platform, policy, Arrival::Again);
        if looked.is_ok() {
            *self = now;
        }
    }

    /// The dearest thing that has to be done.
    #[must_use]
    pub fn need(&self) -> Need {
        if self.marks.need_window() {
            Need::Window
        } else if self.marks.changes().contains(Changes::PAT) {
            Need::Pat
        } else if self.marks.outside_differ() {
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
        let mut changes = self.marks.changes();
        changes.set(Changes::CACHING, self.caching_off);
        changes
    }

    /// Whether this CPU's MTRRs could be read, and are on.
    pub(crate) const fn found_enabled(&self) -> bool {
        self.have.cap.is_some() && self.have.def_type.enabled()
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
        if self.need() == Need::Nothing {
            return self.mtrr_error.map_or(Ok(()), Err);
        }
        let delta = self.delta(want);
        let written = write_unused(cpu, &delta);
        let rest = match self.need() {
            Need::Window => {
                let job = Job {
                    delta,
                    want,
                    syscfg: self.have.syscfg,
                    platform,
                    policy,
                };
                job.window(cpu)
            }
            _ => {
                let pat = match delta.pat() {
                    Some(write) => pat_only(cpu, write, platform, policy),
                    None => Ok(()),
                };
                if self.caching_off {
                    turn_caching_on(cpu);
                }
                pat.map(|()| unused_ignored(cpu, &delta))
            }
        };
        let differs = rest?;
        written?;
        match differs {
            Some(write) => Err(ignored(write, Left::UnusedPairs)),
            None => self.mtrr_error.map_or(Ok(()), Err),
        }
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
