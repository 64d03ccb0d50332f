//! One CPU's memory-type registers, as raw words.
//!
//! Owns what was read; refuses to interpret it beyond single fields. Decoding happens on demand
//! and never panics, whatever the firmware left.

use core::fmt;

use crate::pat::Pat;
use crate::ranges::PhysBits;
use crate::regs::{FIXED_COUNT, MAX_VARIABLE, MtrrCap, MtrrDefType, SysCfg, VariableMtrr};

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
    /// AMD TOP_MEM2: first byte above the memory that lies above 4 GiB; 0 elsewhere.
    pub top_mem2: u64,
    /// How many address bits the MTRRs decode.
    pub phys_bits: PhysBits,
}

impl Snapshot {
    /// A CPU with nothing: no MTRRs, no PAT. A base to build dumps on.
    #[must_use]
    pub const fn empty(phys_bits: PhysBits) -> Self {
        Self {
            cap: None,
            def_type: MtrrDefType::from_raw(0),
            variable: [VariableMtrr { base: 0, mask: 0 }; MAX_VARIABLE],
            fixed: [0; FIXED_COUNT],
            pat: None,
            syscfg: None,
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
            .field("top_mem2", &format_args!("{:#x}", self.top_mem2))
            .field("phys_bits", &self.phys_bits)
            .finish()
    }
}
