//! One newtype per model-specific register, and their addresses.
//!
//! `from_raw` and `raw` keep every bit, so that what was read can be written back exactly.

mod iorr;

use core::fmt;

use bitflags::bitflags;

pub use self::iorr::Iorr;

use crate::memtype::{MemType, ReservedType};

/// Most variable ranges the address space of the MSRs has room for: 0x200..0x250.
pub const MAX_VARIABLE: usize = 40;

/// Fixed-range registers: one for 64 KiB steps, two for 16 KiB, eight for 4 KiB.
pub const FIXED_COUNT: usize = 11;

/// AMD's I/O ranges.
pub const IORR_COUNT: usize = 2;

/// The address of a model-specific register.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct MsrAddr(pub u32);

impl MsrAddr {
    /// IA32_MTRRCAP.
    pub const MTRRCAP: Self = Self(0xfe);
    /// IA32_MTRR_DEF_TYPE.
    pub const MTRR_DEF_TYPE: Self = Self(0x2ff);
    /// IA32_PAT.
    pub const PAT: Self = Self(0x277);
    /// AMD SYSCFG.
    pub const SYSCFG: Self = Self(0xc001_0010);
    /// AMD TOP_MEM.
    pub const TOP_MEM: Self = Self(0xc001_001a);
    /// AMD TOP_MEM2.
    pub const TOP_MEM2: Self = Self(0xc001_001d);
    /// AMD SEV_STATUS.
    pub const SEV_STATUS: Self = Self(0xc001_0131);
    /// IA32_TME_ACTIVATE.
    pub const TME_ACTIVATE: Self = Self(0x982);

    /// The address of IA32_MTRR_PHYSBASEn, for `n` below [`MAX_VARIABLE`].
    #[must_use]
    pub const fn phys_base(n: usize) -> Self {
        Self(0x200 + 2 * n as u32)
    }

    /// The address of IA32_MTRR_PHYSMASKn, for `n` below [`MAX_VARIABLE`].
    #[must_use]
    pub const fn phys_mask(n: usize) -> Self {
        Self(0x201 + 2 * n as u32)
    }

    /// The address of AMD IORRBasen, for `n` below [`IORR_COUNT`].
    #[must_use]
    pub const fn iorr_base(n: usize) -> Self {
        Self(0xc001_0016 + 2 * n as u32)
    }

    /// The address of AMD IORRMaskn, for `n` below [`IORR_COUNT`].
    #[must_use]
    pub const fn iorr_mask(n: usize) -> Self {
        Self(0xc001_0017 + 2 * n as u32)
    }
}

impl fmt::Debug for MsrAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MsrAddr({:#x})", self.0)
    }
}

impl fmt::Display for MsrAddr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MSR {:#x}", self.0)
    }
}

bitflags! {
    /// The flags of IA32_MTRRCAP; the low byte is the count of variable ranges (VCNT).
    ///
    /// Source: Intel SDM 3A, "MTRR Feature Identification".
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[doc(alias = "IA32_MTRRCAP")]
    pub struct MtrrCap: u64 {
        /// Fixed-range registers exist.
        const FIX = 1 << 8;
        /// The WC type may be used.
        const WC = 1 << 10;
        /// SMRRs exist. They are not variable ranges and are left alone.
        const SMRR = 1 << 11;
        /// Bits newer manuals may define: kept, never rejected.
        const _ = !0;
    }
}

impl MtrrCap {
    /// Wraps the word as read.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self::from_bits_retain(raw)
    }

    /// The word as read.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.bits()
    }

    /// VCNT: how many variable ranges the processor says it has. May exceed [`MAX_VARIABLE`].
    #[must_use]
    pub const fn vcnt(self) -> u8 {
        self.bits() as u8
    }
}

/// IA32_MTRR_DEF_TYPE: the default type, and the two enables.
///
/// Source: Intel SDM 3A, "IA32_MTRR_DEF_TYPE MSR".
#[derive(Clone, Copy, PartialEq, Eq, Default)]
#[doc(alias = "IA32_MTRR_DEF_TYPE")]
#[repr(transparent)]
pub struct MtrrDefType(u64);

impl MtrrDefType {
    /// E: the MTRRs are on. While clear, all memory is uncachable.
    pub const E: u64 = 1 << 11;
    /// FE: the fixed ranges are on (and decide alone below 1 MiB).
    pub const FE: u64 = 1 << 10;

    /// Wraps the word as read.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self(raw)
    }

    /// The word as read.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }

    /// Whether E is set.
    #[must_use]
    pub const fn enabled(self) -> bool {
        self.0 & Self::E != 0
    }

    /// Whether FE is set. It has no effect while E is clear or without [`MtrrCap::FIX`].
    #[must_use]
    pub const fn fixed_enabled(self) -> bool {
        self.0 & Self::FE != 0
    }

    /// The default type, for memory no range matches.
    ///
    /// # Errors
    /// [`ReservedType`] when the manuals reserve the encoding.
    pub const fn memtype(self) -> Result<MemType, ReservedType> {
        MemType::from_field(self.0 as u8)
    }

    /// The same word with E clear: what is written before other MTRRs change.
    #[must_use]
    pub const fn disabled(self) -> Self {
        Self(self.0 & !Self::E)
    }
}

impl fmt::Debug for MtrrDefType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MtrrDefType({:#x})", self.0)
    }
}

/// One variable range: the words of IA32_MTRR_PHYSBASEn and IA32_MTRR_PHYSMASKn.
///
/// What it matches depends on the physical address width: see [`crate::ranges`].
///
/// Source: Intel SDM 3A, "Variable Range MTRRs".
#[derive(Clone, Copy, PartialEq, Eq, Default, Hash)]
#[doc(alias = "IA32_MTRR_PHYSBASEn")]
#[doc(alias = "IA32_MTRR_PHYSMASKn")]
pub struct VariableMtrr {
    /// The base word: type in bits 7:0, base address from bit 12 up.
    pub base: u64,
    /// The mask word: V in bit 11, mask from bit 12 up.
    pub mask: u64,
}

impl VariableMtrr {
    /// V: the range is in use.
    pub const V: u64 = 1 << 11;

    /// Whether V is set.
    #[must_use]
    pub const fn valid(self) -> bool {
        self.mask & Self::V != 0
    }

    /// The type of the range, in use or not.
    ///
    /// # Errors
    /// [`ReservedType`] when the manuals reserve the encoding.
    pub const fn memtype(self) -> Result<MemType, ReservedType> {
        MemType::from_field(self.base as u8)
    }
}

impl fmt::Debug for VariableMtrr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "VariableMtrr {{ base: {:#x}, mask: {:#x} }}",
            self.base, self.mask
        )
    }
}

bitflags! {
    /// AMD SYSCFG, as far as it bears on memory types.
    ///
    /// Source: AMD APM 2, "System Configuration Register (SYSCFG)" and "MtrrFixDramEn Bit".
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    #[doc(alias = "SYSCFG")]
    pub struct SysCfg: u64 {
        /// RdMem and WrMem of the fixed ranges have effect.
        const MTRR_FIX_DRAM_EN = 1 << 18;
        /// RdMem and WrMem can be read and written.
        const MTRR_FIX_DRAM_MOD_EN = 1 << 19;
        /// TOP_MEM and the IORRs have effect.
        const MTRR_VAR_DRAM_EN = 1 << 20;
        /// TOP_MEM2 has effect.
        const MTRR_TOM2_EN = 1 << 21;
        /// Memory between 4 GiB and TOP_MEM2 is write-back by default.
        const TOM2_FORCE_WB = 1 << 22;
        /// Memory encryption (SME) is on: it takes physical address bits.
        const MEM_ENCRYPTION_MOD_EN = 1 << 23;
        /// Secure nested paging: the host must not touch this register.
        const SNP_EN = 1 << 24;
        /// Host multi-key memory encryption is on: it takes physical address bits.
        const HMKEE = 1 << 26;
        /// Bits this crate has no name for: kept.
        const _ = !0;
    }
}

impl SysCfg {
    /// Wraps the word as read.
    #[must_use]
    pub const fn from_raw(raw: u64) -> Self {
        Self::from_bits_retain(raw)
    }

    /// The word as read.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.bits()
    }
}
