//! The MTRRs and the PAT as this kernel reads them, on its own: the final verdict must not come from the crate under test.

use crate::msr;
use core::fmt;
use mtrr_pat::pat::Pat;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;
use x86_64::registers::control::Cr0;

const CAP: u32 = 0xfe;
pub const DEF_TYPE: u32 = 0x2ff;
pub const PAT: u32 = 0x277;
pub const PAIRS: u32 = 0x200;
/// Room for base/mask pairs before the first fixed-range register.
pub const MAX_PAIRS: usize = 40;
pub const FIXED: [u32; 11] = [
    0x250, 0x258, 0x259, 0x268, 0x269, 0x26a, 0x26b, 0x26c, 0x26d, 0x26e, 0x26f,
];

const CR0_CD_NW: u64 = 0x6000_0000;

/// One CPU's registers, as read.
#[derive(Clone, Copy)]
#[repr(C)] // kept over a restart, by `keep.rs`
pub struct RegFile {
    pub cap: u64,
    pub def_type: u64,
    pub pat: u64,
    pub fixed: [u64; 11],
    pub pairs: [[u64; 2]; MAX_PAIRS],
    pub cr0: u64,
}

impl RegFile {
    pub const EMPTY: Self = Self {
        cap: 0,
        def_type: 0,
        pat: 0,
        fixed: [0; 11],
        pairs: [[0; 2]; MAX_PAIRS],
        cr0: 0,
    };

    /// Reads the calling CPU. A register that the CPU refuses to give reads as 0.
    pub fn read() -> Self {
        let mut file = Self::EMPTY;
        file.read_into();
        file
    }

    /// As `read`, without a copy on the caller's stack.
    pub fn read_into(&mut self) {
        let (has_mtrr, has_pat) = features();
        *self = Self::EMPTY;
        self.cr0 = Cr0::read_raw();
        if has_pat {
            self.pat = msr::read(PAT).unwrap_or(0);
        }
        if !has_mtrr {
            return;
        }
        self.cap = msr::read(CAP).unwrap_or(0);
        self.def_type = msr::read(DEF_TYPE).unwrap_or(0);
        if self.has_fixed() {
            for (value, &register) in self.fixed.iter_mut().zip(&FIXED) {
                *value = msr::read(register).unwrap_or(0);
            }
        }
        let pairs = self.pair_count();
        for (pair, register) in self.pairs[..pairs].iter_mut().zip((PAIRS..).step_by(2)) {
            *pair = [
                msr::read(register).unwrap_or(0),
                msr::read(register + 1).unwrap_or(0),
            ];
        }
    }

    pub fn pair_count(&self) -> usize {
        ((self.cap & 0xff) as usize).min(MAX_PAIRS)
    }

    pub fn has_fixed(&self) -> bool {
        self.cap & 0x100 != 0
    }

    /// DEF_TYPE.E: with it clear, all memory is uncached.
    pub fn enabled(&self) -> bool {
        self.def_type & 0x800 != 0
    }

    pub fn fixed_enabled(&self) -> bool {
        self.def_type & 0x400 != 0
    }

    /// CR0.CD or NW set: the CPU runs without caching, whatever the MTRRs say.
    pub fn caching_off(&self) -> bool {
        self.cr0 & CR0_CD_NW != 0
    }

    /// The same words as the crate has them, to be asked by its lookup; what this file does not hold comes from `like`.
    pub fn snapshot(&self, like: &Snapshot) -> Snapshot {
        Snapshot {
            cap: like.cap.and(Some(MtrrCap::from_raw(self.cap))),
            def_type: MtrrDefType::from_raw(self.def_type),
            variable: self.pairs.map(|[base, mask]| VariableMtrr { base, mask }),
            fixed: self.fixed,
            pat: like.pat.and(Some(Pat::from_raw(self.pat))),
            ..*like
        }
    }

    /// Which types the variable ranges that match an address have, one bit each: from the words alone.
    pub fn variable_types_at(&self, addr: u64) -> u32 {
        let matches = |[base, mask]: &[u64; 2]| {
            let compared = mask & !0xfff;
            mask & 0x800 != 0 && addr & compared == base & compared
        };
        let pairs = self.pairs.iter().filter(|pair| matches(pair));
        pairs.fold(0, |types, [base, _]| types | 1 << (base & 0x1f))
    }

    /// What differs from `other`.
    pub fn diff(&self, other: &Self) -> Diff {
        let unequal = |a: &[u64], b: &[u64]| a.iter().zip(b).filter(|(x, y)| x != y).count();
        Diff {
            cap: self.cap != other.cap,
            default: self.def_type != other.def_type,
            pat: self.pat != other.pat,
            fixed: unequal(&self.fixed, &other.fixed),
            variable: unequal(self.pairs.as_flattened(), other.pairs.as_flattened()),
        }
    }
}

/// CPUID.1:EDX: MTRR is bit 12, PAT bit 16.
pub fn features() -> (bool, bool) {
    let edx = core::arch::x86_64::__cpuid(1).edx;
    (edx & (1 << 12) != 0, edx & (1 << 16) != 0)
}

/// CPUID.1:ECX, bit 31: a hypervisor has a say.
pub fn is_guest() -> bool {
    core::arch::x86_64::__cpuid(1).ecx >> 31 != 0
}

/// Registers in which two CPUs differ, by group.
#[derive(Clone, Copy, Default)]
pub struct Diff {
    pub cap: bool,
    pub default: bool,
    pub pat: bool,
    pub fixed: usize,
    pub variable: usize,
}

impl Diff {
    pub fn registers(&self) -> usize {
        usize::from(self.cap)
            + usize::from(self.default)
            + usize::from(self.pat)
            + self.fixed
            + self.variable
    }
}

impl fmt::Display for Diff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.registers())?;
        if self.registers() == 0 {
            return Ok(());
        }
        let mut separator = " (";
        for (name, count) in [
            ("cap", self.cap.into()),
            ("default", self.default.into()),
            ("fixed", self.fixed),
            ("variable", self.variable),
            ("pat", self.pat.into()),
        ] {
            if count != 0 {
                write!(f, "{separator}{name}:{count}")?;
                separator = " ";
            }
        }
        write!(f, ")")
    }
}

/// The short form that the log has for a CPU's state.
impl fmt::Display for RegFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let valid = self
            .pairs
            .iter()
            .filter(|[_, mask]| mask & 0x800 != 0)
            .count();
        write!(
            f,
            "E={} FE={} default={} ranges={valid} pat={:016x}{}",
            u8::from(self.enabled()),
            u8::from(self.fixed_enabled()),
            self.def_type & 0xff,
            self.pat,
            if self.caching_off() {
                " caching=off"
            } else {
                ""
            },
        )
    }
}
