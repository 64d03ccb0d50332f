//! A machine as a dump describes it.

use mtrr_pat::layout::FixedRanges;
use mtrr_pat::ranges::{FIXED_END, PhysBits};
use mtrr_pat::regs::{MtrrCap, MtrrDefType};
use mtrr_pat::routing::Routing;
use mtrr_pat::snapshot::Snapshot;

use super::dump::Dump;
use super::gaps::Gaps;
use super::regs::Regs;
use super::width::BitsFrom;

/// First byte above what 32-bit addresses reach: devices live below it.
pub const FOUR_GIB: u64 = 1 << 32;

/// A machine as the dump describes it, gaps filled and noted.
#[derive(Debug)]
pub struct Machine {
    /// Each CPU that shows MTRRs, the first being the one all others are compared with.
    pub cpus: Vec<(u32, Snapshot)>,
    /// The first CPU's registers as far as the dump has them, where the kernel's map stands in for
    /// the variable ranges that are missing.
    pub shown: Option<Snapshot>,
    /// What is known of the registers that only firmware sets, CPU by CPU in the same order.
    pub routing: Vec<Routing>,
    /// Address bits the MTRRs decode.
    pub bits: PhysBits,
    /// Where that number is from.
    pub bits_from: BitsFrom,
    /// Whether the dump says E.
    pub enabled_known: bool,
    /// Whether the dump says the default type.
    pub default_known: bool,
    /// Whether the dump shows all fixed ranges (or says there are none).
    pub fixed_known: bool,
    /// Whether the dump says how many variable ranges exist.
    pub count_known: bool,
    /// What the dump lacks.
    pub gaps: Gaps,
    /// Usable RAM, sorted, merged, half-open. May be empty: not known.
    pub ram: Vec<(u64, u64)>,
    /// End of RAM, from the RAM map or a page count.
    pub ram_end: Option<u64>,
    /// What was assumed, in sentences.
    pub notes: Vec<String>,
    /// The dump itself.
    pub dump: Dump,
}

impl Machine {
    /// The register file that is looked at: the first CPU's.
    pub fn boot(&self) -> Option<&Snapshot> {
        self.cpus.first().map(|(_, snapshot)| snapshot)
    }

    /// What the dump says of the first CPU.
    pub fn boot_regs(&self) -> Option<&Regs> {
        let (number, _) = self.cpus.first()?;
        self.dump.cpus.get(number)
    }

    /// Whether the dump says FE.
    pub fn fixed_enabled_known(&self) -> bool {
        self.boot_regs()
            .is_some_and(|regs| regs.fixed_enabled.is_some())
    }

    /// The boot CPU's registers as they would act with E set and without AMD's TOP_MEM2: what
    /// the variable ranges alone say.
    pub fn programmed(&self) -> Option<Snapshot> {
        let mut snapshot = *self.boot()?;
        snapshot.def_type = MtrrDefType::from_raw(snapshot.def_type.raw() | MtrrDefType::E);
        snapshot.syscfg = None;
        Some(snapshot)
    }

    /// The boot CPU's registers as they act with E set, TOP_MEM2 included. Layouts are planned
    /// for this. Fixed ranges that the dump does not show decide below 1 MiB all the same.
    pub fn acting(&self) -> Option<Snapshot> {
        let mut snapshot = *self.boot()?;
        let cap = snapshot.cap?;
        let mut def_type = snapshot.def_type.raw() | MtrrDefType::E;
        if !self.fixed_known && self.fixed_ranges() == FixedRanges::On {
            snapshot.cap = Some(cap | MtrrCap::FIX);
            def_type |= MtrrDefType::FE;
        }
        snapshot.def_type = MtrrDefType::from_raw(def_type);
        Some(snapshot)
    }

    /// Whether the fixed ranges decide below 1 MiB: unless the dump says that there are none, or
    /// that they are off.
    pub fn fixed_ranges(&self) -> FixedRanges {
        let first = self.cpus.first();
        let regs = first.and_then(|(number, _)| self.dump.cpus.get(number));
        let none = |cap: u64| cap & MtrrCap::FIX.bits() == 0;
        match regs {
            Some(regs) if regs.cap.is_some_and(none) => FixedRanges::Off,
            Some(regs) if regs.fixed_enabled == Some(false) => FixedRanges::Off,
            _ => FixedRanges::On,
        }
    }

    /// First address that the variable ranges decide.
    pub fn variable_start(&self) -> u64 {
        match self.fixed_ranges() {
            FixedRanges::On => FIXED_END,
            FixedRanges::Off => 0,
        }
    }
}
