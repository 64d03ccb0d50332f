//! What lines of a kernel can be about.

/// What a line is about: lines of one subject make one finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// RAM that the kernel gave up because no range makes it write-back.
    Trimmed,
    /// CPUs that came up with other registers than the first.
    Inconsistent,
    /// A mask for another address width.
    IncorrectMask,
    /// A register that could not be written.
    WriteRefused,
    /// The MTRRs are off, or there are none.
    Off,
    /// No range is write-back.
    AllBlank,
    /// The kernel works with a map it was given.
    ReadOnly,
    /// The kernel's own map could not be kept.
    MapLost,
    /// RdMem and WrMem of the fixed ranges are open.
    DramModify,
    /// The kernel re-arranged the ranges.
    CleanedUp,
    /// The kernel found no better arrangement.
    CleanUpFailed,
    /// A range of another type is where a new one was wanted.
    Refused,
    /// All ranges are in use.
    NoneFree,
    /// A request that no range can express.
    NotExpressible,
    /// Write-combining is not to be had.
    NoWriteCombining,
    /// A range was to be removed that is not there.
    NotThere,
    /// A driver has to do without write-combining.
    DriverWithout,
    /// The same, on a kernel without PAT: else it would not have tried.
    DriverWithoutPat,
    /// Two mappings of one memory with different types.
    Conflict,
    /// A large page over two types.
    HugePage,
    /// The PAT is not used.
    NoPat,
    /// The PAT holds zero.
    PatZero,
    /// The PAT is there on some CPUs.
    PatDiffers,
    /// Linux 6.5 and later: how many ranges, but not which.
    MapCount,
    /// A guest's memory type meets another one of the host.
    HostDecides,
    /// A guest wrote what the hypervisor does not take.
    GuestRefused,
    /// A driver that runs without PAT only.
    NeedsNoPat,
    /// Registers of the K6's kind.
    OldMtrr,
    /// More variable ranges than the kernel has room for.
    TooMany,
    /// VirtualBox made the guest's ranges.
    VirtualBox,
    /// The kernel found the MTRRs.
    Found,
    /// FreeBSD: a driver got no write-combining range.
    BsdWithout,
    /// FreeBSD's and OpenBSD's tools could not do what they were asked.
    BsdTool,
    /// An X server took write-combining off a range.
    TakenAway,
    /// A driver asked for a write-combining range and says that it has it.
    DriverWith,
    /// An InfiniBand or network adapter sends without write-combining.
    SendBuffers,
    /// A driver could not have the memory of its device mapped write-combining.
    Aperture,
    /// The type of RAM pages could not be changed.
    PageType,
    /// RAM was to be mapped as if it were a device's.
    MappedRam,
    /// fwts found memory of a type that it would not have.
    Tested,
    /// A word of a driver's options that is none.
    BadOption,
    /// NVIDIA's driver about the PAT, MTRRs and types of mappings.
    NvidiaTypes,
    /// NVIDIA's driver about anything else.
    Nvidia,
}

impl Subject {
    /// Whether the types of mapped pages are the matter, in which the MTRRs have no part.
    pub fn of_pages(self) -> bool {
        matches!(
            self,
            Self::Conflict
                | Self::Aperture
                | Self::PageType
                | Self::MappedRam
                | Self::NvidiaTypes
                | Self::Nvidia
        )
    }
}
