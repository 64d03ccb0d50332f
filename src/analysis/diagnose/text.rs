//! The words: what a finding says, and what to do about it.

use core::fmt;

use super::{Finding, Kind, Place, Removal, Severity};
use crate::compare::SameMap;
use crate::memtype::MemType;
use crate::overlap::MtrrType;

/// What to do about a finding; `Display` says it. Made by [`Finding::fix`].
#[derive(Clone, Copy, Debug)]
pub struct Fix<'a>(pub(super) &'a Finding);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DefType => f.write_str("the default type"),
            Self::Variable(pair) => write!(f, "variable range {pair}"),
            Self::Fixed => f.write_str("the fixed ranges"),
            Self::PatSlot(slot) => write!(f, "PAT slot {slot}"),
        }
    }
}

impl fmt::Display for Finding {
    /// Says what is wrong and where, without the severity: one line, no full stop.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)?;
        match self.extent {
            Some(extent) => write!(f, ": {extent}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMtrr
            | Self::OffProgrammed
            | Self::OffBlank
            | Self::NothingWriteBack { .. }
            | Self::RamNotWriteBack { .. }
            | Self::RamWriteProtected
            | Self::RamGivenUp { .. }
            | Self::RamBeyondWidth
            | Self::Undecided => about_state(self, f),
            Self::WidthDisagrees { .. }
            | Self::MaskWidth { .. }
            | Self::MaskHoles { .. }
            | Self::BaseUnderMask { .. }
            | Self::ReservedBits { .. }
            | Self::ReservedType { .. } => about_registers(self, f),
            Self::UndefinedOverlap { .. }
            | Self::Redundant { .. }
            | Self::NoEffect { .. }
            | Self::NoFreePair { .. } => about_effects(self, f),
            _ => about_the_rest(self, f),
        }
    }
}

fn about_state(kind: &Kind, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match kind {
        Kind::NoMtrr => f.write_str("there are no MTRRs"),
        Kind::OffProgrammed => f.write_str(
            "the MTRRs are off (E=0) although ranges are programmed: all memory is uncachable",
        ),
        Kind::OffBlank => f.write_str("the MTRRs are off (E=0) and blank"),
        Kind::NothingWriteBack { default } => {
            write!(
                f,
                "no memory above 1 MiB is write-back (default type {default})"
            )
        }
        Kind::RamNotWriteBack { memtype } => write!(f, "RAM is {memtype}"),
        Kind::RamWriteProtected => {
            f.write_str("RAM is write-protect: writes to it go past the caches")
        }
        Kind::RamGivenUp { memtype } => write!(f, "RAM is left out of use: it is {memtype}"),
        Kind::RamBeyondWidth => f.write_str("RAM lies above what the address width reaches"),
        _ => f.write_str("the masks are too irregular to decide every question about them"),
    }
}

fn about_registers(kind: &Kind, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match kind {
        Kind::WidthDisagrees { snapshot, expected } => write!(
            f,
            "the registers were decoded with {snapshot} of address, the machine has {expected}"
        ),
        Kind::MaskWidth {
            pair,
            mask_bits,
            width,
            ..
        } => write!(
            f,
            "the mask of variable range {pair} is made for {mask_bits} bits of address, but \
             {width} are decoded"
        ),
        Kind::MaskHoles { pair, blocks } => write!(
            f,
            "the mask of variable range {pair} has holes: it matches {blocks} separate blocks"
        ),
        Kind::BaseUnderMask { pair, base } => write!(
            f,
            "the base {base:#x} of variable range {pair} has bits its mask leaves out; they are \
             ignored"
        ),
        Kind::ReservedBits { msr, bits } => write!(f, "{msr} has reserved bits set: {bits:#x}"),
        Kind::ReservedType { place, found } => write!(f, "{place}: {found}"),
        _ => Ok(()),
    }
}

fn about_effects(kind: &Kind, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match kind {
        Kind::UndefinedOverlap {
            pairs: [first, second],
        } => write!(
            f,
            "variable ranges {first} and {second} overlap in types that have no defined result"
        ),
        Kind::Redundant { pair, .. } => {
            write!(
                f,
                "variable range {pair} is redundant: the map is the same without it"
            )
        }
        Kind::NoEffect { pair, winner, .. } => {
            write!(f, "variable range {pair} has no effect: ")?;
            match winner {
                Some(winner) => write!(f, "{winner} wins wherever it matches"),
                None => f.write_str("the fixed ranges decide wherever it matches"),
            }
        }
        Kind::NoFreePair { pairs: 0 } => f.write_str("there are no variable ranges"),
        Kind::NoFreePair { pairs } => write!(f, "all {pairs} variable ranges are in use"),
        _ => Ok(()),
    }
}

fn about_the_rest(kind: &Kind, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match kind {
        Kind::FixedDramVisible => f.write_str("the fixed ranges carry RdMem or WrMem"),
        Kind::FixedDramHidden => f.write_str(
            "RdMem and WrMem of the fixed ranges have effect, but were hidden when they were read",
        ),
        Kind::FixedDramReserved { byte } => {
            write!(
                f,
                "reserved combination of RdMem, WrMem and type in a fixed range ({byte:#04x})"
            )
        }
        Kind::Tom2Off => f.write_str("TOP_MEM2 is set but off: what lies below it is not memory"),
        Kind::Tom2NotWriteBack => f.write_str("memory below TOP_MEM2 is not write-back"),
        Kind::Tom2Overruled { memtype } => write!(
            f,
            "TOP_MEM2 makes memory write-back, but a variable range makes some of it {memtype}"
        ),
        Kind::NoPat => f.write_str("there is no PAT"),
        Kind::PatZero => f.write_str("the PAT is zero: no page can be cached"),
        Kind::PatSlot0NotWriteBack => {
            f.write_str("PAT slot 0, that of page tables without cache bits, is not write-back")
        }
        Kind::PatWithoutWc => f.write_str("the PAT has no write-combining slot"),
        Kind::CpuDiffers { .. } | Kind::RoutingDiffers { .. } => about_cpu(kind, f),
        _ => Ok(()),
    }
}

fn about_cpu(kind: &Kind, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let (Kind::CpuDiffers {
        cpu,
        count,
        registers,
        ..
    }
    | Kind::RoutingDiffers {
        cpu,
        count,
        registers,
    }) = kind
    else {
        return Ok(());
    };
    write!(f, "CPU {cpu}")?;
    match count {
        0 | 1 => {}
        2 => f.write_str(" and one like it")?,
        more => write!(f, " and {} like it", more - 1)?,
    }
    let verb = if *count < 2 { "differs" } else { "differ" };
    write!(f, " {verb} from CPU 0 in: {registers}; ")?;
    let Kind::CpuDiffers { map, off, .. } = kind else {
        return f.write_str("an address may mean other memory there");
    };
    if *off {
        return f.write_str("the MTRRs are off there, all memory is uncachable");
    }
    match map {
        SameMap::Same => f.write_str("the memory map is the same"),
        SameMap::Differs(difference) => write!(f, "the memory map differs, first at {difference}"),
        SameMap::Unproven(addr) => {
            write!(
                f,
                "the memory map is the same below {addr:#x}, and unknown above"
            )
        }
    }
}

impl fmt::Display for Fix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let guest = self.0.severity == Severity::Info;
        f.write_str(match self.0.kind {
            Kind::NoMtrr | Kind::OffBlank if guest => {
                "nothing: the hypervisor decides; take RAM for write-back and leave the rest to \
                 page tables"
            }
            Kind::RoutingDiffers { .. } if guest => {
                "nothing: the hypervisor decides where the memory of its guests is"
            }
            Kind::NoMtrr => "check how the registers were read: every such processor has them",
            Kind::OffProgrammed => {
                "set E again by the full sequence on every CPU; look for a compatibility setting \
                 in the firmware"
            }
            Kind::OffBlank => "give this CPU the map of one that works, or plan one and apply it",
            Kind::NothingWriteBack { .. } => "plan a map that makes RAM write-back, and apply it",
            Kind::RamNotWriteBack {
                memtype: MtrrType::Defined(MemType::WriteThrough),
            }
            | Kind::RamWriteProtected => "make it write-back, unless it shadows a ROM",
            Kind::RamNotWriteBack { .. } => {
                "make it write-back, or keep it out of the page allocator; update the firmware"
            }
            Kind::RamGivenUp { .. } => {
                "make it write-back before the memory map is read, and use it; update the firmware"
            }
            Kind::RamBeyondWidth => "do not use it; check the address width and the memory map",
            Kind::Undecided => "put the registers in order by planning the map anew",
            ref kind => for_registers(kind),
        })
    }
}

const fn for_registers(kind: &Kind) -> &'static str {
    match kind {
        Kind::WidthDisagrees { .. } => {
            "decode with the width of CPUID 0x80000008 less what memory encryption takes"
        }
        Kind::MaskWidth { all: true, .. } => {
            "every mask says so: decode with that width; memory encryption may take address bits"
        }
        Kind::MaskWidth { .. } => "rewrite the mask for the width the processor decodes",
        Kind::MaskHoles { .. } => "replace it by ranges with contiguous masks",
        Kind::BaseUnderMask { .. } => {
            "do not trust the base: the range is as listed; rewrite it if that is not meant"
        }
        Kind::ReservedBits { .. } | Kind::ReservedType { .. } => {
            "do not write it back: WRMSR raises #GP; rewrite the register"
        }
        Kind::UndefinedOverlap { .. } => {
            "let one of them end where the other begins, or split the larger one"
        }
        Kind::Redundant { removal, .. } | Kind::NoEffect { removal, .. } => match removal {
            Removal::Together => "clear its V bit: the register is free for other use",
            Removal::Alone => "clear its V bit, or that of the ranges that say the same, not both",
        },
        Kind::NoFreePair { .. } => {
            "use the PAT instead of another range, or plan the map anew with fewer registers"
        }
        kind => for_the_rest(kind),
    }
}

const fn for_the_rest(kind: &Kind) -> &'static str {
    match kind {
        Kind::FixedDramVisible => {
            "save and restore them only while SYSCFG has MtrrFixDramModEn set, at suspend time"
        }
        Kind::FixedDramHidden => {
            "do not write this copy back while SYSCFG has MtrrFixDramModEn set; read it again so"
        }
        Kind::FixedDramReserved { .. } => "rewrite the field with a combination that exists",
        Kind::Tom2Off => "set MtrrTom2En in SYSCFG as firmware should, or use no memory up there",
        Kind::Tom2NotWriteBack => {
            "cover it with write-back ranges, or have firmware set Tom2ForceMemTypeWB"
        }
        Kind::Tom2Overruled { .. } => {
            "clear that range, or shorten it to end at 4 GiB, unless a device is meant"
        }
        Kind::NoPat => "use variable ranges for memory types; pages have only WB, WT and UC",
        Kind::PatZero | Kind::PatSlot0NotWriteBack => {
            "write a PAT on every CPU before page tables are relied on"
        }
        Kind::PatWithoutWc => {
            "write a PAT with a write-combining slot on every CPU, if one is needed"
        }
        Kind::CpuDiffers {
            map: SameMap::Same,
            registers,
            ..
        } if registers.are_harmless() => "nothing",
        Kind::CpuDiffers { registers, .. } | Kind::RoutingDiffers { registers, .. }
            if registers.are_firmwares() =>
        {
            "update the firmware, which alone may set these; do without the CPU until then"
        }
        _ => "give it the first CPU's registers by the full sequence, before it does other work",
    }
}
