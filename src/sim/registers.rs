//! The memory-type registers of a simulated CPU, and what RDMSR and WRMSR do to them.
//!
//! Written from the manuals and apart from the rest of the crate, so that the two check each other.

use std::collections::BTreeMap;

use super::write_checks::WriteChecks;
use crate::cpu::{CR0_CD, MsrFault};
use crate::pat::Pat;
use crate::ranges::{FIXED_RANGES, PhysBits};
use crate::regs::{FIXED_COUNT, MAX_VARIABLE, MsrAddr, MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use crate::snapshot::Snapshot;

/// CR0 out of reset: CD and NW set.
pub const CR0_RESET: u64 = 0x6000_0010;
/// CR0 of a CPU in long mode, caching on: PG, WP, NE, ET, MP, PE.
pub const CR0_KERNEL: u64 = 0x8001_0033;

/// RdMem and WrMem in each byte of an AMD fixed-range register.
const DRAM_BITS: u64 = 0x1818_1818_1818_1818;

/// One set of MTRRs: a core's or a thread's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MtrrSet {
    pub(crate) def_type: u64,
    pub(crate) variable: [VariableMtrr; MAX_VARIABLE],
    pub(crate) fixed: [u64; FIXED_COUNT],
}

/// What every thread has for itself.
#[derive(Clone, Debug)]
pub(crate) struct ThreadRegs {
    pub(crate) cap: Option<MtrrCap>,
    pub(crate) pat: Option<u64>,
    pub(crate) syscfg: Option<SysCfg>,
    pub(crate) top_mem2: u64,
    pub(crate) other: BTreeMap<u32, u64>,
    pub(crate) phys_bits: PhysBits,
    pub(crate) checks: WriteChecks,
    pub(crate) cr0: u64,
    pub(crate) cr3: u64,
    pub(crate) cr4: u64,
    pub(crate) interrupts: bool,
}

/// Which register an address names on a given CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Register {
    Cap,
    DefType,
    Base(usize),
    Mask(usize),
    Fixed(usize),
    Pat,
    SysCfg,
    TopMem2,
    Other(u32),
}

impl Register {
    /// Whether it belongs to the MTRR set.
    pub(crate) const fn is_mtrr(self) -> bool {
        matches!(
            self,
            Self::DefType | Self::Base(_) | Self::Mask(_) | Self::Fixed(_)
        )
    }
}

impl MtrrSet {
    pub(crate) const fn enabled(&self) -> bool {
        self.def_type & MtrrDefType::E != 0
    }
}

impl ThreadRegs {
    pub(crate) const fn cache_disabled(&self) -> bool {
        self.cr0 & CR0_CD != 0
    }

    /// Whether reads and writes of a fixed range reach RdMem and WrMem, or whatever else is in their place.
    const fn dram_bits_open(&self) -> bool {
        match self.syscfg {
            _ if !self.checks.dram_bits => true,
            Some(syscfg) => syscfg.contains(SysCfg::MTRR_FIX_DRAM_MOD_EN),
            None => false,
        }
    }

    /// The register at an address, or #GP.
    pub(crate) fn register(&self, msr: MsrAddr) -> Result<Register, MsrFault> {
        let found = match msr {
            MsrAddr::MTRRCAP => self.cap.map(|_| Register::Cap),
            MsrAddr::MTRR_DEF_TYPE => self.cap.map(|_| Register::DefType),
            MsrAddr::PAT => self.pat.map(|_| Register::Pat),
            MsrAddr::SYSCFG => self.syscfg.map(|_| Register::SysCfg),
            MsrAddr::TOP_MEM2 => self.syscfg.map(|_| Register::TopMem2),
            MsrAddr(0x200..0x250) => self.variable(msr.0 - 0x200),
            _ => self.fixed(msr).or_else(|| {
                self.other
                    .contains_key(&msr.0)
                    .then_some(Register::Other(msr.0))
            }),
        };
        found.ok_or(MsrFault)
    }

    fn variable(&self, offset: u32) -> Option<Register> {
        let n = (offset / 2) as usize;
        if n >= usize::from(self.cap?.vcnt()) {
            return None;
        }
        Some(if offset.is_multiple_of(2) {
            Register::Base(n)
        } else {
            Register::Mask(n)
        })
    }

    fn fixed(&self, msr: MsrAddr) -> Option<Register> {
        if !self.cap?.contains(MtrrCap::FIX) {
            return None;
        }
        FIXED_RANGES
            .iter()
            .position(|range| range.msr == msr)
            .map(Register::Fixed)
    }

    /// RDMSR.
    pub(crate) fn read(&self, set: &MtrrSet, register: Register) -> u64 {
        match register {
            Register::Cap => self.cap.map_or(0, MtrrCap::raw),
            Register::DefType => set.def_type,
            Register::Base(n) => set.variable[n].base,
            Register::Mask(n) => set.variable[n].mask,
            Register::Fixed(n) if self.dram_bits_open() => set.fixed[n],
            Register::Fixed(n) => set.fixed[n] & !DRAM_BITS,
            Register::Pat => self.pat.unwrap_or(0),
            Register::SysCfg => self.syscfg.map_or(0, SysCfg::raw),
            Register::TopMem2 => self.top_mem2,
            Register::Other(msr) => self.other.get(&msr).copied().unwrap_or(0),
        }
    }

    /// Whether a write puts RdMem, WrMem and type together in a way the manual reserves.
    pub(crate) fn reserved_dram(&self, register: Register, value: u64) -> bool {
        let reserved = |byte: u8| {
            matches!(
                (byte >> 3 & 3, byte & 7),
                (0, 6) | (1 | 2, 4 | 6) | (1, 5) | (2, 1) | (3, 5)
            )
        };
        matches!(register, Register::Fixed(_))
            && self.checks.dram_bits
            && self.dram_bits_open()
            && value.to_le_bytes().into_iter().any(reserved)
    }

    /// Whether a write changes where accesses go, or how memory is encrypted: the firmware's part.
    /// RdMem and WrMem of the fixed ranges may be made visible.
    pub(crate) fn reroutes(&self, register: Register, value: u64) -> bool {
        match register {
            Register::SysCfg => {
                let changed = SysCfg::from_raw(self.syscfg.map_or(0, SysCfg::raw) ^ value);
                changed != SysCfg::MTRR_FIX_DRAM_MOD_EN && !changed.is_empty()
            }
            Register::TopMem2 => true,
            Register::Other(msr) => matches!(
                MsrAddr(msr),
                MsrAddr::TOP_MEM | MsrAddr::TME_ACTIVATE | MsrAddr(0xc001_0016..=0xc001_0019)
            ),
            _ => false,
        }
    }

    /// WRMSR of a value that is accepted.
    pub(crate) fn write(&mut self, set: &mut MtrrSet, register: Register, value: u64) {
        match register {
            Register::Cap => {}
            Register::DefType => set.def_type = value,
            Register::Base(n) => set.variable[n].base = value,
            Register::Mask(n) => set.variable[n].mask = value,
            Register::Fixed(n) if self.dram_bits_open() => set.fixed[n] = value,
            Register::Fixed(n) => {
                set.fixed[n] = (value & !DRAM_BITS) | (set.fixed[n] & DRAM_BITS);
            }
            Register::Pat => self.pat = Some(value),
            Register::SysCfg => self.syscfg = Some(SysCfg::from_raw(value)),
            Register::TopMem2 => self.top_mem2 = value,
            Register::Other(msr) => {
                self.other.insert(msr, value);
            }
        }
    }

    /// The registers as stored: RdMem and WrMem included.
    pub(crate) fn snapshot(&self, set: &MtrrSet) -> Snapshot {
        let mut snapshot = Snapshot::empty(self.phys_bits);
        snapshot.cap = self.cap;
        snapshot.def_type = MtrrDefType::from_raw(set.def_type);
        snapshot.variable = set.variable;
        snapshot.fixed = set.fixed;
        snapshot.pat = self.pat.map(Pat::from_raw);
        snapshot.syscfg = self.syscfg;
        snapshot.top_mem2 = self.top_mem2;
        snapshot
    }

    /// Puts a snapshot's thread part in place.
    pub(crate) fn load(&mut self, snapshot: &Snapshot) {
        self.cap = snapshot.cap;
        self.pat = snapshot.pat.map(Pat::raw);
        self.syscfg = snapshot.syscfg;
        self.top_mem2 = snapshot.top_mem2;
        self.phys_bits = snapshot.phys_bits;
    }
}

impl From<&Snapshot> for MtrrSet {
    fn from(snapshot: &Snapshot) -> Self {
        Self {
            def_type: snapshot.def_type.raw(),
            variable: snapshot.variable,
            fixed: snapshot.fixed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;

    fn cpu(config: &Config) -> (ThreadRegs, MtrrSet) {
        let state = super::super::state::State::new(std::sync::Arc::new(config.clone()));
        (state.cpus[0].regs.clone(), state.sets[0])
    }

    /// Whether WRMSR takes the value, register looked up by address.
    fn takes(regs: &ThreadRegs, msr: u32, value: u64) -> bool {
        regs.register(MsrAddr(msr))
            .is_ok_and(|register| regs.accepts(register, value))
    }

    #[test]
    fn reserved_bits_and_types_fault() {
        let (regs, _) = cpu(&Config::new(1, 1));
        assert_eq!(regs.phys_bits.get(), 39);
        for (msr, value, taken) in [
            (0xfe, 0xd0a, false),
            (0x2ff, 0xc06, true),
            (0x2ff, 0x106, false),
            (0x2ff, 0x200, false),
            (0x2ff, 0x1000, false),
            (0x2ff, 0x807, false),
            (0x200, 0x7f_ffff_f006, true),
            (0x200, 0x80_0000_0006, false),
            (0x200, 0x106, false),
            (0x200, 0x2, false),
            (0x201, 0x7f_ffff_f800, true),
            (0x201, 0x80_0000_0800, false),
            (0x201, 0x400, false),
            (0x213, 0, true),
            (0x214, 0, false),
            (0x250, 0x0605_0401_0006_0504, true),
            (0x250, 0x1e, false),
            (0x26f, 0x0700_0000_0000_0000, false),
            (0x277, 0x0007_0106_0504_0100, true),
            (0x277, 0x03, false),
            (0x277, 0x08, false),
            (0xc001_0010, 0, false),
        ] {
            assert_eq!(takes(&regs, msr, value), taken, "{msr:#x} := {value:#x}");
        }
    }

    #[test]
    fn vcnt_fix_wc_and_absence_decide_what_exists() {
        let exist = |cap: Option<u64>| {
            let mut config = Config::new(1, 1);
            config.boot.cap = cap.map(MtrrCap::from_raw);
            let (regs, _) = cpu(&config);
            (0x200..0x300)
                .filter(|msr| regs.register(MsrAddr(*msr)).is_ok())
                .count()
        };
        assert_eq!(exist(Some(0x508)), 16 + 11 + 2);
        assert_eq!(exist(Some(0x500)), 11 + 2);
        assert_eq!(exist(Some(0x408)), 16 + 2);
        assert_eq!(exist(Some(0x5ff)), 80 + 11 + 2);
        assert_eq!(exist(None), 1);
        let mut config = Config::new(1, 1);
        config.boot.cap = Some(MtrrCap::from_raw(0x10a));
        config.boot.pat = None;
        let (regs, _) = cpu(&config);
        assert!(!takes(&regs, 0x200, 1), "WC is not supported");
        assert!(!takes(&regs, 0x277, 0));
    }

    #[test]
    fn dram_bits_show_only_while_bit_19_is_set() {
        let (mut regs, mut set) = cpu(&Config::amd(1, 1));
        let fixed = Register::Fixed(0);
        assert_eq!(regs.read(&set, fixed), 0x0606_0606_0606_0606);
        assert!(regs.accepts(fixed, 0x1e));
        regs.write(&mut set, fixed, 0x0404_0404_0404_1e06);
        assert_eq!(set.fixed[0], 0x1c1c_1c1c_1c1c_1e1e);
        let closed = regs.syscfg.unwrap();
        let open = closed | SysCfg::MTRR_FIX_DRAM_MOD_EN;
        regs.write(&mut set, Register::SysCfg, open.raw());
        assert_eq!(regs.read(&set, fixed), 0x1c1c_1c1c_1c1c_1e1e);
        regs.write(&mut set, fixed, 0x0606_0606_0606_061e);
        assert!(regs.reserved_dram(fixed, 0x0606_0606_0606_0606));
        assert!(!regs.reserved_dram(fixed, 0x1e1c_1915_1008_0905));
        regs.write(&mut set, Register::SysCfg, closed.raw());
        assert_eq!(regs.read(&set, fixed), 0x0606_0606_0606_0606);
        assert_eq!(set.fixed[0], 0x0606_0606_0606_061e);
    }
}
