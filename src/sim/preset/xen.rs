//! Xen, fully virtualised.

use super::{ALL_WRITE_BACK, EIGHT, ON_WRITE_BACK, program};
use crate::cpu::CpuidWords;
use crate::memtype::MemType;
use crate::sim::config::Config;
use crate::sim::firmware::S3;
use crate::sim::scribble::Scribble;

impl Config {
    /// A Xen HVM guest: write-back by default, video write-combining, the devices' window uncachable in two
    /// pairs. S3 leaves MTRRs and PAT as they were. CPUID says little of the topology, so that all CPUs
    /// of a package count as threads of one core.
    ///
    /// Source: Xen, xen/arch/x86/hvm/mtrr.c (MTRRCAP, what #GPs, PAT at the start), hvm.c (what S3
    /// and a SIPI set: neither an MTRR nor the PAT); hvmloader, cacheattr.c (the map; every CPU
    /// runs it). Assumed: 46 address bits, CR0 of an AP after S3, that CPUID's leaf 0xB is empty
    /// (it was until guests got a topology), and that the devices' window is the usual one from
    /// 0xF000_0000 to 0xFC00_0000.
    #[must_use]
    pub fn xen_hvm(cores: usize, threads: usize) -> Self {
        let mut config = Self::guest(cores, threads, 46, EIGHT);
        config.named(0x4000_0005, *b"XenVMMXenVMM");
        for subleaf in 0..2 {
            let nothing = (None, 0xb, subleaf, CpuidWords::default());
            config.cpuid.push(nothing);
        }
        for map in config.maps() {
            let window = [
                (0xf000_0000, 0x0800_0000, MemType::Uncachable),
                (0xf800_0000, 0x0400_0000, MemType::Uncachable),
            ];
            program(map, ON_WRITE_BACK, ALL_WRITE_BACK, &window);
            map.fixed[2] = 0x0101_0101_0101_0101;
        }
        config.wake = S3::all(Scribble::Kept).with_ap_cr0(0x10);
        config
    }
}
