//! Linux's KVM, under QEMU and under monitors that bring no firmware.

use super::{ALL_WRITE_PROTECTED, EIGHT, ON_WRITE_BACK, program};
use crate::memtype::MemType;
use crate::regs::{MsrAddr, MtrrDefType, SysCfg};
use crate::sim::config::{Config, Vendor};
use crate::sim::fault::{At, Fault, What};
use crate::sim::firmware::S3;
use crate::sim::registers::CR0_RESET;
use crate::sim::scribble::Scribble;

impl Config {
    /// A KVM guest on an Intel processor, QEMU's PC with SeaBIOS: eight variable ranges, RAM write-back
    /// by default, option ROMs write-protected, and 3 to 4 GiB uncachable; no SMRR, no memory encryption.
    ///
    /// Source: Linux, arch/x86/kvm/mtrr.c (MTRRCAP, what #GPs, that INIT leaves them), x86.c
    /// (SYSCFG reads 0; TOP_MEM and TOP_MEM2 are not there); SeaBIOS, src/fw/mtrr.c (the map) and
    /// src/fw/smp.c (every CPU gets it, also after S3); boot logs of guests, which show the same
    /// map. CR0 of the APs is as SeaBIOS's way into protected mode leaves it. That CPUID does not
    /// tell the rate of the time-stamp counter holds for QEMU without `+invtsc`.
    #[must_use]
    pub fn kvm_intel(cores: usize, threads: usize) -> Self {
        let mut config = Self::kvm(cores, threads);
        for map in config.maps() {
            let hole = [(0xc000_0000, 0x4000_0000, MemType::Uncachable)];
            program(map, ON_WRITE_BACK, ALL_WRITE_PROTECTED, &hole);
        }
        config.wake = S3::all(Scribble::LikeBoot).with_ap_cr0(0x10);
        config
    }

    /// The same on an AMD processor: SYSCFG is there and reads 0; TOP_MEM, TOP_MEM2, the IORRs and
    /// SEV_STATUS are not, and RdMem and WrMem are refused.
    ///
    /// Source: as [`Config::kvm_intel`].
    #[must_use]
    pub fn kvm_amd(cores: usize, threads: usize) -> Self {
        let mut config = Self::kvm_intel(cores, threads);
        config.vendor = Vendor::Amd;
        config.signature = 0x0080_0f12;
        for map in config.maps() {
            map.syscfg = Some(SysCfg::empty());
        }
        let absent = At::Msr(MsrAddr::TOP_MEM2);
        config.faults = (0..config.cpus())
            .map(|cpu| Fault::new(cpu, absent, What::Gp))
            .collect();
        config
    }

    /// Cloud Hypervisor, which loads a kernel without firmware: the MTRRs of every CPU on, write-back by
    /// default, no range set, fixed ranges off; APs have never run. There is no S3.
    ///
    /// Source: Cloud Hypervisor, hypervisor/src/arch/x86 (`boot_msr_entries`) and the boot log in its
    /// issue 1752. Monitors of the same family set the same; Firecracker's of 2023 set nothing, as in
    /// [`Config::hyper_v_utility`].
    #[must_use]
    pub fn cloud_hypervisor(cores: usize, threads: usize) -> Self {
        let mut config = Self::kvm(cores, threads);
        for map in config.maps() {
            map.def_type = MtrrDefType::from_raw(0x806);
        }
        config.ap_cr0 = CR0_RESET;
        config
    }

    fn kvm(cores: usize, threads: usize) -> Self {
        let mut config = Self::guest(cores, threads, 40, EIGHT);
        config.named(0x4000_0001, *b"KVMKVMKVM\0\0\0");
        config
    }
}
