//! The beginning of a machine's life: what it can do, and what every CPU is to have.

use super::in_line::ALONE;
use super::{CacheSync, Decided, RUNNING, numbering};
use crate::atomic::Ordering;
use crate::cpu::{CpuOps, CpuidReader};
use crate::error::Error;
use crate::pat::Pat;
use crate::platform::Platform;
use crate::policy::{PatChoice, Policy};
use crate::regs::MsrAddr;
use crate::rendezvous::CpuState;
use crate::report::Outcome;
use crate::routing::Routing;
use crate::snapshot::Snapshot;
use crate::topology::{Place, own_apic_id};

impl<const CPUS: usize> CacheSync<CPUS> {
    /// Decides what the machine can do, captures this CPU's registers as the target, and programs
    /// the PAT the policy asks for. On the boot CPU, before any AP is started; interrupts as they
    /// are. Also finds out whether MTRR and PAT writes work at all.
    ///
    /// The boot CPU is the model of all, whatever firmware left there: MTRRs that are off, too, which
    /// the log says. [`crate::diagnose`] tells more.
    ///
    /// # Errors
    /// [`Error::AlreadyInitialised`], [`Error::CpuOutOfRange`], [`Error::ReadFault`],
    /// [`Error::BoundTooShort`], [`Error::InvalidTarget`] for a PAT layout with a reserved type: nothing
    /// was changed. A machine without MTRRs or PAT is not an error: see [`CacheSync::platform`].
    ///
    /// # Safety
    /// No other CPU executes anything, but a wait for its SIPI, or the loop in which a boot loader parks
    /// it. What is mapped through slots of the PAT
    /// may have the types the policy gives them: no RAM through one that becomes WC. `me` is this CPU's
    /// number in all calls.
    pub unsafe fn boot_init(
        &self,
        cpu: &mut impl CpuOps,
        me: usize,
        policy: Policy,
    ) -> Result<Outcome, Error> {
        let place = Place::Apic(own_apic_id(&CpuidReader(cpu)));
        // SAFETY: the caller's promise; the place is what CPUID says.
        unsafe { self.boot_init_at(cpu, me, place, policy) }
    }

    /// [`CacheSync::boot_init`] with the kernel's word about where the boot CPU sits; its APIC id, with
    /// [`own_apic_id`], is read before the call borrows `cpu`.
    ///
    /// The places of all CPUs are given in one way: where the boot CPU's is an APIC id, another
    /// CPU's [`Place::Core`] counts as unknown, and the other way round.
    ///
    /// # Errors
    /// As for [`CacheSync::boot_init`].
    ///
    /// # Safety
    /// As for [`CacheSync::boot_init`]; the CPU sits at `place`.
    pub unsafe fn boot_init_at(
        &self,
        cpu: &mut impl CpuOps,
        me: usize,
        place: Place,
        policy: Policy,
    ) -> Result<Outcome, Error> {
        let boot = self.slot(me)?;
        if self.decided.is_completed() {
            return Err(Error::AlreadyInitialised);
        }
        if let Some(bound) = policy.bounds.too_short() {
            return Err(Error::BoundTooShort { bound });
        }
        let platform = Platform::detect(cpu);
        let mut want = Snapshot::capture(cpu, &platform, policy.amd_fixed)?;
        if let (PatChoice::Layout(pat), Some(_)) = (policy.pat, want.pat) {
            if (0..8).any(|slot| pat.slot(slot).is_err()) {
                return Err(Error::InvalidTarget { msr: MsrAddr::PAT });
            }
            want.pat = Some(pat);
        }
        want.hide_dram_bits(policy.amd_fixed);
        if platform.mtrr_refused.is_none() {
            want.drop_unwritable();
        }
        let routing = Routing::capture(cpu, &platform);
        let hz = policy.tsc_hz.or(platform.tsc_hz);
        let mut decided = Decided {
            ticks: policy.bounds.in_ticks(hz),
            platform,
            policy,
            routing,
        };
        let numbering = numbering(place);
        self.boot.numbering.store(numbering, Ordering::Relaxed);
        self.boot.number.store(me as u32, Ordering::Relaxed);
        self.place(me, place, &decided)?;
        self.target.replace(&want.to_words());
        boot.set_state(CpuState::Running);
        let outcome = self.sync_alone(&decided, cpu, me, ALONE);
        if let Some(error) = outcome
            .error
            .filter(|error| error.msr() == Some(MsrAddr::PAT))
        {
            // Found out once: no other CPU tries it again. What is there is everybody's.
            decided.platform.pat = Err(error);
            want.pat = cpu.rdmsr(MsrAddr::PAT).ok().map(Pat::from_raw);
            if want.pat.is_none() {
                let msr = MsrAddr::PAT;
                decided.platform.pat = Err(Error::ReadFault { msr });
            }
            let epoch = self.target.replace(&want.to_words());
            boot.record.epoch.store(epoch, Ordering::Relaxed);
        }
        let Decided { platform, .. } = self.decided.call_once(|| decided);
        self.boot.phase.store(RUNNING, Ordering::Release);
        log::info!("memory types: {platform}");
        if let Some(error) = platform.mtrr_refused {
            log::warn!("a CPU whose MTRRs differ from the boot CPU's will stay so: {error}");
        }
        if let Some(error) = platform.pat_refused() {
            log::warn!("a CPU whose PAT differs from the boot CPU's will stay so: {error}");
        }
        if want.cap.is_some() && !want.def_type.enabled() {
            // Who shows a guest MTRRs that nobody turned on does not let them count.
            if platform.hypervisor {
                log::info!("the boot CPU's MTRRs are off, as hypervisors may leave them");
            } else {
                log::warn!("firmware left the boot CPU's MTRRs off: all memory will be uncachable");
            }
        }
        Ok(outcome)
    }
}
