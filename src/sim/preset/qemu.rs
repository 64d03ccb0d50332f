//! QEMU's own translator (TCG).

use super::{ALL_WRITE_PROTECTED, EIGHT, ON_WRITE_BACK, program};
use crate::cpu::CpuidWords;
use crate::memtype::MemType;
use crate::regs::SysCfg;
use crate::sim::config::{Config, Init, Vendor};
use crate::sim::firmware::S3;
use crate::sim::scribble::Scribble;
use crate::sim::write_checks::WriteChecks;

impl Config {
    /// QEMU without an accelerator: an AMD processor of family 15 by name, one thread a core. INIT
    /// clears the MTRRs, so every AP arrives with them off, at boot and after S3; nothing is ever refused.
    ///
    /// Source: QEMU, target/i386 (MTRRCAP, the clearing of MTRRs at reset and INIT, WRMSR that
    /// stores what it is given, RDMSR that reads unknown registers as 0, the model qemu64); SeaBIOS
    /// as in [`Config::kvm_intel`].
    #[must_use]
    pub fn qemu_tcg(cores: usize) -> Self {
        let mut config = Self::guest(cores, 1, 40, EIGHT);
        config.vendor = Vendor::Amd;
        config.signature = 0x0006_0fb1;
        config.named(0x4000_0001, *b"TCGTCGTCGTCG");
        // Its leaves end at 0xD and 0x8000_000A.
        config.leaf(
            0,
            CpuidWords {
                eax: 0xd,
                ebx: u32::from_le_bytes(*b"Auth"),
                ecx: u32::from_le_bytes(*b"cAMD"),
                edx: u32::from_le_bytes(*b"enti"),
            },
        );
        config.leaf(
            0x8000_0000,
            CpuidWords {
                eax: 0x8000_000a,
                ..CpuidWords::default()
            },
        );
        for map in config.maps() {
            let hole = [(0xc000_0000, 0x4000_0000, MemType::Uncachable)];
            program(map, ON_WRITE_BACK, ALL_WRITE_PROTECTED, &hole);
            map.syscfg = Some(SysCfg::empty());
        }
        config.init = Init::WipesMtrrs;
        config.write_checks = WriteChecks::NONE;
        config.wake = S3::all(Scribble::LikeBoot).with_ap_cr0(0x10);
        config
    }
}
