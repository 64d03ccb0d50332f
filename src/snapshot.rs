//! One CPU's memory-type registers, as raw words.
//!
//! Owns what is read and in which order; refuses to interpret it beyond single fields. Decoding
//! happens on demand and never panics, whatever the firmware left.

mod fits;
mod text;
mod valid;
mod words;

use core::fmt;

pub(crate) use self::words::SNAPSHOT_WORDS;
use crate::cpu::CpuOps;
use crate::error::{Error, Left};
use crate::pat::Pat;
use crate::platform::Platform;
use crate::policy::AmdFixed;
use crate::ranges::{FIXED_RANGES, PhysBits};
use crate::regs::{FIXED_COUNT, MAX_VARIABLE, MsrAddr, MtrrCap, MtrrDefType, SysCfg, VariableMtrr};

/// RdMem and WrMem, bits 4 and 3 of each byte of a fixed-range register.
///
/// Source: AMD APM 2, "Extended Fixed-Range MTRR Type-Field Encodings".
pub(crate) const DRAM_BITS: u64 = 0x1818_1818_1818_1818;

/// The MTRRs, the PAT and what AMD adds, of one CPU, bit-exact.
///
/// Plain data: it can be built by hand, from a dump or by `capture`. Words of registers that
/// do not exist are 0.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Snapshot {
    /// IA32_MTRRCAP; `None` where the processor (or the hypervisor) has no MTRRs.
    pub cap: Option<MtrrCap>,
    /// IA32_MTRR_DEF_TYPE.
    pub def_type: MtrrDefType,
    /// The variable ranges; only the first [`Snapshot::variable_count`] exist.
    pub variable: [VariableMtrr; MAX_VARIABLE],
    /// The fixed-range registers in the order of [`crate::ranges::FIXED_RANGES`]; all 0 without
    /// [`MtrrCap::FIX`].
    pub fixed: [u64; FIXED_COUNT],
    /// IA32_PAT; `None` without the feature.
    pub pat: Option<Pat>,
    /// AMD SYSCFG; `None` elsewhere.
    pub syscfg: Option<SysCfg>,
    /// Whether `fixed` carries AMD's RdMem and WrMem bits: it was read while SYSCFG bit 19
    /// (MtrrFixDramModEn) was set. The words may be written back only in that state.
    pub fixed_dram_bits: bool,
    /// AMD TOP_MEM2: first byte above the memory that lies above 4 GiB; 0 elsewhere, and where
    /// SYSCFG leaves it without effect.
    pub top_mem2: u64,
    /// How many address bits the MTRRs decode.
    pub phys_bits: PhysBits,
}

impl Snapshot {
    /// A CPU with nothing: no MTRRs, no PAT. A base to build dumps on: without [`Snapshot::cap`] the
    /// other MTRRs count for nothing, and every address is write-back.
    #[must_use]
    pub const fn empty(phys_bits: PhysBits) -> Self {
        Self {
            cap: None,
            def_type: MtrrDefType::from_raw(0),
            variable: [VariableMtrr { base: 0, mask: 0 }; MAX_VARIABLE],
            fixed: [0; FIXED_COUNT],
            pat: None,
            syscfg: None,
            fixed_dram_bits: false,
            top_mem2: 0,
            phys_bits,
        }
    }

    /// How many variable ranges exist and are held here: VCNT, at most [`MAX_VARIABLE`].
    #[must_use]
    pub const fn variable_count(&self) -> usize {
        match self.cap {
            None => 0,
            Some(cap) => {
                let vcnt = cap.vcnt() as usize;
                if vcnt < MAX_VARIABLE {
                    vcnt
                } else {
                    MAX_VARIABLE
                }
            }
        }
    }

    /// The variable ranges that exist, in use or not.
    #[must_use]
    pub fn variable_ranges(&self) -> &[VariableMtrr] {
        self.variable
            .get(..self.variable_count())
            .unwrap_or_default()
    }

    /// Whether fixed-range registers exist.
    #[must_use]
    pub const fn has_fixed(&self) -> bool {
        match self.cap {
            None => false,
            Some(cap) => cap.contains(MtrrCap::FIX),
        }
    }

    /// Whether the bytes of `fixed` show AMD's RdMem and WrMem (bits 4 and 3) beside the type: this
    /// snapshot says so, or was read with SYSCFG bit 19 set.
    #[must_use]
    pub const fn shows_dram_bits(&self) -> bool {
        self.fixed_dram_bits || self.exposes_dram_bits()
    }

    /// Whether SYSCFG bit 19 (MtrrFixDramModEn) was found set.
    pub(crate) const fn exposes_dram_bits(&self) -> bool {
        match self.syscfg {
            Some(syscfg) => syscfg.contains(SysCfg::MTRR_FIX_DRAM_MOD_EN),
            None => false,
        }
    }

    /// What the registers are compared as, once that bit is clear: RdMem and WrMem stay in sight only
    /// where the policy saves them.
    pub(crate) fn hide_dram_bits(&mut self, amd_fixed: AmdFixed) {
        if let Some(syscfg) = &mut self.syscfg {
            syscfg.remove(SysCfg::MTRR_FIX_DRAM_MOD_EN);
        }
        if self.fixed_dram_bits && amd_fixed == AmdFixed::AsFound {
            self.fixed = self.fixed.map(|word| word & !DRAM_BITS);
            self.fixed_dram_bits = false;
        }
    }

    /// Whether the fixed ranges decide below 1 MiB: they exist, and E and FE are set.
    #[must_use]
    pub const fn fixed_in_force(&self) -> bool {
        self.has_fixed() && self.def_type.enabled() && self.def_type.fixed_enabled()
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot")
            .field("cap", &self.cap)
            .field("def_type", &self.def_type)
            .field("variable", &self.variable_ranges())
            .field("fixed", &format_args!("{:x?}", self.fixed))
            .field("pat", &self.pat)
            .field("syscfg", &self.syscfg)
            .field("fixed_dram_bits", &self.fixed_dram_bits)
            .field("top_mem2", &format_args!("{:#x}", self.top_mem2))
            .field("phys_bits", &self.phys_bits)
            .finish()
    }
}

impl Snapshot {
    /// Reads this CPU's registers; writes nothing, except SYSCFG bit 19 set and put back under
    /// [`AmdFixed::SaveDramBits`].
    ///
    /// With VCNT 10 and fixed ranges: 33 RDMSR (DEF_TYPE, 20 of the variable ranges, 11 fixed,
    /// PAT); on AMD also SYSCFG and, where that has it in effect, TOP_MEM2. MTRRCAP is the platform's, not read again. Interrupts
    /// as they are.
    ///
    /// # Errors
    /// [`Error::ReadFault`]: a register the platform has cannot be read here. Nothing was changed.
    ///
    /// Source: Intel SDM 3A, "Memory Type Range Registers (MTRRs)"; AMD APM 2, "Memory-Type Range
    /// Registers".
    pub fn capture(
        cpu: &mut impl CpuOps,
        platform: &Platform,
        amd_fixed: AmdFixed,
    ) -> Result<Self, Error> {
        let mut found = Self::empty(platform.phys_bits);
        found.recapture(cpu, platform, amd_fixed)?;
        Ok(found)
    }

    /// [`Snapshot::capture`] in place, over an empty one: a CPU's stack holds few of these.
    pub(crate) fn recapture(
        &mut self,
        cpu: &mut impl CpuOps,
        platform: &Platform,
        amd_fixed: AmdFixed,
    ) -> Result<(), Error> {
        if let Ok(cap) = platform.mtrr {
            self.cap = Some(cap);
            self.def_type = MtrrDefType::from_raw(read(cpu, MsrAddr::MTRR_DEF_TYPE)?);
            let count = self.variable_count();
            for (n, range) in self.variable.iter_mut().take(count).enumerate() {
                range.base = read(cpu, MsrAddr::phys_base(n))?;
                range.mask = read(cpu, MsrAddr::phys_mask(n))?;
            }
        }
        if platform.amd {
            let syscfg = SysCfg::from_raw(read(cpu, MsrAddr::SYSCFG)?);
            self.syscfg = Some(syscfg);
            self.top_mem2 = if syscfg.contains(SysCfg::MTRR_TOM2_EN) {
                read(cpu, MsrAddr::TOP_MEM2)?
            } else {
                0
            };
        }
        if platform.has_fixed() {
            self.capture_fixed(cpu, platform, amd_fixed)?;
        }
        if platform.pat.is_ok() || platform.pat_refused().is_some() {
            self.pat = Some(Pat::from_raw(read(cpu, MsrAddr::PAT)?));
        }
        Ok(())
    }

    /// The fixed ranges, with RdMem and WrMem where the policy asks for them.
    fn capture_fixed(
        &mut self,
        cpu: &mut impl CpuOps,
        platform: &Platform,
        amd_fixed: AmdFixed,
    ) -> Result<(), Error> {
        let exposed = ExposedDramBits::enter(cpu, self.syscfg, platform, amd_fixed)?;
        let mut result = Ok(());
        for (word, range) in self.fixed.iter_mut().zip(&FIXED_RANGES) {
            match read(cpu, range.msr) {
                Ok(value) => *word = value,
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        self.fixed_dram_bits = exposed.shown();
        result.and(exposed.leave(cpu))
    }
}

fn read(cpu: &mut impl CpuOps, msr: MsrAddr) -> Result<u64, Error> {
    cpu.rdmsr(msr).map_err(|_| Error::ReadFault { msr })
}

/// SYSCFG bit 19 set for a while, to read or write RdMem and WrMem, and put back.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExposedDramBits {
    /// The bits are hidden and stay so.
    Hidden,
    /// Firmware left them visible.
    AsFound,
    /// Made visible here; this word goes back.
    Restore(u64),
}

impl ExposedDramBits {
    pub(crate) fn enter(
        cpu: &mut impl CpuOps,
        syscfg: Option<SysCfg>,
        platform: &Platform,
        amd_fixed: AmdFixed,
    ) -> Result<Self, Error> {
        let Some(syscfg) = syscfg else {
            return Ok(Self::Hidden);
        };
        if syscfg.contains(SysCfg::MTRR_FIX_DRAM_MOD_EN) {
            return Ok(Self::AsFound);
        }
        if platform.snp_host || amd_fixed == AmdFixed::AsFound {
            return Ok(Self::Hidden);
        }
        write_syscfg(cpu, (syscfg | SysCfg::MTRR_FIX_DRAM_MOD_EN).raw())?;
        Ok(Self::Restore(syscfg.raw()))
    }

    pub(crate) const fn shown(self) -> bool {
        !matches!(self, Self::Hidden)
    }

    pub(crate) fn leave(self, cpu: &mut impl CpuOps) -> Result<(), Error> {
        match self {
            Self::Restore(raw) => write_syscfg(cpu, raw),
            Self::Hidden | Self::AsFound => Ok(()),
        }
    }
}

fn write_syscfg(cpu: &mut impl CpuOps, value: u64) -> Result<(), Error> {
    let msr = MsrAddr::SYSCFG;
    let left = Left::Unchanged;
    // SAFETY: MtrrFixDramModEn alone differs from what was read: it shows two bits of the fixed ranges
    // and changes no type.
    let written = unsafe { cpu.wrmsr(msr, value) };
    written.map_err(|_| Error::WriteFault { msr, value, left })
}
