//! VMware's ESXi, Workstation and Fusion.

use super::{EIGHT, ON_UNCACHABLE, program};
use crate::cpu::CpuidWords;
use crate::memtype::MemType;
use crate::sim::config::Config;
use crate::sim::firmware::S3;
use crate::sim::scribble::Scribble;

impl Config {
    /// A VMware guest: uncachable by default, 128 GiB write-back, the hole below 4 GiB uncachable in it.
    /// It is told the rate of its time-stamp counter.
    ///
    /// Source: boot logs of guests: "total RAM covered: 130048M" (127 GiB: 128 less the last below
    /// 4), the fixed ranges as cheat-engine's issue 1491 lists them, the rate of the time-stamp
    /// counter read from the hypervisor; Linux, arch/x86/kernel/cpu/vmware.c (the leaf it is in).
    /// Assumed, since the source is not open: 45 address bits, what #GPs, that APs are set up as
    /// the boot CPU, also after S3, that INIT keeps the MTRRs.
    #[must_use]
    pub fn vmware(cores: usize, threads: usize) -> Self {
        let mut config = Self::guest(cores, threads, 45, EIGHT);
        config.named(0x4000_0010, *b"VMwareVMware");
        // A tick of the simulated counter is a nanosecond.
        config.leaf(
            0x4000_0010,
            CpuidWords {
                eax: 1_000_000,
                ebx: 66_000,
                ..CpuidWords::default()
            },
        );
        for map in config.maps() {
            let blocks = [
                (0xc000_0000, 0x4000_0000, MemType::Uncachable),
                (0, 128 << 30, MemType::WriteBack),
            ];
            program(map, ON_UNCACHABLE, 0, &blocks);
        }
        config.wake = S3::all(Scribble::LikeBoot);
        config
    }
}
