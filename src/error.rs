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
    /// The map in force is the wanted one; only pairs that are not in use differ from it, or whether
    /// SYSCFG shows RdMem and WrMem.
    UnusedPairs = 3,
    /// What is in force is neither the old map nor the wanted one, as far as can be read: somebody else,
    /// firmware perhaps, wrote to the registers after the wanted map was written and read back, or the
    /// old one put back; or a register takes another value than is written, the old one included.
    Altered = 4,
}

impl fmt::Display for Left {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unchanged => "nothing was changed",
            Self::RolledBack => "the old map was put back",
            Self::Torn => "MTRRs left off, all memory uncachable on this CPU",
            Self::UnusedPairs => "the map is right, only what does not bear on it differs",
            Self::Altered => "what is in force is neither what was there nor what was wanted",
        })
    }
}

/// What a target takes over from the machine as it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fixture {
    /// [`Snapshot::cap`](crate::snapshot::Snapshot::cap).
    Mtrrcap,
    /// Whether there is a PAT.
    Pat,
    /// AMD's SYSCFG, and whether the fixed ranges show RdMem and WrMem.
    Syscfg,
    /// AMD's TOP_MEM2.
    TopMem2,
    /// [`Snapshot::phys_bits`](crate::snapshot::Snapshot::phys_bits).
    Width,
}

impl fmt::Display for Fixture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mtrrcap => "MTRRCAP",
            Self::Pat => "the presence of a PAT",
            Self::Syscfg => "SYSCFG, or whether RdMem and WrMem are shown",
            Self::TopMem2 => "TOP_MEM2",
            Self::Width => "the address width",
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
    /// RDMSR raised #GP. No MTRR was written. The PAT of an AP that comes online or is resynced is brought
    /// in line all the same, if it can be read.
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
    /// The target does not fit this CPU: by its MTRRCAP it lacks fixed ranges, write-combining or a
    /// variable range that is in use, or has what the boot CPU lacks. Its MTRRs were left alone; its PAT
    /// was not.
    CapDiffers {
        /// What this CPU says.
        cap: u64,
    },
    /// `boot_init` has not been called, or failed.
    NotInitialised,
    /// `boot_init` has been called already.
    AlreadyInitialised,
    /// The CPU number is not below the number of CPUs the state was made for.
    CpuOutOfRange {
        /// The number given.
        cpu: usize,
        /// How many there is room for.
        cpus: usize,
    },
    /// A CPU came online that was not declared starting. Nothing was changed on it.
    NotDeclared {
        /// Its number.
        cpu: usize,
    },
    /// A CPU came online or to a rendezvous a second time: two run with one number, or one call too
    /// many. Nothing was changed on it.
    ArrivedTwice {
        /// Its number.
        cpu: usize,
    },
    /// A CPU was declared starting that runs or is starting already, as far as was declared. Nothing was
    /// changed; one that was given up is declared offline first.
    AlreadyDeclared {
        /// Its number.
        cpu: usize,
    },
    /// A CPU came with a number that was declared with another APIC id: the place that was declared is
    /// wrong (a MADT's processor UID is not an APIC id), or the number is. Nothing was changed on it;
    /// until the number is declared offline, no CPU turns its caches off but in a rendezvous.
    ApicIdDiffers {
        /// The number given.
        cpu: usize,
        /// The APIC id it was declared with.
        declared: u32,
        /// The APIC id of the CPU that came.
        own: u32,
    },
    /// A CPU was declared with the APIC id of another that may run. It is not declared: do not start it.
    ApicIdTaken {
        /// The id.
        apic_id: u32,
        /// The number of the CPU that has it.
        by: usize,
    },
    /// Another rendezvous is being led, or is open. Nothing was changed.
    Busy,
    /// CPUs did not come to the rendezvous in time: they do not run, do not take the interrupt, or its
    /// handler does not attend. Nothing was changed on any CPU; the report names all of them.
    Missing {
        /// How many.
        count: u32,
        /// The lowest number among them.
        first: usize,
    },
    /// CPUs came, but did not finish in time: the report counts them, and threads of their cores that
    /// could not take their turn, as out of sync. All others did what they were to do.
    Stuck {
        /// How many.
        count: u32,
        /// The lowest number among them.
        first: usize,
    },
    /// A sibling did not come out of its caches-off window in time. This CPU was left as it is.
    SiblingStuck {
        /// The sibling's number.
        cpu: usize,
    },
    /// Which threads share a core is not known, so caches cannot be turned off early on this CPU.
    /// It is postponed to the next rendezvous.
    TopologyUnknown,
    /// A sibling did not answer a hold in time. This CPU is postponed to the next rendezvous.
    SiblingsNotHeld {
        /// The number of the first that did not.
        cpu: usize,
    },
    /// The target was being replaced while it was read. Ask again.
    TargetBusy,
    /// A register of the wanted target has reserved bits or a reserved type set. Nothing was changed on
    /// any CPU.
    InvalidTarget {
        /// The register.
        msr: MsrAddr,
    },
    /// The wanted target is of another machine: what cannot be changed differs. Nothing was changed on
    /// any CPU.
    ForeignTarget {
        /// What differs.
        part: Fixture,
    },
    /// The machine is suspended: until `boot_resume` has succeeded, or `suspend_aborted`, no CPU starts
    /// and none meet. Nothing was changed.
    Suspended,
    /// The machine is not suspended. Nothing was changed.
    NotSuspended,
    /// A bound of the policy is so short that no healthy CPU could keep it. Nothing was changed.
    BoundTooShort {
        /// Its name on the command line.
        bound: &'static str,
    },
    /// CPUs are not in line after a rendezvous in which everybody finished: the report says why.
    OutOfSync {
        /// How many.
        count: u32,
    },
    /// Only the boot CPU may do this. Nothing was changed.
    NotBootCpu {
        /// The number given.
        cpu: usize,
        /// The boot CPU's.
        boot: usize,
    },
    /// The boot CPU leads every rendezvous: it cannot be declared gone or parked. Nothing was changed.
    IsBootCpu {
        /// Its number.
        cpu: usize,
    },
    /// A register that was written cannot be read back.
    ReadBackFault {
        /// The register.
        msr: MsrAddr,
        /// What became of this CPU.
        left: Left,
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
    /// The register it is about, if it is about one.
    #[must_use]
    pub const fn msr(&self) -> Option<MsrAddr> {
        match self {
            Self::ReadFault { msr }
            | Self::WriteFault { msr, .. }
            | Self::ReadBackFault { msr, .. }
            | Self::WriteIgnored { msr, .. } => Some(*msr),
            _ => None,
        }
    }

    /// What became of the registers, if this is about a write.
    #[must_use]
    pub const fn left(self) -> Option<Left> {
        match self {
            Self::WriteFault { left, .. }
            | Self::WriteIgnored { left, .. }
            | Self::ReadBackFault { left, .. } => Some(left),
            _ => None,
        }
    }

    /// The same failure, with what became of the CPU.
    #[must_use]
    pub(crate) const fn with_left(self, left: Left) -> Self {
        match self {
            Self::WriteFault { msr, value, .. } => Self::WriteFault { msr, value, left },
            Self::WriteIgnored { msr, value, .. } => Self::WriteIgnored { msr, value, left },
            Self::ReadBackFault { msr, .. } => Self::ReadBackFault { msr, left },
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
            Self::ReadFault { msr } => write!(f, "reading {msr} faulted; no MTRR was written"),
            Self::WriteFault { msr, value, left } => {
                write!(f, "writing {value:#x} to {msr} faulted; {left}")
            }
            Self::CapDiffers { cap } => write!(
                f,
                "MTRRCAP is {cap:#x} here, and the target does not fit it; no MTRR was written"
            ),
            Self::NotInitialised => f.write_str("boot_init has not succeeded yet"),
            Self::AlreadyInitialised => f.write_str("boot_init has been called already"),
            Self::CpuOutOfRange { cpu, cpus } => {
                write!(f, "CPU {cpu} is out of range: there is room for {cpus}")
            }
            Self::NotDeclared { cpu } => {
                write!(
                    f,
                    "CPU {cpu} came online without being declared starting; left as it is"
                )
            }
            Self::ArrivedTwice { cpu } => {
                write!(f, "CPU {cpu} came a second time; left as it is")
            }
            Self::AlreadyDeclared { cpu } => {
                write!(
                    f,
                    "CPU {cpu} is starting or running already; nothing was changed"
                )
            }
            Self::ApicIdDiffers { cpu, declared, own } => write!(
                f,
                "CPU {cpu} was declared with APIC id {declared:#x}, and came with {own:#x}; left as it is"
            ),
            Self::ApicIdTaken { apic_id, by } => {
                write!(f, "APIC id {apic_id:#x} is CPU {by}'s; not declared")
            }
            Self::Busy => f.write_str("another rendezvous is under way; nothing was changed"),
            Self::Missing { count, first } => write!(
                f,
                "{count} CPU(s) did not come to the rendezvous, CPU {first} first; nothing was changed, the report names them"
            ),
            Self::Stuck { count, first } => write!(
                f,
                "{count} CPU(s) did not finish the rendezvous, CPU {first} first; the report says what became of each"
            ),
            Self::SiblingStuck { cpu } => {
                write!(
                    f,
                    "sibling CPU {cpu} is stuck with caches off; left as it is"
                )
            }
            Self::TopologyUnknown => {
                f.write_str("core topology unknown; postponed to the rendezvous")
            }
            Self::SiblingsNotHeld { cpu } => {
                write!(
                    f,
                    "sibling CPU {cpu} did not answer a hold; postponed to the rendezvous"
                )
            }
            Self::TargetBusy => f.write_str("the target was being replaced"),
            Self::InvalidTarget { msr } => {
                write!(
                    f,
                    "{msr} of the target cannot be set so; nothing was changed"
                )
            }
            Self::ForeignTarget { part } => {
                write!(
                    f,
                    "the target is of another machine: {part} differs; nothing was changed"
                )
            }
            Self::Suspended => f.write_str(
                "the machine is suspended until boot_resume has succeeded; nothing was changed",
            ),
            Self::NotSuspended => f.write_str("the machine is not suspended; nothing was changed"),
            Self::BoundTooShort { bound } => {
                write!(
                    f,
                    "the bound `{bound}` of the policy is under 10 us; nothing was changed"
                )
            }
            Self::OutOfSync { count } => {
                write!(
                    f,
                    "{count} CPU(s) not in line after the rendezvous; the report says why"
                )
            }
            Self::NotBootCpu { cpu, boot } => {
                write!(
                    f,
                    "CPU {cpu} is not the boot CPU, {boot} is; nothing was changed"
                )
            }
            Self::IsBootCpu { cpu } => {
                write!(
                    f,
                    "CPU {cpu} is the boot CPU and stays; nothing was changed"
                )
            }
            Self::ReadBackFault { msr, left } => write!(f, "reading back {msr} faulted; {left}"),
            Self::WriteIgnored { msr, value, left } => {
                write!(f, "{msr} does not hold {value:#x} after the write; {left}")
            }
        }
    }
}

impl core::error::Error for Error {}
