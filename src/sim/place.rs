//! Where the CPUs of a machine sit, and a usual memory map.

use super::config::{Config, Numbering};
use crate::memtype::MemType;
use crate::pat::Pat;
use crate::ranges::PhysBits;
use crate::regs::{MtrrCap, MtrrDefType, VariableMtrr};
use crate::snapshot::Snapshot;

impl Config {
    /// How many logical CPUs there are.
    #[must_use]
    pub const fn cpus(&self) -> usize {
        self.cores * self.threads
    }

    /// The core and the thread of a CPU.
    #[must_use]
    pub const fn place(&self, cpu: usize) -> (usize, usize) {
        match self.numbering {
            Numbering::ThreadsTogether => (cpu / self.threads, cpu % self.threads),
            Numbering::CoresFirst => (cpu % self.cores, cpu / self.cores),
        }
    }

    /// The CPU at a core and thread: the inverse of [`Self::place`].
    #[must_use]
    pub const fn cpu_at(&self, core: usize, thread: usize) -> usize {
        match self.numbering {
            Numbering::ThreadsTogether => core * self.threads + thread,
            Numbering::CoresFirst => thread * self.cores + core,
        }
    }

    /// How many low bits of an x2APIC id number the thread.
    #[must_use]
    pub const fn smt_shift(&self) -> u32 {
        self.threads.next_power_of_two().trailing_zeros()
    }

    /// How many low bits of an x2APIC id number thread and core within the package.
    #[must_use]
    pub const fn package_shift(&self) -> u32 {
        self.smt_shift() + self.cores_per_package.next_power_of_two().trailing_zeros()
    }

    /// The x2APIC id of a CPU.
    #[must_use]
    pub const fn apic_id(&self, cpu: usize) -> u32 {
        let (core, thread) = self.place(cpu);
        let package = core / self.cores_per_package;
        let core = core % self.cores_per_package;
        ((package << self.package_shift()) | (core << self.smt_shift()) | thread) as u32
    }
}

/// A usual desktop map: 2 GiB and 6 GiB of RAM write-back below and above the hole, the hole
/// uncachable, legacy video uncachable, ten variable ranges, PAT as reset leaves it.
#[must_use]
pub fn firmware_map() -> Snapshot {
    let bits = PhysBits::new(39).unwrap_or(PhysBits::MIN);
    let mut map = Snapshot::empty(bits);
    map.cap = Some(MtrrCap::from_raw(10) | MtrrCap::FIX | MtrrCap::WC | MtrrCap::SMRR);
    map.def_type = MtrrDefType::from_raw(MtrrDefType::E | MtrrDefType::FE);
    map.pat = Some(Pat::POWER_ON);
    map.fixed = [0x0606_0606_0606_0606; crate::regs::FIXED_COUNT];
    if let Some(video) = map.fixed.get_mut(2) {
        *video = 0;
    }
    let blocks = [
        (0, 0x8000_0000),
        (0x1_0000_0000, 0x1_0000_0000),
        (0x2_0000_0000, 0x4000_0000),
    ];
    for (pair, (base, size)) in map.variable.iter_mut().zip(blocks) {
        *pair = VariableMtrr::from_block(base, size, MemType::WriteBack, bits).unwrap_or_default();
    }
    map
}
