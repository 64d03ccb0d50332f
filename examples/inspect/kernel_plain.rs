//! What a kernel's line means, where the rest of the log does not matter.

use super::findings::Severity;
use super::kernel_says::Answer;
use super::subject::Subject;

/// How bad `subject` is, what it means, what to do.
pub fn answer(subject: Subject) -> Answer {
    let (severity, meaning, fix) = match subject {
        Subject::IncorrectMask => (
            Severity::Warning,
            "a mask is made for fewer address bits than the processor reports",
            "memory encryption may take address bits: the mask is then right for fewer bits",
        ),
        Subject::WriteRefused => (
            Severity::Error,
            "the processor or the hypervisor refused the value: that CPU keeps the old one",
            "in a virtual machine: nothing; else the value has reserved bits set for this width",
        ),
        Subject::AllBlank => (
            Severity::Info,
            "no range is write-back: usual in a virtual machine, where the hypervisor decides",
            "",
        ),
        Subject::ReadOnly => (
            Severity::Info,
            "this kernel works with a fixed map it was given (Xen PV, SEV-SNP or TDX guest), and \
             cannot change MTRRs: only the hypervisor or the host can",
            "",
        ),
        Subject::MapLost => (
            Severity::Warning,
            "the kernel had no memory for its map of types, and does without MTRRs",
            "",
        ),
        Subject::DramModify => (
            Severity::Info,
            "firmware left SYSCFG bit 19 set on that CPU; the kernel cleared it, as AMD asks",
            "update the firmware",
        ),
        Subject::DriverWithoutPat => (
            Severity::Warning,
            "a driver got no write-combining range, and this kernel runs without PAT (with it, it \
             would not have tried): the device's memory stays uncached, and is slow",
            "see why there is no PAT (`dmesg | grep PAT`; `nopat`, a hypervisor), or free a range: \
             paste /proc/mtrr",
        ),
        Subject::NoWriteCombining => (
            Severity::Info,
            "MTRRCAP says that this processor's ranges cannot be write-combining",
            "use PAT",
        ),
        Subject::NotThere => (
            Severity::Info,
            "a range was to be removed that is not in use, often because adding it had failed",
            "",
        ),
        Subject::NoPat => (
            Severity::Info,
            "the kernel does not program the PAT: what drivers want write-combining gets it only \
             through an MTRR, or stays uncached",
            "remove `nopat` from the command line, or build the kernel with MTRR and X86_PAT",
        ),
        Subject::PatZero => (
            Severity::Warning,
            "the PAT register reads 0: firmware or the hypervisor never set it up",
            "update the firmware; in a virtual machine it is the hypervisor's to give",
        ),
        Subject::PatDiffers => (
            Severity::Error,
            "one CPU has no PAT and the first has: the kernel cannot go on",
            "boot with `nopat`",
        ),
        Subject::HostDecides => (
            Severity::Warning,
            "the guest asks for cached memory where the host's MTRRs say another type: the \
             hypervisor uses uncachable, and the guest is slow there; the host's layout is at fault",
            "look at the host's MTRRs (its firmware), not at the guest's",
        ),
        Subject::GuestRefused => (
            Severity::Info,
            "the hypervisor refused what a guest wrote to a register or page for a memory type: \
             the guest's doing, the host's memory types stay as they are",
            "report it to who makes the guest's kernel or firmware",
        ),
        Subject::NeedsNoPat => (
            Severity::Warning,
            "this old driver gets write-combining only through an MTRR, and refuses to run on a \
             kernel with PAT: the driver's restriction, nothing is wrong with the MTRRs",
            "boot with `nopat` for that device alone; every other driver is better off with PAT",
        ),
        Subject::OldMtrr => (
            Severity::Info,
            "AMD's K6 and Geode have two registers of their own kind, without the MTRRs this \
             program knows: only the kernel's own tools show them",
            "memcontrol list",
        ),
        Subject::TooMany => (
            Severity::Warning,
            "the processor has more variable ranges than this kernel keeps: it neither shows nor \
             saves the rest, and CPUs may differ after sleep",
            "update the kernel",
        ),
        Subject::VirtualBox => (
            Severity::Info,
            "VirtualBox gave the guest MTRRs for its RAM; its log says how many, not which: the \
             guest's kernel shows them, and memory's real type is the host's",
            "",
        ),
        Subject::DriverWith => (
            Severity::Info,
            "a driver asked for a write-combining range of its own and says it has one (some say so \
             whether or not they got it)",
            "see whether /proc/mtrr (FreeBSD: `memcontrol list`) has it",
        ),
        Subject::PageType => (
            Severity::Warning,
            "the graphics driver wanted RAM for its card with another type than write-back, and the \
             kernel could not change it: slower, or too little memory for the card",
            "look for \"conflicting memory types\" and for lack of memory before it; the MTRRs have \
             no part in it",
        ),
        Subject::MappedRam => (
            Severity::Warning,
            "a driver wanted to map RAM as if it were a device's: the kernel refuses, since RAM is \
             mapped write-back already and has one type only. The address is wrong, or e820 calls \
             RAM what firmware meant for a device",
            "report it to who makes the driver or the firmware (a frame buffer in RAM has to be \
             reserved in e820)",
        ),
        Subject::BadOption => (
            Severity::Info,
            "the driver's mtrr= option knows two values: 3 asks for a write-combining range, 0 for \
             none; this one counts as none",
            "give mtrr:3, or leave the option out where the kernel has PAT",
        ),
        Subject::Nvidia => (
            Severity::Info,
            "a line of NVIDIA's driver that is not about memory types: an Xid is an error of the \
             card or of a program on it",
            "look it up in NVIDIA's list of Xid errors; lines with \"x86/PAT\" or \"mtrr\" around it \
             would show whether memory types have a part in it",
        ),
        _ => (Severity::Info, "the kernel uses the MTRRs", ""),
    };
    (severity, meaning.into(), fix.into())
}
