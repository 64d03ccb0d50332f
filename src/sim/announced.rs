//! Which registers a CPU has been told of: by CPUID, by MTRRCAP, or by another register.
//!
//! On a kernel that cannot catch faults, an access of any other register may be its last.

use super::check::Rule;
use super::config::Vendor;
use super::cpuid;
use super::state::State;
use crate::ranges::FIXED_RANGES;
use crate::regs::{MsrAddr, MtrrCap, SysCfg};

impl State {
    /// The rule for registers nobody has announced, whether the access faults or not.
    pub(super) fn check_announced(&mut self, cpu: usize, what: &str, msr: MsrAddr) {
        if !self.announced(cpu, msr) {
            let text = format!("{what} of {msr}");
            self.violate(cpu, Rule::UnannouncedMsr, text);
        }
    }

    fn announced(&self, cpu: usize, msr: MsrAddr) -> bool {
        let features = cpuid::answer(self, cpu, 1, 0);
        let edx = |bit: u32| features.edx & (1 << bit) != 0;
        let bare = features.ecx & (1 << 31) == 0;
        let sev = cpuid::answer(self, cpu, 0x8000_001f, 0).eax & 0b10 != 0;
        let mtrr = edx(12) && !self.config.cd_faults;
        let cap = self.cpus[cpu].regs.cap.unwrap_or(MtrrCap::empty());
        match msr {
            MsrAddr::PAT => edx(16),
            MsrAddr::MTRRCAP | MsrAddr::MTRR_DEF_TYPE => mtrr,
            MsrAddr(0x200..0x250) => mtrr && msr.0 < 0x200 + 2 * u32::from(cap.vcnt()),
            _ if FIXED_RANGES.iter().any(|range| range.msr == msr) => {
                mtrr && cap.contains(MtrrCap::FIX)
            }
            MsrAddr::SYSCFG => self.config.vendor == Vendor::Amd && bare,
            MsrAddr::TOP_MEM2 => bare && self.syscfg_has(cpu, SysCfg::MTRR_TOM2_EN),
            MsrAddr::TOP_MEM | MsrAddr(0xc001_0016..=0xc001_0019) => {
                bare && self.syscfg_has(cpu, SysCfg::MTRR_VAR_DRAM_EN)
            }
            MsrAddr::SEV_STATUS => self.config.vendor == Vendor::Amd && sev,
            MsrAddr::TME_ACTIVATE => bare && cpuid::answer(self, cpu, 7, 0).ecx & (1 << 13) != 0,
            // What a test's own code is about.
            _ => self.cpus[cpu].regs.register(msr).is_ok(),
        }
    }

    /// Whether SYSCFG of this CPU, or of the boot CPU, which reads its own first, has a bit.
    fn syscfg_has(&self, cpu: usize, bit: SysCfg) -> bool {
        let has = |n: usize| {
            let syscfg = self.cpus[n].regs.syscfg;
            syscfg.is_some_and(|syscfg| syscfg.contains(bit))
        };
        has(cpu) || has(0)
    }
}
