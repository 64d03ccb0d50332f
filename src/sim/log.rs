//! What the simulated CPUs did: an ordered event list and counters.

use core::fmt;

/// One thing a simulated CPU did. Numbers of registers and values as the instruction saw them.
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op {
    /// RDMSR: register, value read.
    Rdmsr(u32, u64),
    /// RDMSR that raised #GP.
    RdmsrFault(u32),
    /// WRMSR: register, value.
    Wrmsr(u32, u64),
    /// WRMSR that raised #GP; nothing was written.
    WrmsrFault(u32, u64),
    /// WRMSR that raised nothing and wrote nothing (a hypervisor's doing).
    WrmsrIgnored(u32, u64),
    /// MOV from CR0.
    ReadCr0(u64),
    /// MOV to CR0.
    Cr0(u64),
    /// MOV from CR3.
    ReadCr3(u64),
    /// MOV to CR3.
    Cr3(u64),
    /// MOV from CR4.
    ReadCr4(u64),
    /// MOV to CR4.
    Cr4(u64),
    /// WBINVD.
    Wbinvd,
    /// MFENCE.
    Mfence,
    /// PUSHF: RFLAGS.IF.
    ReadIf(bool),
    /// CLI.
    Cli,
    /// STI.
    Sti,
    /// A wait step: one PAUSE, or a sleep in virtual time.
    Pause,
    /// RDTSC.
    Rdtsc,
    /// CPUID: leaf, subleaf.
    Cpuid(u32, u32),
    /// Kernel work: this many instructions.
    Work(u64),
    /// A kernel load from this address.
    Load(u64),
    /// A kernel store to this address.
    Store(u64),
    /// HLT.
    Halt,
    /// INIT and SIPI sent to this CPU.
    Sipi(usize),
    /// An INIT that stops this CPU.
    Init(usize),
    /// An interrupt sent to this CPU.
    Ipi(usize),
    /// This CPU starts at its SIPI vector.
    Start,
    /// This CPU's code returned: it is off until the next SIPI.
    End,
    /// This CPU enters its interrupt handler.
    Interrupt,
    /// IRET: the handler returned.
    Iret,
    /// System management code changed this CPU's registers.
    Smm,
    /// The machine slept in S3 and woke.
    S3,
    /// This CPU stopped for ever, as told.
    Stuck,
    /// A shared word was read (logged only if asked for).
    SharedLoad,
    /// A shared word was written (logged only if asked for).
    SharedStore,
    /// A locked instruction on a shared word (logged only if asked for).
    SharedLocked,
}

impl Op {
    /// Whether the operation changes a register, a cache or another CPU: what is left when reads,
    /// waits, kernel work and the machine's own marks are dropped.
    #[must_use]
    pub const fn is_write(self) -> bool {
        matches!(
            self,
            Self::Wrmsr(..)
                | Self::WrmsrFault(..)
                | Self::WrmsrIgnored(..)
                | Self::Cr0(_)
                | Self::Cr3(_)
                | Self::Cr4(_)
                | Self::Wbinvd
                | Self::Cli
                | Self::Sti
                | Self::Sipi(_)
                | Self::Init(_)
                | Self::Ipi(_)
        )
    }

    /// Whether the stores before it are visible to every CPU once it is done: a fence, a locked
    /// instruction, a serialising one. Writes of x2APIC registers are none, which is why an interrupt
    /// may overtake stores.
    ///
    /// Source: Intel SDM 3A, "Serializing Instructions"; AMD APM 2, "Serializing Instructions".
    #[must_use]
    pub const fn drains_stores(self) -> bool {
        matches!(
            self,
            Self::Mfence
                | Self::SharedLocked
                | Self::Wrmsr(..)
                | Self::WrmsrIgnored(..)
                | Self::Cr0(_)
                | Self::Cr3(_)
                | Self::Cr4(_)
                | Self::Wbinvd
                | Self::Cpuid(..)
                | Self::Iret
        )
    }

    /// Whether this writes a memory-type register or a control register, or empties a cache: what
    /// an in-sync CPU must not do.
    #[must_use]
    pub const fn is_register_write(self) -> bool {
        self.is_write()
            && !matches!(
                self,
                Self::Cli | Self::Sti | Self::Sipi(_) | Self::Init(_) | Self::Ipi(_)
            )
    }
}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Rdmsr(msr, value) => write!(f, "Rdmsr({msr:#x}, {value:#x})"),
            Self::RdmsrFault(msr) => write!(f, "RdmsrFault({msr:#x})"),
            Self::Wrmsr(msr, value) => write!(f, "Wrmsr({msr:#x}, {value:#x})"),
            Self::WrmsrFault(msr, value) => write!(f, "WrmsrFault({msr:#x}, {value:#x})"),
            Self::WrmsrIgnored(msr, value) => write!(f, "WrmsrIgnored({msr:#x}, {value:#x})"),
            Self::ReadCr0(value) => write!(f, "ReadCr0({value:#x})"),
            Self::Cr0(value) => write!(f, "Cr0({value:#x})"),
            Self::ReadCr3(value) => write!(f, "ReadCr3({value:#x})"),
            Self::Cr3(value) => write!(f, "Cr3({value:#x})"),
            Self::ReadCr4(value) => write!(f, "ReadCr4({value:#x})"),
            Self::Cr4(value) => write!(f, "Cr4({value:#x})"),
            Self::ReadIf(set) => write!(f, "ReadIf({set})"),
            Self::Cpuid(leaf, subleaf) => write!(f, "Cpuid({leaf:#x}, {subleaf:#x})"),
            Self::Work(count) => write!(f, "Work({count})"),
            Self::Load(address) => write!(f, "Load({address:#x})"),
            Self::Store(address) => write!(f, "Store({address:#x})"),
            Self::Sipi(cpu) => write!(f, "Sipi({cpu})"),
            Self::Init(cpu) => write!(f, "Init({cpu})"),
            Self::Ipi(cpu) => write!(f, "Ipi({cpu})"),
            other => f.write_str(other.name()),
        }
    }
}

impl Op {
    /// The name of an operation without operands.
    const fn name(self) -> &'static str {
        match self {
            Self::Wbinvd => "Wbinvd",
            Self::Mfence => "Mfence",
            Self::Cli => "Cli",
            Self::Sti => "Sti",
            Self::Pause => "Pause",
            Self::Rdtsc => "Rdtsc",
            Self::Halt => "Halt",
            Self::Start => "Start",
            Self::End => "End",
            Self::Interrupt => "Interrupt",
            Self::Iret => "Iret",
            Self::Smm => "Smm",
            Self::S3 => "S3",
            Self::Stuck => "Stuck",
            Self::SharedLoad => "SharedLoad",
            Self::SharedStore => "SharedStore",
            Self::SharedLocked => "SharedLocked",
            _ => "Op",
        }
    }
}

/// One entry of the event list.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// Virtual time at which the operation began, in picoseconds.
    pub time: u64,
    /// Which CPU.
    pub cpu: usize,
    /// What it did.
    pub op: Op,
}

impl fmt::Debug for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ps CPU {}: {:?}", self.time, self.cpu, self.op)
    }
}

/// What a CPU spends its time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activity {
    /// Executes out of its cache.
    Cached,
    /// Executes uncached.
    Uncached,
    /// Executes in a window of its own.
    Window,
    /// Waits for a shared word.
    Waiting,
    /// Waits while another thread of its core has caching off.
    Held,
    /// Sleeps in HLT.
    Halted,
}

/// A stretch of one activity, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Span {
    pub start: u64,
    pub end: u64,
    pub activity: Activity,
}
