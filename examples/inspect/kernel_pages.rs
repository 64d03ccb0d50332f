//! What lines about the types of mapped pages mean, where they name no range.

use super::dump::Hint;
use super::findings::Severity;
use super::kernel_says::Answer;
use super::words;

/// The kernel's numbers for page cache modes, as `ioremap error` prints them.
const CACHE_MODES: [&str; 6] = [
    "write-back",
    "write-combining",
    "uncached-minus",
    "uncached",
    "write-through",
    "write-protected",
];

/// The two types that `conflicting memory types` names, as it writes them.
fn types_met(text: &str) -> Option<(&str, &str)> {
    let (before, after) = text.split_once("<->")?;
    let first = before.split_whitespace().next_back()?;
    Some((first, after.split_whitespace().next()?))
}

/// `conflicting memory types`, `memtype_reserve failed`, `ioremap error` and the like.
pub fn conflict(first: &Hint) -> Answer {
    let mode = |key: &str| {
        let rest = first.text.split(key).nth(1)?;
        let digits = rest.split([',', ' ']).next()?;
        CACHE_MODES.get(words::hex(digits)? as usize).copied()
    };
    let types = match (mode("requested "), mode("got ")) {
        (Some(asked), Some(got)) => format!(" ({asked} asked for, {got} held)"),
        _ => match types_met(&first.text) {
            Some((one, other)) => format!(" ({one} and {other} met)"),
            None => String::new(),
        },
    };
    let meaning = format!(
        "that memory is already mapped with another type, and Linux lets a range have one type \
         only{types}: the second mapping failed or got the first one's type. MTRRs are not \
         involved, unless no driver maps it and firmware or e820 calls it RAM"
    );
    let fix = "the second driver has to ask for the same type, or wait for the first to unmap; \
               /sys/kernel/debug/x86/pat_memtype_list shows who holds what";
    (Severity::Warning, meaning, fix.into())
}

/// amdgpu's `Unable to set WC memtype for the aperture base`.
pub fn aperture() -> Answer {
    let meaning = "the driver asked the kernel to keep the memory of its card write-combining and \
                   was refused, so the card stays unused. An address that is none (a card that \
                   does not answer, a BAR that was not assigned) gives -22, another type on part of \
                   it -16; MTRRs have no part in it";
    let fix = "look for \"conflicting memory types\" before it and \"failed -22\" or \"failed -16\" after \
               it, and at the card's BARs (`lspci -v`, \"can't assign\")";
    (Severity::Warning, meaning.into(), fix.into())
}

/// NVIDIA's driver about PAT, MTRRs and types.
pub fn nvidia(first: &Hint) -> Answer {
    let text = &first.text;
    let type_refused = text.contains(" type ");
    let (severity, meaning) = if text.contains("already") {
        (
            Severity::Info,
            "this old driver sets up the PAT itself, found that the kernel had done so, and uses \
             MTRRs instead: the driver's age, nothing is wrong with the PAT",
        )
    } else if type_refused {
        (
            Severity::Warning,
            "NVIDIA's driver was asked for a mapping of a type that it does not give for that kind \
             of memory. For write-combining it looks for a kernel with PAT whose slot 1 is \
             write-combining, as Linux sets it: a kernel without PAT (`nopat`, a TDX or SEV guest, a \
             hypervisor) has none",
        )
    } else {
        (
            Severity::Warning,
            "NVIDIA's driver found no PAT it can use (it wants write-combining in slot 1, as Linux \
             sets it) and depends on MTRRs: without a range of its own, video memory stays uncached \
             and slow",
        )
    };
    let fix = match severity {
        Severity::Info => "update the driver",
        _ => {
            "see `dmesg | grep PAT`: \"x86/PAT: Configuration [0-7]: WB WC\" is what it wants; take \
             `nopat` off the command line, in a guest update its kernel"
        }
    };
    (severity, meaning.into(), fix.into())
}
