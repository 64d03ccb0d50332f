//! FreeBSD's bhyve.

use super::{ON_WRITE_BACK, program};
use crate::memtype::MemType;
use crate::sim::config::Config;
use crate::sim::write_checks::WriteChecks;

impl Config {
    /// A bhyve guest with UEFI firmware: ten pairs, write-back by default, 3 to 4 GiB uncachable.
    ///
    /// Source: FreeBSD, sys/amd64/vmm/x86.c (CPUID's leaves: 0x15 empty, one for the hypervisor;
    /// MTRRCAP; which values #GP, and that types are not looked at), amd/svm_msr.c (SYSCFG reads 0
    /// on AMD). Assumed: that its UEFI firmware, EDK II's, leaves the map EDK II leaves under QEMU,
    /// and gives it to the APs; 39 address bits, the host's. There is no S3.
    #[must_use]
    pub fn bhyve(cores: usize, threads: usize) -> Self {
        let mut config = Self::guest(cores, threads, 39, 0x50a);
        config.named(0x4000_0000, *b"bhyve bhyve ");
        config.write_checks = WriteChecks::NO_TYPES;
        for map in config.maps() {
            let hole = [(0xc000_0000, 0x4000_0000, MemType::Uncachable)];
            program(map, ON_WRITE_BACK, 0, &hole);
        }
        config
    }
}
