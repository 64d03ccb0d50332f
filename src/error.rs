//! The crate's error: what went wrong, where, and what state the hardware was left in.

use core::fmt;

use crate::regs::MsrAddr;

/// What state a CPU's MTRRs were left in by an operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Left {
    /// Nothing had been written.
    Unchanged = 0,
    /// What had been written was undone; the old map is in force.
    RolledBack = 1,
    /// Undoing failed too: the MTRRs are off (E=0), all memory is uncachable on this CPU.
    Torn = 2,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "nothing was changed",
            Self::RolledBack => "the old map was put back",
            Self::Torn => "MTRRs left off, all memory uncachable on this CPU",
        })
    }
}

/// Why an operation of this crate did not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The machine has no MTRRs that may be used: the feature bit is clear, or a TDX or SNP guest.
    NoMtrr,
    /// The machine has no PAT.
    NoPat,
    /// The processor says it has more variable ranges than their MSRs have room for.
    TooManyVariable {
        /// What MTRRCAP says.
        vcnt: u8,
    },
    /// RDMSR raised #GP. Nothing was changed.
    ReadFault {
        /// The register.
        msr: MsrAddr,
    },
    /// WRMSR raised #GP.
    WriteFault {
        /// The register.
        msr: MsrAddr,
        /// What was to be written.
        value: u64,
        /// What became of this CPU.
        left: Left,
    },
    /// This CPU's SYSCFG bit 19 (MtrrFixDramModEn) differs from the boot CPU's, and its fixed
    /// ranges have other types: they can neither be compared nor written safely. Nothing was
    /// changed.
    FixedDramStateDiffers,
    /// This CPU's MTRRCAP is not the boot CPU's. Its MTRRs were left alone; its PAT was not.
    CapDiffers {
        /// What this CPU says.
        cap: u64,
    },
    /// A write raised no fault, but reads back otherwise: a hypervisor or SMM interfered.
    WriteIgnored {
        /// The register.
        msr: MsrAddr,
        /// What was written.
        value: u64,
        /// What became of this CPU.
        left: Left,
    },
}

impl Error {
    /// The same failure, with what became of the CPU.
    #[must_use]
    pub(crate) const fn with_left(self, left: Left) -> Self {
        match self {
            Self::WriteFault { msr, value, .. } => Self::WriteFault { msr, value, left },
            Self::WriteIgnored { msr, value, .. } => Self::WriteIgnored { msr, value, left },
            other => other,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMtrr => f.write_str("no usable MTRRs on this machine"),
            Self::NoPat => f.write_str("no PAT on this machine"),
            Self::TooManyVariable { vcnt } => {
                write!(f, "MTRRCAP says {vcnt} variable ranges, at most 40 exist")
            }
            Self::ReadFault { msr } => write!(f, "reading {msr} faulted; nothing was changed"),
            Self::WriteFault { msr, value, left } => {
                write!(f, "writing {value:#x} to {msr} faulted; {left}")
            }
            Self::FixedDramStateDiffers => f.write_str(
                "SYSCFG bit 19 differs from the boot CPU's and so do the fixed ranges; nothing was changed",
            ),
            Self::CapDiffers { cap } => write!(
                f,
                "MTRRCAP is {cap:#x} here, not the boot CPU's value; MTRRs were left alone"
            ),
            Self::WriteIgnored { msr, value, left } => {
                write!(f, "{msr} does not hold {value:#x} after the write; {left}")
            }
        }
    }
}

impl core::error::Error for Error {}
