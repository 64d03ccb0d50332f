//! What CPUID tells, and what the registers it announces add.

use core::num::NonZeroU64;

use raw_cpuid::{CpuId, CpuIdReader, CpuIdResult};

use super::ConfidentialGuest;
use crate::cpu::{CpuOps, CpuidReader};
use crate::regs::{MsrAddr, SysCfg};
use crate::topology;

/// PhysAddrSize, in bits.
pub(super) fn physical_address_size(reader: &impl CpuIdReader) -> u8 {
    let extended = reader.cpuid1(0x8000_0000).eax;
    if (0x8000_0008..=0x8000_ffff).contains(&extended) {
        reader.cpuid1(0x8000_0008).eax as u8
    } else {
        36
    }
}

/// What CPUID alone tells.
pub(super) struct Identity {
    pub(super) amd: bool,
    pub(super) mtrr: bool,
    pub(super) pat: bool,
    pub(super) self_snoop: bool,
    pub(super) hypervisor: bool,
    pub(super) width: u8,
    /// CPUID 0x8000_001F EBX[11:6].
    pub(super) sme_taken: u8,
    pub(super) sev: bool,
    pub(super) tme: bool,
    pub(super) tdx: bool,
    pub(super) tsc_hz: Option<NonZeroU64>,
    pub(super) smt_shift: Option<u8>,
}

impl Identity {
    pub(super) fn read(cpu: &impl CpuOps) -> Self {
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
            tsc_hz: tsc_hz(&reader, hypervisor),
            smt_shift: topology::smt_shift(&reader),
        }
    }

    pub(super) fn guest(&self, cpu: &mut impl CpuOps) -> Option<ConfidentialGuest> {
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
    pub(super) fn sme_bits(&self, syscfg: SysCfg) -> u8 {
        if syscfg.intersects(SysCfg::MEM_ENCRYPTION_MOD_EN | SysCfg::HMKEE) {
            self.sme_taken
        } else {
            0
        }
    }

    /// SYSCFG, where the processor is AMD's own.
    pub(super) fn syscfg(&self, cpu: &mut impl CpuOps) -> Option<SysCfg> {
        let read = (self.amd && !self.hypervisor).then(|| cpu.rdmsr(MsrAddr::SYSCFG).ok());
        read.flatten().map(SysCfg::from_raw)
    }

    /// IA32_TME_ACTIVATE, where CPUID has it. A guest may see the host's bit in CPUID; the register
    /// is the hypervisor's.
    pub(super) fn tme_activate(&self, cpu: &mut impl CpuOps) -> Option<u64> {
        let read = (self.tme && !self.hypervisor).then(|| cpu.rdmsr(MsrAddr::TME_ACTIVATE).ok());
        read.flatten()
    }
}

/// Address bits Intel's multi-key encryption takes, if locked and enabled.
pub(super) const fn tme_bits(word: u64) -> u8 {
    const LOCKED_AND_ENABLED: u64 = 0b11;
    if word & LOCKED_AND_ENABLED == LOCKED_AND_ENABLED {
        (word >> 32) as u8 & 0xf
    } else {
        0
    }
}

/// The rate of the time-stamp counter: of its crystal and their ratio, else the processor's base
/// frequency, which it then runs at; else what a hypervisor says, in kHz.
///
/// Source: Intel SDM 3B, "Determining the Processor Base Frequency"; the leaf at 0x4000_0010 is VMware's
/// and KVM's.
fn tsc_hz(cpuid: &impl CpuIdReader, hypervisor: bool) -> Option<NonZeroU64> {
    let basic = cpuid.cpuid1(0).eax;
    let mut hz = 0;
    if basic >= 0x15 {
        let CpuIdResult { eax, ebx, ecx, .. } = cpuid.cpuid1(0x15);
        let ratio = u64::from(ecx).saturating_mul(u64::from(ebx));
        hz = ratio.checked_div(u64::from(eax)).unwrap_or(0);
    }
    if hz == 0 && basic >= 0x16 {
        hz = u64::from(cpuid.cpuid1(0x16).eax & 0xffff) * 1_000_000;
    }
    if hz == 0 && hypervisor && cpuid.cpuid1(0x4000_0000).eax >= 0x4000_0010 {
        hz = u64::from(cpuid.cpuid1(0x4000_0010).eax) * 1_000;
    }
    NonZeroU64::new(hz)
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
