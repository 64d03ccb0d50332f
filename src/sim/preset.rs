//! Processors and hypervisors as they answer: CPUID, MTRRCAP, and which registers exist.

use super::config::{Config, MtrrScope, Vendor};
use super::fault::{At, Fault, What};
use crate::cpu::CpuidWords;
use crate::memtype::MemType;
use crate::ranges::PhysBits;
use crate::regs::{FIXED_COUNT, MAX_VARIABLE, MsrAddr, MtrrCap, MtrrDefType, SysCfg, VariableMtrr};

impl Config {
    /// A Zhaoxin machine: Intel's registers and tables under another vendor's name.
    #[must_use]
    pub fn zhaoxin(cores: usize, threads: usize) -> Self {
        let mut config = Self::new(cores, threads);
        config.signature = 0x0007_03b0;
        config.cap(0x508);
        let vendor = CpuidWords {
            eax: 0x1f,
            ebx: u32::from_le_bytes(*b"  Sh"),
            ecx: u32::from_le_bytes(*b"ai  "),
            edx: u32::from_le_bytes(*b"angh"),
        };
        config.cpuid.push((None, 0, 0, vendor));
        config
    }

    /// A KVM guest on an Intel processor: eight variable ranges, RAM write-back by default and the
    /// hole below 4 GiB uncachable, as its firmware leaves them; no SMRR, no memory encryption.
    #[must_use]
    pub fn kvm_intel(cores: usize, threads: usize) -> Self {
        let mut config = Self::new(cores, threads);
        config.signature = 0x0005_0654;
        config.kvm();
        config
    }

    /// A KVM guest on an AMD processor: SYSCFG is there and reads 0; TOP_MEM, TOP_MEM2, the IORRs and
    /// SEV_STATUS are not.
    #[must_use]
    pub fn kvm_amd(cores: usize, threads: usize) -> Self {
        let mut config = Self::new(cores, threads);
        config.vendor = Vendor::Amd;
        config.signature = 0x0080_0f12;
        config.kvm();
        for map in [&mut config.boot, &mut config.aps] {
            map.syscfg = Some(SysCfg::empty());
        }
        let absent = At::Msr(MsrAddr::TOP_MEM2);
        config.faults = (0..config.cpus())
            .map(|cpu| Fault::new(cpu, absent, What::Gp))
            .collect();
        config
    }

    /// What KVM and its firmware give any guest.
    fn kvm(&mut self) {
        self.hypervisor = true;
        self.scope = MtrrScope::Thread;
        self.cap(0x508);
        for map in [&mut self.boot, &mut self.aps] {
            map.phys_bits = PhysBits::new(40).unwrap_or(PhysBits::MIN);
            map.def_type = MtrrDefType::from_raw(0xc06);
            map.variable = [VariableMtrr::default(); MAX_VARIABLE];
            let hole = VariableMtrr::from_block(
                0xc000_0000,
                0x4000_0000,
                MemType::Uncachable,
                map.phys_bits,
            );
            map.variable[0] = hole.unwrap_or_default();
            map.fixed = [0x0606_0606_0606_0606; FIXED_COUNT];
            map.fixed[2] = 0;
        }
    }

    fn cap(&mut self, raw: u64) {
        for map in [&mut self.boot, &mut self.aps] {
            map.cap = Some(MtrrCap::from_raw(raw));
        }
    }
}
