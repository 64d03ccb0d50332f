//! This CPU: read, compare, and do the cheapest of what brings it in line.
//!
//! Owns the order of instructions; refuses to know other CPUs. The caller has made sure that no
//! other thread of this core runs anything but a wait loop while a window is open.

mod control;
mod outside;
mod window;

pub use self::control::flush_tlb;
use self::control::flush_without_global;
pub(crate) use self::control::{masked, turn_caching_on};
use self::outside::{pat_only, write_unused};
use self::window::Job;
use crate::cacheability::InForce;
use crate::cpu::{CR0_CD, CR0_NW, CpuOps};
use crate::delta::{Changes, Delta, Marks, Write};
use crate::error::{Error, Left};
use crate::platform::Platform;
use crate::policy::{AmdFixed, CacheFlush, PatFlush, Policy};
use crate::regs::{MsrAddr, MtrrCap, SysCfg};
use crate::snapshot::Snapshot;

/// What this CPU has to do to hold the target state, dearest first in meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Need {
    /// Nothing: every register compares equal and caching is on.
    Nothing,
    /// One write of CR0: the registers are right, but CD or NW is set.
    CachingOn,
    /// AMD's MtrrFixDramModEn, SYSCFG bit 19, which firmware left set.
    SysCfg,
    /// Pairs that are not in use, outside any window.
    UnusedPairs,
    /// The PAT, and a flush of this CPU's TLB.
    Pat,
    /// MTRRs, with caches off.
    Window,
}

/// What a CPU was found to have, compared with a target.
#[derive(Clone, Debug)]
pub struct Plan {
    have: Snapshot,
    marks: Marks,
    caching_off: bool,
    /// This CPU came out of reset and has cached nothing of its own yet.
    fresh: bool,
    /// AMD's MtrrFixDramModEn is set and to be cleared.
    hides_dram_bits: bool,
    /// Why the MTRR part is left alone here though the platform has one.
    mtrr_error: Option<Error>,
    /// Why the PAT is left alone, though it differs.
    pat_error: Option<Error>,
}

impl Plan {
    /// Reads this CPU and compares it with `want`; only reads. Interrupts as they are. `cap` is this
    /// CPU's MTRRCAP, where it was read since reset: else it is read, and a CPU with CR0.CD set counts as
    /// one that comes out of reset and has cached nothing of its own yet.
    ///
    /// A CPU whose MTRR part fails (a read faults, MTRRCAP does not fit) still gets its PAT; the error
    /// is kept and returned by [`Plan::apply`].
    ///
    /// # Errors
    /// [`Error::ReadFault`] when even the PAT cannot be read.
    pub fn examine(
        cpu: &mut impl CpuOps,
        want: &Snapshot,
        platform: &Platform,
        policy: &Policy,
        cap: Option<MtrrCap>,
    ) -> Result<Self, Error> {
        let mut plan = Self::nothing(platform);
        plan.look(cpu, want, platform, policy, cap)?;
        Ok(plan)
    }

    /// A plan that was not made yet.
    pub(crate) const fn nothing(platform: &Platform) -> Self {
        Self {
            have: Snapshot::empty(platform.phys_bits),
            marks: Marks::NONE,
            caching_off: false,
            fresh: false,
            hides_dram_bits: false,
            mtrr_error: None,
            pat_error: None,
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
        cap: Option<MtrrCap>,
    ) -> Result<(), Error> {
        let mut here = *platform;
        here.mtrr = platform.mtrr.and_then(|_| own_cap(cpu, want, cap));
        // What is not read now is not there; the rest is written over.
        (self.have.cap, self.have.pat) = (None, None);
        let mut read = self.have.recapture(cpu, &here, policy.amd_fixed);
        if let (Err(error), Ok(_)) = (read, here.mtrr) {
            here.mtrr = Err(error);
            self.have = Snapshot::empty(platform.phys_bits);
            read = self.have.recapture(cpu, &here, policy.amd_fixed);
        }
        read?;
        self.mtrr_error = platform.mtrr.ok().and(here.mtrr.err());
        self.marks = Marks::between(&self.have, want);
        if self.marks.need_window() || self.marks.outside_differ() {
            self.mtrr_error = self.mtrr_error.or(platform.mtrr_refused);
        }
        let pat_differs = self.marks.changes().contains(Changes::PAT);
        self.pat_error = platform.pat_refused().filter(|_| pat_differs);
        self.hides_dram_bits = self.have.exposes_dram_bits() && !platform.snp_host;
        self.caching_off = cpu.read_cr0() & (CR0_CD | CR0_NW) != 0;
        self.fresh = cap.is_none() && self.caching_off;
        Ok(())
    }

    /// This CPU has run before: what it cached then may be there still, though it comes with CD set.
    pub(crate) const fn ran_before(&mut self) {
        self.fresh = false;
    }

    /// What is to be written; `want` is the target this plan was made for.
    #[must_use]
    pub const fn delta<'a>(&'a self, want: &'a Snapshot) -> Delta<'a> {
        let marks = match self.pat_error {
            None => self.marks,
            Some(_) => self.marks.without_pat(),
        };
        Delta::marked(&self.have, want, marks)
    }

    /// The dearest thing that has to be done.
    #[must_use]
    pub fn need(&self) -> Need {
        let mtrrs = self.mtrr_error.is_none();
        if mtrrs && self.marks.need_window() {
            Need::Window
        } else if self.marks.changes().contains(Changes::PAT) && self.pat_error.is_none() {
            Need::Pat
        } else if mtrrs && self.marks.outside_differ() {
            Need::UnusedPairs
        } else if self.hides_dram_bits {
            Need::SysCfg
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
        if self.hides_dram_bits {
            changes |= Changes::ROUTING;
        }
        changes
    }

    /// Whether two plans found the same registers.
    pub(crate) fn has_same_registers(&self, other: &Self) -> bool {
        self.have == other.have
    }

    /// This CPU's MTRRCAP, where its MTRRs are used.
    pub(crate) const fn cap(&self) -> Option<MtrrCap> {
        self.have.cap
    }

    /// Why the MTRR part is left alone on this CPU, if it is.
    #[must_use]
    pub const fn mtrr_error(&self) -> Option<Error> {
        self.mtrr_error
    }

    /// Whether caches are flushed on the way to `want`.
    ///
    /// In a window always, as the manuals' procedure says; or, where the processor snoops itself and the
    /// policy leaves it to the change, when that takes cacheability away. With the PAT alone only then.
    /// With E clear nothing was cached, nor by a CPU that comes out of reset with CD set.
    #[must_use]
    pub fn flushes(&self, want: &Snapshot, platform: &Platform, policy: &Policy) -> bool {
        let unused = self.fresh || platform.guest.is_some();
        match (self.need(), policy.cache_flush) {
            (Need::Window, CacheFlush::Always) => true,
            (Need::Window, _) if !platform.self_snoop => true,
            (Need::Window, CacheFlush::SkipWithSelfSnoop) => false,
            (Need::Window | Need::Pat, _) => !unused && self.takes_away(want, platform, policy),
            _ => false,
        }
    }

    /// Whether some address, or some slot of the PAT that the policy does not call unused, stops being
    /// cacheable here.
    pub(crate) fn takes_away(&self, want: &Snapshot, platform: &Platform, policy: &Policy) -> bool {
        let (before, after) = (InForce::from(&self.have), InForce::from(want));
        let pat = match policy.pat_flush {
            PatFlush::WhenUncached => before.pat,
            PatFlush::Never => after.pat,
        };
        InForce { pat, ..before }.loses_cacheability(after, platform.rule)
    }

    /// Writes what differs and reads it back. Ends with CR0.CD and CR0.NW clear, in error too;
    /// CR4 and RFLAGS.IF as they were.
    ///
    /// `want` is the target this plan was made for. For [`Need::Window`] no other thread of the
    /// core may run anything but a wait loop meanwhile. VMCS and VMCB copies of the PAT and
    /// ASID-tagged TLB entries are the hypervisor's business.
    ///
    /// # Errors
    /// [`Error::WriteFault`], [`Error::WriteIgnored`] and [`Error::ReadBackFault`], saying what became
    /// of the old map; what [`Plan::mtrr_error`] says, after the PAT was brought in line; what
    /// [`Platform::pat_refused`] says, where the PAT differs, after the MTRRs were.
    ///
    /// Source: Intel SDM 3A, "MTRR Considerations in MP Systems", "Programming the PAT"; AMD APM 2,
    /// "Changing Memory Types".
    ///
    /// # Safety
    /// The plan was made on this CPU for this `want`, whose types are right for whatever memory is used
    /// under them; for [`Need::Window`] the other threads of the core stand still as said.
    pub unsafe fn apply(
        &mut self,
        cpu: &mut impl CpuOps,
        want: &Snapshot,
        platform: &Platform,
        policy: &Policy,
    ) -> Result<(), Error> {
        let hidden = self.hide_dram_bits(cpu, policy.amd_fixed);
        let delta = self.delta(want);
        let unused = match self.mtrr_error {
            None => write_unused(cpu, &delta),
            Some(_) => Ok(()),
        };
        let rest = if self.need() == Need::Window {
            let job = Job {
                delta,
                syscfg: self.have.syscfg,
                platform,
                amd_fixed: policy.amd_fixed,
                flush: self.flushes(want, platform, policy),
            };
            job.window(cpu)
        } else {
            let flush = self.flushes(want, platform, policy);
            let pat = delta.pat().map(|write| pat_only(cpu, write, flush));
            if self.caching_off {
                turn_caching_on(cpu);
            }
            pat.unwrap_or(Ok(()))
        };
        let hidden = hidden.map_err(|error| error.with_left(Left::UnusedPairs));
        rest.and(unused).and(hidden)?;
        self.mtrr_error.or(self.pat_error).map_or(Ok(()), Err)
    }

    /// Clears MtrrFixDramModEn where firmware left it set: only the fixed ranges' types are compared
    /// and written then. RdMem and WrMem stay what they are, out of sight.
    ///
    /// Source: AMD APM 2, "Extended Fixed-Range MTRR Type-Field Encodings".
    fn hide_dram_bits(&mut self, cpu: &mut impl CpuOps, amd_fixed: AmdFixed) -> Result<(), Error> {
        let Some(syscfg) = self.have.syscfg.filter(|_| self.hides_dram_bits) else {
            return Ok(());
        };
        let hidden = syscfg.difference(SysCfg::MTRR_FIX_DRAM_MOD_EN).raw();
        let write = Write {
            msr: MsrAddr::SYSCFG,
            value: hidden,
            before: syscfg.raw(),
        };
        put(cpu, write)?;
        self.have.hide_dram_bits(amd_fixed);
        Ok(())
    }
}

/// This CPU's MTRRCAP, if the target fits it: read, where it is not known.
fn own_cap(
    cpu: &mut impl CpuOps,
    want: &Snapshot,
    known: Option<MtrrCap>,
) -> Result<MtrrCap, Error> {
    let msr = MsrAddr::MTRRCAP;
    let cap = match known {
        Some(cap) => cap,
        None => MtrrCap::from_raw(cpu.rdmsr(msr).map_err(|_| Error::ReadFault { msr })?),
    };
    if want.fits(cap) {
        Ok(cap)
    } else {
        Err(Error::CapDiffers { cap: cap.raw() })
    }
}

/// Writes a register and reads it back. One that cannot be read back may hold anything.
fn put(cpu: &mut impl CpuOps, write: Write) -> Result<(), Error> {
    let Write { msr, value, before } = write;
    let left = Left::Unchanged;
    // SAFETY: a write of the delta, which the caller of `apply` wants; MTRRs only inside a window or in
    // pairs that are not in use.
    if unsafe { cpu.wrmsr(msr, value) }.is_err() {
        return Err(Error::WriteFault { msr, value, left });
    }
    match cpu.rdmsr(msr) {
        Ok(now) if now == value => Ok(()),
        Ok(now) if now == before => Err(Error::WriteIgnored { msr, value, left }),
        Ok(_) => {
            let left = Left::Altered;
            Err(Error::WriteIgnored { msr, value, left })
        }
        Err(_) => {
            let left = Left::Altered;
            Err(Error::ReadBackFault { msr, left })
        }
    }
}
