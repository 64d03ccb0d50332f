//! What the machine can do, decided once, on the boot CPU.
//!
//! Owns everything that is a property of the platform: features, vendor, width, guest or host, and
//! whether writes work at all. APs never find it out again; they load the answer.
//!
//! # Under a hypervisor
//! Registers answer there as the hypervisor likes. What is known of each, from its source or from what
//! its guests print, is a preset of the simulated machine (`sim::Config::kvm_intel` and so on; its
//! documentation names the sources, and what is assumed); each goes through boot, early and deferred,
//! S3, a change and checks in the tests, which also make this table:
//!
//! | hypervisor | variable, fixed, width | default type | an AP at its start | after S3: boot CPU; AP | another map |
//! |---|---|---|---|---|---|
//! | KVM, Intel | 8 pairs, fixed; 40 bits | write-back | pat | pat; pat | all in line |
//! | KVM, AMD | 8 pairs, fixed; 40 bits | write-back | pat | pat; pat | all in line |
//! | Cloud Hypervisor | 8 pairs, fixed; 40 bits | write-back | pat | no S3 | all in line |
//! | QEMU without accelerator | 8 pairs, fixed; 40 bits | write-back | window | pat; window | all in line |
//! | Hyper-V, generation 1 | 8 pairs, fixed; 44 bits | uncachable | pat | no S3 | all in line |
//! | Hyper-V, generation 2 | 8 pairs, fixed; 44 bits | uncachable | pat | no S3 | all in line |
//! | Hyper-V, utility (WSL 2) | 8 pairs, fixed; 44 bits | off | pat | no S3 | all in line |
//! | VMware | 8 pairs, fixed; 45 bits | uncachable | pat | pat; pat | all in line |
//! | VirtualBox 7.1 | 8 pairs, fixed; 39 bits | uncachable | window | pat; pat | all in line |
//! | VirtualBox 7.1, ranges read-only | 8 pairs, fixed; 39 bits | uncachable | failed | pat; failed | MSR 0x20e does not hold 0x1006 after the write; nothing was changed |
//! | VirtualBox up to 7.0 | 0 pairs, nothing fixed; 39 bits | off | pat | pat; pat | all in line |
//! | Xen HVM | 8 pairs, fixed; 46 bits | write-back | pat | in_sync; in_sync | all in line |
//! | bhyve | 10 pairs, fixed; 39 bits | write-back | pat | no S3 | all in line |
//!
//! The words are those of [`Path`](crate::report::Path), with a PAT that is not reset's: *pat*, its
//! MTRRs were right; *window*, they were not. In *failed* they are the hypervisor's
//! ([`Platform::mtrr_refused`]); the PAT is in line all the same, as on every CPU of every row, and no
//! access faults. SYSCFG is not read, even where it is there (KVM, QEMU, bhyve on AMD: it reads 0).
//! CR0.CD and WBINVD may do nothing there; they do not fault. Where they do, in TDX and SNP guests
//! ([`ConfidentialGuest`]), no MTRR is touched.
//!
//! Most hypervisors use a guest's MTRRs for devices it was given, or for nothing; its page tables and
//! the PAT count more. So *off* means nothing is uncached there but what page tables make so.

mod identity;

use core::fmt;
use core::num::NonZeroU64;

use self::identity::{Identity, physical_address_size, tme_bits};
use crate::combine::CombineRule;
use crate::cpu::{CpuOps, CpuidReader};
use crate::error::{Error, Left};
use crate::ranges::PhysBits;
use crate::regs::{MAX_VARIABLE, MsrAddr, MtrrCap, SysCfg, VariableMtrr};

/// A guest whose hypervisor (or security module) owns caching: it has no MTRR part, whatever the
/// feature bit says, and WBINVD and CR0.CD raise an exception there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfidentialGuest {
    /// Intel trust domain.
    Tdx,
    /// AMD secure nested paging.
    Snp,
}

/// The memory-type features of the machine.
///
/// A plain value: it can be built by hand for tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Platform {
    /// MTRRCAP where the MTRRs can be used, else why not.
    pub mtrr: Result<MtrrCap, Error>,
    /// Whether the PAT can be used, else why not. One that can be read and not written
    /// ([`Platform::pat_refused`]) is compared.
    pub pat: Result<(), Error>,
    /// Why the MTRRs cannot be written, though they can be read: a write faulted, or one that would
    /// have shown, to a pair that is not in use, was ignored. `None` also where every pair is in use and
    /// only a write of the same value could be tried.
    pub mtrr_refused: Option<Error>,
    /// Address bits the MTRRs decode.
    pub phys_bits: PhysBits,
    /// Address bits that memory encryption takes from those CPUID tells.
    pub encryption_bits: u8,
    /// Whose table says what MTRR type and PAT type make of a page together.
    pub rule: CombineRule,
    /// Whether AMD's SYSCFG is there to be read: not under a hypervisor.
    pub amd: bool,
    /// Whether Intel's IA32_TME_ACTIVATE is there to be read: not under a hypervisor.
    pub tme: bool,
    /// Secure nested paging is on: SYSCFG must not be written.
    pub snp_host: bool,
    /// The processor snoops its own caches, and no erratum of its model says otherwise.
    pub self_snoop: bool,
    /// Running under a hypervisor.
    pub hypervisor: bool,
    /// The kind of guest that owns no caching, if any.
    pub guest: Option<ConfidentialGuest>,
    /// Ticks of the time-stamp counter in a second, where CPUID or a hypervisor says.
    pub tsc_hz: Option<NonZeroU64>,
    /// Low APIC id bits that number the threads of a core; `None` when CPUID does not say.
    pub smt_shift: Option<u8>,
}

impl Platform {
    /// Finds out what the machine can do. On the boot CPU, once; interrupts as they are.
    ///
    /// Writes DEF_TYPE and the PAT with the values they hold: a platform that refuses any write
    /// is found here and not by every AP again.
    ///
    /// Touches no register that CPUID, MTRRCAP or a register read before does not announce, so that
    /// a CPU whose faults nobody catches is enough. Nothing announces SYSCFG but the vendor: every
    /// 64-bit AMD processor has it, what a hypervisor shows in its place is nobody's promise, and
    /// a guest is left without.
    pub fn detect(cpu: &mut impl CpuOps) -> Self {
        let found = Identity::read(&*cpu);
        let guest = found.guest(cpu);
        let syscfg = found.syscfg(cpu);
        let tme = found.tme_activate(cpu);
        let taken = match syscfg {
            Some(syscfg) => found.sme_bits(syscfg),
            None => tme.map_or(0, tme_bits),
        };
        let phys_bits = width(found.width.saturating_sub(taken));
        let mtrr = mtrr_part(cpu, found.mtrr && guest.is_none());
        let refused = mtrr.map_or(Ok(()), |cap| try_writes(cpu, cap, phys_bits));
        let mtrr = match refused {
            Err(error @ Error::ReadFault { .. }) => Err(error),
            _ => mtrr,
        };
        Self {
            mtrr,
            mtrr_refused: refused.err(),
            pat: pat_part(cpu, found.pat),
            phys_bits,
            encryption_bits: taken,
            rule: if found.amd {
                CombineRule::Amd
            } else {
                CombineRule::Intel
            },
            amd: syscfg.is_some(),
            tme: tme.is_some(),
            snp_host: syscfg.is_some_and(|syscfg| syscfg.contains(SysCfg::SNP_EN)),
            self_snoop: found.self_snoop,
            hypervisor: found.hypervisor,
            guest,
            tsc_hz: found.tsc_hz,
            smt_shift: found.smt_shift,
        }
    }

    /// How many variable ranges are captured and written: 0 without usable MTRRs.
    #[must_use]
    pub fn variable_count(&self) -> usize {
        self.mtrr
            .map_or(0, |cap| usize::from(cap.vcnt()).min(MAX_VARIABLE))
    }

    /// Why the PAT cannot be written, though it can be read: another map than the boot CPU's is not to be
    /// had then.
    #[must_use]
    pub fn pat_refused(&self) -> Option<Error> {
        let read = !matches!(self.pat, Err(Error::NoPat | Error::ReadFault { .. }));
        self.pat.err().filter(|_| read)
    }

    /// Whether fixed-range registers exist.
    #[must_use]
    pub fn has_fixed(&self) -> bool {
        self.mtrr.is_ok_and(|cap| cap.contains(MtrrCap::FIX))
    }

    /// Address bits the MTRRs of this CPU decode: on a hybrid part they need not be the boot CPU's.
    /// Under a hypervisor, where CPUID may trap, they are taken to be.
    #[must_use]
    pub fn phys_bits_here(&self, cpu: &impl CpuOps) -> PhysBits {
        if self.hypervisor {
            self.phys_bits
        } else {
            let bits = physical_address_size(&CpuidReader(cpu));
            width(bits.saturating_sub(self.encryption_bits))
        }
    }
}

/// A width outside what any processor has is brought to the nearest that one has.
fn width(bits: u8) -> PhysBits {
    PhysBits::new(bits.clamp(PhysBits::MIN.get(), PhysBits::MAX.get())).unwrap_or(PhysBits::MIN)
}

/// MTRRCAP, if the register can be read and its count makes sense.
fn mtrr_part(cpu: &mut impl CpuOps, present: bool) -> Result<MtrrCap, Error> {
    if !present {
        return Err(Error::NoMtrr);
    }
    let read = |cpu: &mut _, msr| CpuOps::rdmsr(cpu, msr).map_err(|_| Error::ReadFault { msr });
    let cap = MtrrCap::from_raw(read(cpu, MsrAddr::MTRRCAP)?);
    if usize::from(cap.vcnt()) > MAX_VARIABLE {
        return Err(Error::TooManyVariable { vcnt: cap.vcnt() });
    }
    Ok(cap)
}

/// Tries whether the MTRRs take what is written to them: DEF_TYPE the value it holds, and the base of a
/// pair that is not in use another one, which is put back.
fn try_writes(cpu: &mut impl CpuOps, cap: MtrrCap, bits: PhysBits) -> Result<(), Error> {
    /// The lowest address bit of a base, and a type every processor takes.
    const PAGE: u64 = 1 << 12;
    const WRITE_BACK: u64 = 6;
    let read = |cpu: &mut _, msr| CpuOps::rdmsr(cpu, msr).map_err(|_| Error::ReadFault { msr });
    let def_type = read(cpu, MsrAddr::MTRR_DEF_TYPE)?;
    write(cpu, MsrAddr::MTRR_DEF_TYPE, def_type)?;
    for n in (0..usize::from(cap.vcnt())).rev() {
        let mask = read(cpu, MsrAddr::phys_mask(n))?;
        if mask & VariableMtrr::V != 0 {
            continue;
        }
        let msr = MsrAddr::phys_base(n);
        let held = read(cpu, msr)?;
        let value = held & PAGE ^ PAGE | WRITE_BACK;
        write(cpu, msr, value)?;
        let now = read(cpu, msr)?;
        // What reset left there may be nothing that can be written.
        let held = VariableMtrr { base: held, mask };
        let back = if held.base_is_writable(cap, bits) {
            held.base
        } else {
            0
        };
        write(cpu, msr, back)?;
        return if now == value {
            Ok(())
        } else {
            let left = Left::Unchanged;
            Err(Error::WriteIgnored { msr, value, left })
        };
    }
    Ok(())
}

fn pat_part(cpu: &mut impl CpuOps, present: bool) -> Result<(), Error> {
    if !present {
        return Err(Error::NoPat);
    }
    let msr = MsrAddr::PAT;
    let value = cpu.rdmsr(msr).map_err(|_| Error::ReadFault { msr })?;
    write(cpu, msr, value)
}

fn write(cpu: &mut impl CpuOps, msr: MsrAddr, value: u64) -> Result<(), Error> {
    // SAFETY: the value the register holds, or the base of a pair that is not in use.
    let written = unsafe { cpu.wrmsr(msr, value) };
    let left = Left::Unchanged;
    written.map_err(|_| Error::WriteFault { msr, value, left })
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mtrr {
            Ok(cap) => write!(
                f,
                "{} variable MTRRs, fixed {}",
                cap.vcnt(),
                if self.has_fixed() { "yes" } else { "no" }
            )?,
            Err(error) => write!(f, "{error}")?,
        }
        if let Some(error) = self.mtrr_refused {
            write!(f, ", read only: {error}")?;
        }
        if let Err(error) = self.pat {
            write!(f, "; {error}")?;
        }
        write!(f, "; {} physical", self.phys_bits)?;
        match self.guest {
            Some(ConfidentialGuest::Tdx) => f.write_str("; TDX guest"),
            Some(ConfidentialGuest::Snp) => f.write_str("; SNP guest"),
            None if self.hypervisor => f.write_str("; under a hypervisor"),
            None => Ok(()),
        }
    }
}
