//! What the BSDs say of ranges that could not be set, and what that means.

use super::dump::Hint;
use super::findings::Severity;
use super::kernel_says::Answer;

/// FreeBSD's `Failed to add WC MTRR for [0xe0000000-0xefffffff]: -22; performance may suffer`.
pub fn without(first: &Hint) -> Answer {
    // FreeBSD: "]: -22;", DragonFly: "error (22)".
    let text = &first.text;
    let number = text
        .split("]: -")
        .nth(1)
        .or_else(|| text.split("error (").nth(1));
    let digits = number.and_then(|rest| rest.split([';', ')']).next());
    let why = match digits {
        Some("22") => "a range of another type already covers it",
        Some("28") => "all ranges are in use",
        Some("45" | "19") => "the kernel has no MTRRs to give",
        _ => "the kernel refused it",
    };
    let meaning = format!(
        "a graphics driver on FreeBSD or its kin got no write-combining range, {why}; the driver maps the \
         memory write-combining through page tables (PAT) as well, and this is harmless on amd64: \
         newer releases no longer ask there"
    );
    let fix = "nothing; if graphics is slow, `memcontrol list` shows which range is in the way";
    (Severity::Info, meaning, fix.into())
}

/// `memcontrol: can't set range: Invalid argument`; OpenBSD's memconfig says the same.
pub fn tool(first: &Hint) -> Answer {
    let error = first.text.rsplit(": ").next().unwrap_or("");
    let (why, fix) = match error.trim() {
        "Invalid argument" => (
            "its size is no power of two, its base no multiple of the size, or it overlaps a range \
             whose type does not go with the new one (uncacheable over anything does, write-back \
             with write-through)",
            "list the ranges, clear the one in the way and set its parts again with the new one: see \
             --want for what has to be set",
        ),
        "No space left on device" => (
            "all variable ranges are in use",
            "list the ranges, and clear one that is not needed: this program says which, given the \
             list",
        ),
        "Operation not supported" | "Device not configured" | "Inappropriate ioctl for device" => (
            "the kernel has no MTRRs to show or set: the processor has none, they are off, or a \
             hypervisor keeps them",
            "in a virtual machine: nothing, the hypervisor decides; else look for \"MTRR\" in `dmesg`",
        ),
        "Permission denied" | "Operation not permitted" => (
            "it takes root, and a range that firmware fixed or made of a type the kernel does not \
             know is left alone",
            "run it as root; `force` among the attributes sets a range the kernel does not know",
        ),
        _ => (
            "the kernel refused it",
            "list the ranges to see what is there",
        ),
    };
    let meaning = format!("the tool could not do what it was asked: {why}");
    (Severity::Warning, meaning, fix.into())
}
