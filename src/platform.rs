//! What the machine can do, decided once, on the boot CPU.
//!
//! Owns everything that is a property of the platform: features, vendor, width, guest or host, and
//! whether writes work at all. APs never find it out again; they load the answer.

use core::fmt;

use raw_cpuid::{CpuId, CpuIdReader, CpuIdResult};

use crate::combine::CombineRule;
use crate::cpu::{CpuOps, CpuidReader};
use crate::error::{Error, Left};
use crate::ranges::PhysBits;
use crate::regs::{MAX_VARIABLE, MsrAddr, MtrrCap, SysCfg, VariableMtrr};
use crate::topology;

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
    /// Whether the PAT can be used, else why not.
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
            smt_shift: found.smt_shift,
        }
    }

    /// How many variable ranges are captured and written: 0 without usable MTRRs.
    #[must_use]
    pub fn variable_count(&self) -> usize {
        self.mtrr
            .map_or(0, |cap| usize::from(cap.vcnt()).min(MAX_VARIABLE))
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
        let back = if held.base & !(bits.page_mask() | 0xff) == 0 && held.memtype().is_ok() {
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
    cpu.wrmsr(msr, value).map_err(|_| Error::WriteFault {
        msr,
        value,
        left: Left::Unchanged,
    })
}

/// PhysAddrSize, in bits.
fn physical_address_size(reader: &impl CpuIdReader) -> u8 {
    let extended = reader.cpuid1(0x8000_0000).eax;
    if (0x8000_0008..=0x8000_ffff).contains(&extended) {
        reader.cpuid1(0x8000_0008).eax as u8
    } else {
        36
    }
}

/// What CPUID alone tells.
struct Identity {
    amd: bool,
    mtrr: bool,
    pat: bool,
    self_snoop: bool,
    hypervisor: bool,
    width: u8,
    /// CPUID 0x8000_001F EBX[11:6].
    sme_taken: u8,
    sev: bool,
    tme: bool,
    tdx: bool,
    smt_shift: Option<u8>,
}

impl Identity {
    fn read(cpu: &impl CpuOps) -> Self {
        let reader = CpuidReader(cpu);
        let cpuid = CpuId::with_cpuid_reader(reader);
        let vendor = cpuid.get_vendor_info();
        let amd = vendor
            .as_ref()
            .is_some_and(|v| matches!(v.as_str(), "AuthenticAMD" | "HygonGenuine"));
        let features = cpuid.get_feature_info();
        let has = |bit: u32| reader.cpuid1(1).edx & (1 << bit) != 0;
        let hypervisor = features.as_ref().is_some_and(|f| f.has_hypervisor());
        let errata = !amd
            && features
                .as_ref()
                .is_some_and(|f| self_snoop_errata(f.family_id(), f.model_id()));
        let extended = reader.cpuid1(0x8000_0000).eax;
        let memory_encryption = if (0x8000_001f..=0x8000_ffff).contains(&extended) {
            reader.cpuid1(0x8000_001f)
        } else {
            CpuIdResult {
                eax: 0,
                ebx: 0,
                ecx: 0,
                edx: 0,
            }
        };
        let basic = reader.cpuid1(0).eax;
        Self {
            amd,
            mtrr: features.is_some() && has(12),
            pat: features.is_some() && has(16),
            self_snoop: has(27) && !errata,
            hypervisor,
            width: physical_address_size(&reader),
            sme_taken: ((memory_encryption.ebx >> 6) & 0x3f) as u8,
            sev: memory_encryption.eax & 0b10 != 0,
            tme: !amd && basic >= 7 && reader.cpuid2(7, 0).ecx & (1 << 13) != 0,
            tdx: hypervisor && basic >= 0x21 && is_tdx(reader.cpuid2(0x21, 0)),
            smt_shift: topology::smt_shift(&reader),
        }
    }

    fn guest(&self, cpu: &mut impl CpuOps) -> Option<ConfidentialGuest> {
        /// SEV_STATUS: secure nested paging is active for this guest.
        const SNP_ACTIVE: u64 = 1 << 2;
        if self.tdx {
            return Some(ConfidentialGuest::Tdx);
        }
        let snp = self.amd
            && self.sev
            && self.hypervisor
            && cpu
                .rdmsr(MsrAddr::SEV_STATUS)
                .is_ok_and(|status| status & SNP_ACTIVE != 0);
        snp.then_some(ConfidentialGuest::Snp)
    }

    /// Address bits AMD's memory encryption takes, while it is on.
    fn sme_bits(&self, syscfg: SysCfg) -> u8 {
        if syscfg.intersects(SysCfg::MEM_ENCRYPTION_MOD_EN | SysCfg::HMKEE) {
            self.sme_taken
        } else {
            0
        }
    }

    /// SYSCFG, where the processor is AMD's own.
    fn syscfg(&self, cpu: &mut impl CpuOps) -> Option<SysCfg> {
        let read = (self.amd && !self.hypervisor).then(|| cpu.rdmsr(MsrAddr::SYSCFG).ok());
        read.flatten().map(SysCfg::from_raw)
    }

    /// IA32_TME_ACTIVATE, where CPUID has it. A guest may see the host's bit in CPUID; the register
    /// is the hypervisor's.
    fn tme_activate(&self, cpu: &mut impl CpuOps) -> Option<u64> {
        let read = (self.tme && !self.hypervisor).then(|| cpu.rdmsr(MsrAddr::TME_ACTIVATE).ok());
        read.flatten()
    }
}

/// Address bits Intel's multi-key encryption takes, if locked and enabled.
const fn tme_bits(word: u64) -> u8 {
    const LOCKED_AND_ENABLED: u64 = 0b11;
    if word & LOCKED_AND_ENABLED == LOCKED_AND_ENABLED {
        (word >> 32) as u8 & 0xf
    } else {
        0
    }
}

/// "IntelTDX    " in EBX, EDX, ECX.
fn is_tdx(words: CpuIdResult) -> bool {
    words.ebx == u32::from_le_bytes(*b"Inte")
        && words.edx == u32::from_le_bytes(*b"lTDX")
        && words.ecx == u32::from_le_bytes(*b"    ")
}

/// Models whose self-snoop has errata: Yonah, Merom, Penryn, Dunnington, Nehalem, Westmere, Sandy
/// Bridge.
fn self_snoop_errata(family: u8, model: u8) -> bool {
    family == 6
        && matches!(
            model,
            0x0e | 0x0f | 0x16 | 0x17 | 0x1d | 0x1a | 0x1e | 0x1f | 0x2e | 0x25 | 0x2c | 0x2a
        )
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
