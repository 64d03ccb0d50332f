//! Microsoft's Hyper-V.

use super::{ALL_WRITE_BACK, EIGHT, ON_UNCACHABLE, program};
use crate::regs::VariableMtrr;
use crate::sim::config::Config;
use crate::snapshot::Snapshot;

/// (base, bytes its mask lets vary): 128 MiB, from there to below 4 GiB, from 4 GiB to the high MMIO gap,
/// and from there to the end of what the CPU addresses. Only the first is a block.
const PAIRS: [(u64, u64); 5] = [
    (0, 0x0800_0000),
    (0x0800_0000, 0x1_0000_0000),
    (0x1_0000_0000, 0x10_0000_0000),
    (0x10_0000_0000, 1 << 43),
    (1 << 43, 1 << 44),
];

impl Config {
    /// A generation 1 machine (PC BIOS) with more than 64 GiB.
    ///
    /// Source: as [`Config::hyper_v_gen2`].
    #[must_use]
    pub fn hyper_v_gen1(cores: usize, threads: usize) -> Self {
        let mut config = Self::hyper_v_gen2(cores, threads);
        for map in config.maps() {
            map.fixed[7..].fill(ALL_WRITE_BACK);
        }
        config
    }

    /// A generation 2 machine (UEFI) with more than 64 GiB: uncachable by default, conventional memory
    /// write-back, and five pairs whose masks are wider than their bases are aligned.
    ///
    /// Source: OpenVMM, vm/loader (`compute_variable_mtrrs`, the loaders for PCAT, UEFI and Linux:
    /// which registers get what) and its pull request 355 (all CPUs get it; bases have bits under
    /// their masks); boot logs of guests (eight pairs, PAT, CPUID's leaves up to 0x4000_000B);
    /// Microsoft's answer in LIS/lis-next, issue 321: 44 address bits on Server 2016, and a guest's
    /// MTRRs do not count for its RAM. Assumed: what #GPs is what the manuals say, INIT keeps the
    /// MTRRs, there is no S3. The rate of the time-stamp counter is in an MSR of its own, which
    /// this crate does not read.
    #[must_use]
    pub fn hyper_v_gen2(cores: usize, threads: usize) -> Self {
        let mut config = Self::hyper_v(cores, threads);
        for map in config.maps() {
            program(map, ON_UNCACHABLE, 0, &[]);
            write_back(map);
        }
        config
    }

    /// A utility machine, which starts a kernel without firmware, as WSL 2 did in 2020: the MTRRs of all
    /// CPUs off and blank.
    ///
    /// Source: boot logs in microsoft/WSL2-Linux-Kernel, issue 102. Later ones have them on. CR0 of the APs
    /// is assumed to be that of reset.
    #[must_use]
    pub fn hyper_v_utility(cores: usize, threads: usize) -> Self {
        let mut config = Self::hyper_v(cores, threads);
        config.ap_cr0 = crate::sim::registers::CR0_RESET;
        config
    }

    fn hyper_v(cores: usize, threads: usize) -> Self {
        let mut config = Self::guest(cores, threads, 44, EIGHT);
        config.named(0x4000_000b, *b"Microsoft Hv");
        config
    }
}

fn write_back(map: &mut Snapshot) {
    const WRITE_BACK: u64 = 6;
    let end = map.phys_bits.end();
    for (pair, (base, size)) in map.variable.iter_mut().zip(PAIRS) {
        *pair = VariableMtrr {
            base: base | WRITE_BACK,
            mask: (end - size) | VariableMtrr::V,
        };
    }
}
