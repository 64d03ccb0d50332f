//! Oracle's VirtualBox.

use super::{EIGHT, ON_UNCACHABLE, program};
use crate::memtype::MemType;
use crate::regs::{MsrAddr, MtrrCap};
use crate::sim::config::{Config, Init};
use crate::sim::fault::{At, Fault, What};
use crate::sim::firmware::S3;
use crate::sim::registers::CR0_RESET;
use crate::sim::scribble::Scribble;
use crate::sim::write_checks::WriteChecks;

impl Config {
    /// VirtualBox 7.1: the boot CPU has its RAM below 4 GiB write-back, the APs have all MTRRs zero.
    ///
    /// Source: VirtualBox, CPUMAllMsrs.cpp (MTRRCAP, which values #GP, which writes are stored,
    /// switched by `fMtrrRead` and `fMtrrWrite`), CPUM.cpp (RAM is mapped by variable MTRRs at
    /// power-on; what a reset of a CPU does to PAT and CR0), VMM.cpp (INIT is such a reset); the
    /// boot log in home-assistant/operating-system, issue 3762 (eight pairs, of two RAM is made,
    /// below 4 GiB only; all three groups differ between the CPUs). Assumed: 39 address bits, which
    /// pairs exactly, that S3 resets PAT and CR0 and no MTRR. A guest told to be of Linux sees
    /// KVM's name, as boot logs show; where a machine shows none, CPUID has no hypervisor bit, and
    /// it is [`Config::new`] to this crate.
    #[must_use]
    pub fn virtualbox(cores: usize, threads: usize) -> Self {
        let mut config = Self::virtualbox_old(cores, threads);
        for map in config.maps() {
            map.cap = Some(MtrrCap::from_raw(EIGHT));
        }
        let ram = [
            (0, 0x8000_0000, MemType::WriteBack),
            (0x8000_0000, 0x4000_0000, MemType::WriteBack),
        ];
        program(&mut config.boot, ON_UNCACHABLE, 0, &ram);
        config
    }

    /// The same where writes of the variable MTRRs are not stored (`fMtrrWrite` clear): they are checked, and
    /// lost without a fault. DEF_TYPE and the fixed ranges keep what is written.
    ///
    /// Source: as [`Config::virtualbox`]; whether any version is delivered like this is not known.
    #[must_use]
    pub fn virtualbox_read_only(cores: usize, threads: usize) -> Self {
        let mut config = Self::virtualbox(cores, threads);
        let cpus = config.cpus();
        config.faults = (0..cpus)
            .flat_map(|cpu| (0x200..0x210).map(move |msr| (cpu, At::Msr(MsrAddr(msr)))))
            .map(|(cpu, at)| Fault::new(cpu, at, What::Ignored))
            .collect();
        config
    }

    /// VirtualBox up to 7.0: MTRRCAP is 0, so that DEF_TYPE is all there is, and nobody has set it.
    ///
    /// Source: as [`Config::virtualbox`], an older CPUMAllMsrs.cpp.
    #[must_use]
    pub fn virtualbox_old(cores: usize, threads: usize) -> Self {
        let mut config = Self::guest(cores, threads, 39, 0);
        config.named(0x4000_0001, *b"KVMKVMKVM\0\0\0");
        config.init = Init::ResetsPat;
        config.ap_cr0 = CR0_RESET;
        config.write_checks = WriteChecks::NO_RESERVED_BITS;
        config.wake = S3::all(Scribble::PatReset);
        config
    }
}
