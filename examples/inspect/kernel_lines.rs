//! What kernels say about memory types, by text, and what each line is about: Linux since 2.4, Xen,
//! FreeBSD, OpenBSD, NetBSD, Windows. What drivers say comes after that.

use super::driver_lines;
use super::subject::Subject;

/// Texts in lines, most telling first where a line has several.
const KNOWN: &[(&str, Subject)] = &[
    ("CPU MTRRs don't cover", Subject::Trimmed),
    ("update e820 for mtrr", Subject::Trimmed),
    ("your CPUs had inconsistent", Subject::Inconsistent),
    // Windows, to its debugger.
    (
        "is not consistent between processors",
        Subject::Inconsistent,
    ),
    ("your BIOS does not setup all CPUs", Subject::Inconsistent),
    ("mtrr: corrected configuration", Subject::Inconsistent),
    (
        "your BIOS has set up an incorrect mask",
        Subject::IncorrectMask,
    ),
    (
        "your BIOS has configured an incorrect mask",
        Subject::IncorrectMask,
    ),
    ("MTRR: CPU %: Writing MSR", Subject::WriteRefused),
    ("MTRRs disabled, skipping PAT", Subject::NoPat),
    ("MTRRs disabled due to allocation", Subject::MapLost),
    ("MTRRs disabled", Subject::Off),
    ("MTRR: Disabled", Subject::Off),
    ("CPU supports MTRRs but not enabled", Subject::Off),
    ("no MTRRs available", Subject::Off),
    ("CPU MTRRs all blank", Subject::AllBlank),
    ("MTRRs set to read-only", Subject::ReadOnly),
    ("SYSCFG[MtrrFixDramModEn] not cleared", Subject::DramModify),
    (
        "Found optimal setting for mtrr clean up",
        Subject::CleanedUp,
    ),
    (
        "mtrr_cleanup: can not find optimal value",
        Subject::CleanUpFailed,
    ),
    ("can not find optimal value", Subject::CleanUpFailed),
    ("please specify mtrr_gran_size", Subject::CleanUpFailed),
    (
        "invalid mtrr_gran_size or mtrr_chunk_size",
        Subject::CleanUpFailed,
    ),
    ("gran_size: %chunk_size: %num_reg: ", Subject::CleanUpFailed),
    ("mtrr_cleanup: ", Subject::CleanUpFailed),
    ("total RAM covered: ", Subject::CleanUpFailed),
    ("mtrr: type mismatch for", Subject::Refused),
    ("mtrr: %overlaps existing", Subject::Refused),
    ("no more MTRRs available", Subject::NoneFree),
    (
        "base or size exceeds the MTRR width",
        Subject::NotExpressible,
    ),
    ("mtrr: %is not aligned on a size", Subject::NotExpressible),
    ("mtrr: %is not 4 MiB aligned", Subject::NotExpressible),
    (
        "size and base must be multiples of 4",
        Subject::NotExpressible,
    ),
    ("mtrr: zero sized request", Subject::NotExpressible),
    ("mtrr: type: %invalid", Subject::NotExpressible),
    ("writable mtrr between 0x70000000", Subject::NotExpressible),
    (
        "your processor doesn't support write-combining",
        Subject::NoWriteCombining,
    ),
    ("mtrr: only write-combining", Subject::NoWriteCombining),
    ("mtrr: no MTRR for ", Subject::NotThere),
    ("mtrr: reg: %has count=0", Subject::NotThere),
    ("mtrr: MTRR %not used", Subject::NotThere),
    ("mtrr: register: %too big", Subject::NotThere),
    ("conflicting memory types", Subject::Conflict),
    ("memtype_reserve failed", Subject::Conflict),
    ("reserve_memtype failed", Subject::Conflict),
    ("reserve_ram_pages_type failed", Subject::Conflict),
    ("map pfn expected mapping type", Subject::Conflict),
    ("map pfn RAM range req", Subject::Conflict),
    ("ioremap_change_attr failed", Subject::Conflict),
    ("freeing invalid memtype", Subject::Conflict),
    ("ioremap error for 0x%requested", Subject::Conflict),
    (
        "Cannot satisfy %with a huge-page mapping due to MTRR",
        Subject::HugePage,
    ),
    ("with a huge-page mapping due to MTRR", Subject::HugePage),
    // ivtv's and others, before what the kernel says.
    ("needs PAT disabled, boot with nopat", Subject::NeedsNoPat),
    ("PAT support disabled by the firmware", Subject::PatZero),
    ("PAT MSR is 0, disabled", Subject::PatZero),
    ("PAT support disabled", Subject::NoPat),
    ("PAT disabled", Subject::NoPat),
    (
        "PAT enabled, but not supported by secondary",
        Subject::PatDiffers,
    ),
    ("MTRR map: %entries", Subject::MapCount),
    // Broken by a mail program.
    ("from %variable MTRRs", Subject::MapCount),
    // Xen.
    (
        "Conflict occurs for a given guest l1e flags",
        Subject::HostDecides,
    ),
    (
        "Attempt to change cache attributes of Xen heap",
        Subject::GuestRefused,
    ),
    ("invalid MTRR def type:", Subject::GuestRefused),
    ("mtrr: could not allocate", Subject::MapLost),
    ("mtrr: ARR3 cannot be changed", Subject::NotThere),
    ("K6-family MTRR support", Subject::OldMtrr),
    // NetBSD.
    ("FIXME: more than %MTRRs", Subject::TooMany),
    ("CPUM: Mapped %variable-range MTRRs", Subject::VirtualBox),
    ("Pentium Pro MTRR support", Subject::Found),
];

/// What `line` is about, and where the text begins that says so.
pub fn subject(line: &str) -> Option<(usize, Subject)> {
    let known = KNOWN.iter().chain(driver_lines::KNOWN);
    let mut found = known.filter_map(|(text, subject)| {
        let mut parts = text.split('%');
        let first = parts.next()?;
        let at = line.find(first)?;
        let mut rest = line.get(at + first.len()..)?;
        for part in parts {
            rest = rest.get(rest.find(part)? + part.len()..)?;
        }
        Some((at, *subject))
    });
    found.next()
}

/// The kernel's own words in a line: without prefix, quote marks and tags.
pub fn message(line: &str, at: usize) -> &str {
    let head = line.get(..at).unwrap_or("");
    // Its own prefix belongs to it: "mtrr:", "x86/PAT: Xorg:1234", "[drm]".
    let from = head
        .rfind([']', '>', ';', '"', '|'])
        .map_or(0, |at| at + 1)
        .max(head.rfind("kernel: ").map_or(0, |at| at + 8));
    let tail = line.get(at..).unwrap_or("");
    let to = tail
        .find(['<', '"'])
        .filter(|to| tail.get(*to..*to + 3) != Some("<->"));
    let to = to.map_or(line.len(), |to| at + to);
    let text = line.get(from..to).unwrap_or(line);
    text.trim_matches(|c: char| c.is_whitespace() || "+-".contains(c))
        .trim_end_matches('.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_known_by_their_text() {
        let known = [
            (
                "[    1.2] mtrr: type mismatch for e0000000,10000000 old: a new: b",
                Subject::Refused,
            ),
            (
                "[drm] MTRR allocation failed.  Graphics performance may suffer.",
                Subject::DriverWithout,
            ),
            ("MTRRs disabled by BIOS", Subject::Off),
            (
                "x86/PAT: MTRRs disabled, skipping PAT initialization too.",
                Subject::NoPat,
            ),
            (
                "mtrr: 0xf0000000,0x1000 overlaps existing 0xf0000000,0x2000",
                Subject::Refused,
            ),
            (
                "*BAD*gran_size: 64K chunk_size: 2G num_reg: 8 lose cover RAM: -1G",
                Subject::CleanUpFailed,
            ),
        ];
        for (line, about) in known {
            assert_eq!(
                subject(line).map(|(_, subject)| subject),
                Some(about),
                "{line}"
            );
        }
        assert_eq!(subject("MTRR variable ranges enabled:"), None);
    }

    #[test]
    fn a_message_is_without_what_is_around_it() {
        let line = "<span class=\"q\">&gt;&gt; mtrr_cleanup: can not find optimal value</span>";
        let (at, _) = subject(line).unwrap();
        assert_eq!(
            message(line, at),
            "mtrr_cleanup: can not find optimal value"
        );
        let line = "Jan 1 box kernel: x86/PAT: Xorg:1 conflicting memory types a-b write-combining<->uncached";
        let (at, _) = subject(line).unwrap();
        assert!(
            message(line, at).starts_with("x86/PAT: Xorg:1 conf"),
            "{}",
            message(line, at)
        );
        assert!(message(line, at).ends_with("write-combining<->uncached"));
    }
}
