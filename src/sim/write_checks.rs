//! Which values WRMSR refuses: the manuals' rules, and those of who pretends to be a processor.

use super::registers::{Register, ThreadRegs};
use crate::memtype::{MemType, PatType};
use crate::regs::{MsrAddr, MtrrCap, MtrrDefType};

/// For what WRMSR to an MTRR or the PAT raises #GP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteChecks {
    /// Address bits a base and a mask may have: `None` for those of the CPU, 64 for any.
    pub address_bits: Option<u8>,
    /// Whether the reserved bits below the address count: bits 11:8 of a base, 10:0 of a mask, all
    /// but E, FE and the type of DEF_TYPE.
    pub reserved_bits: bool,
    /// Whether reserved types count in an MTRR.
    pub types: bool,
    /// Whether they count in the PAT.
    pub pat_types: bool,
    /// Whether the fixed ranges of a CPU with a SYSCFG have RdMem and WrMem: taken, but neither read nor
    /// written while its bit 19 is clear. Else those are bits of the type.
    pub dram_bits: bool,
}

impl WriteChecks {
    /// All of them, as the manuals say.
    pub const MANUALS: Self = Self {
        address_bits: None,
        reserved_bits: true,
        types: true,
        pat_types: true,
        dram_bits: true,
    };
    /// As the manuals, but RdMem and WrMem make a type a reserved one, also on AMD.
    ///
    /// Source: Linux, arch/x86/kvm/mtrr.c; Xen, xen/arch/x86/hvm/mtrr.c.
    pub const PLAIN_TYPES: Self = Self {
        dram_bits: false,
        ..Self::MANUALS
    };
    /// Types and the width, but no reserved bits below it.
    ///
    /// Source: VirtualBox, CPUMAllMsrs.cpp.
    pub const NO_RESERVED_BITS: Self = Self {
        reserved_bits: false,
        ..Self::PLAIN_TYPES
    };
    /// Reserved bits, address bits above 51, and no types but those of the PAT.
    ///
    /// Source: FreeBSD, sys/amd64/vmm/x86.c. That of the PAT is assumed.
    pub const NO_TYPES: Self = Self {
        address_bits: Some(52),
        types: false,
        ..Self::PLAIN_TYPES
    };
    /// None: what is written is stored.
    ///
    /// Source: QEMU, target/i386/tcg, the helper of WRMSR.
    pub const NONE: Self = Self {
        address_bits: Some(64),
        reserved_bits: false,
        types: false,
        pat_types: false,
        dram_bits: false,
    };

    /// Those of `bits` that count as reserved.
    const fn reserved(self, bits: u64) -> u64 {
        if self.reserved_bits { bits } else { 0 }
    }
}

impl ThreadRegs {
    /// Whether WRMSR takes the value; otherwise it raises #GP.
    pub(crate) fn accepts(&self, register: Register, value: u64) -> bool {
        const DEFINED: u64 = 0xff | MtrrDefType::E | MtrrDefType::FE;
        let checks = self.checks;
        let bits = checks.address_bits.unwrap_or(self.phys_bits.get());
        let above = u64::MAX.checked_shl(u32::from(bits)).unwrap_or(0);
        match register {
            Register::Cap => false,
            Register::DefType => {
                value & checks.reserved(!DEFINED) == 0 && self.takes_type(value as u8)
            }
            Register::Base(_) => {
                value & (above | checks.reserved(0xf00)) == 0 && self.takes_type(value as u8)
            }
            Register::Mask(_) => value & (above | checks.reserved(0x7ff)) == 0,
            Register::Fixed(_) => value.to_le_bytes().into_iter().all(|byte| {
                let hidden = if self.syscfg.is_some() && checks.dram_bits {
                    0x18
                } else {
                    0
                };
                self.takes_type(byte & !hidden)
            }),
            Register::Pat => {
                let mut types = value.to_le_bytes().into_iter();
                !checks.pat_types || types.all(|byte| PatType::from_field(byte).is_ok())
            }
            Register::SysCfg | Register::TopMem2 => true,
            // Locked by its first write.
            Register::Other(msr) => {
                const LOCK: u64 = 1;
                let word = self.other.get(&msr).copied().unwrap_or(0);
                MsrAddr(msr) != MsrAddr::TME_ACTIVATE || word & LOCK == 0
            }
        }
    }

    fn takes_type(&self, byte: u8) -> bool {
        match MemType::from_field(byte) {
            _ if !self.checks.types => true,
            Ok(MemType::WriteCombining) => self.cap.is_some_and(|cap| cap.contains(MtrrCap::WC)),
            Ok(_) => true,
            Err(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::Config;
    use super::*;

    #[test]
    fn each_refuses_what_it_refuses() {
        const WRITES: [(u32, u64); 9] = [
            (0x200, 0x1_0000_0000_0006), // bit 48
            (0x200, 0x10_0000_0000_0006),
            (0x200, 0x106),
            (0x200, 0x2),
            (0x201, 0x400),
            (0x2ff, 0x1006),
            (0x2ff, 0x803),
            (0x250, 0x1e),
            (0x277, 0x2),
        ];
        for (name, checks, taken) in [
            ("manuals", WriteChecks::MANUALS, "........."),
            ("manuals, AMD", WriteChecks::MANUALS, ".......x."),
            ("plain types, AMD", WriteChecks::PLAIN_TYPES, "........."),
            (
                "no reserved bits",
                WriteChecks::NO_RESERVED_BITS,
                "..x.xx...",
            ),
            ("no types", WriteChecks::NO_TYPES, "x..x..xx."),
            ("none", WriteChecks::NONE, "xxxxxxxxx"),
        ] {
            let mut config = if name.ends_with("AMD") {
                Config::amd(1, 1)
            } else {
                Config::new(1, 1)
            };
            config.write_checks = checks;
            let state = super::super::state::State::new(std::sync::Arc::new(config));
            let regs = &state.cpus[0].regs;
            let found: String = WRITES
                .iter()
                .map(|(msr, value)| {
                    let register = regs.register(MsrAddr(*msr)).unwrap();
                    if regs.accepts(register, *value) {
                        'x'
                    } else {
                        '.'
                    }
                })
                .collect();
            assert_eq!(found, taken, "{name}");
        }
    }
}
