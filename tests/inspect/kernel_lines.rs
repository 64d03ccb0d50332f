//! What kernels say about memory types, and the answer to it.

use serde_json::Value;

use super::{json, post, run};

/// The text report with single spaces.
fn flat(text: &[u8]) -> String {
    let (_, text) = run(&["--color=never"], text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn says(text: &[u8], parts: &[&str]) {
    let flat = flat(text);
    for part in parts {
        assert!(flat.contains(part), "\"{part}\" is not in:\n{flat}");
    }
}

/// The findings of one kind.
fn of_kind(object: &Value, kind: &str) -> Vec<String> {
    let findings = object["findings"].as_array().expect("a list");
    let of = findings.iter().filter(|finding| finding["kind"] == kind);
    of.map(|finding| format!("{} {}", finding["text"], finding["fix"]))
        .collect()
}

#[test]
fn bad_gran_size_lines_are_no_fault() {
    let text = post("207-nehalem-48gb-html-mail");
    says(
        &text,
        &[
            "line 9, the kernel says: total RAM covered: 49144M (and",
            "the firmware's ranges stay in force (they cover 49144M of RAM) and nothing is lost",
            "*BAD* ones would have made memory cacheable that is not RAM",
            "No fault of the memory or the firmware",
            "no MTRR in the input",
            "paste /proc/mtrr",
        ],
    );
    assert!(!flat(&text).contains("span"), "no tags in the quotation");
    assert!(!flat(&text).contains("nothing wrong"));
    assert_eq!(
        of_kind(&json(&[], &text), "kernel-message").len(),
        1,
        "one cause, one finding"
    );
}

#[test]
fn a_new_kernel_counts_ranges_and_does_not_show_them() {
    let text = post("212-framework-xen-dom0-map-only");
    says(
        &text,
        &[
            "Xen PV",
            "8 variable ranges exist",
            "MTRRs set to read-only",
            "only the hypervisor or the host can",
            "boot with `mtrr=debug` and give the log again, or paste /proc/mtrr",
            "WB WT UC- UC WC WP UC UC",
        ],
    );
    assert!(!flat(&text).contains("nothing wrong"));
    assert_eq!(json(&[], &text)["complete"], false);
}

#[test]
fn what_grep_left_of_a_log_is_no_false_alarm() {
    let text = post("229-dmesg-grep-mtrr-only");
    says(
        &text,
        &[
            "the variable ranges are not in the input",
            "the lines of the list have no \"MTRR\" in them for grep to find",
            "a driver wanted write-combining for 0xe0000000-0xefffffff, a write-back range already \
             covers it",
            "this is harmless",
            "--want 0xe0000000+0x10000000=WC",
        ],
    );
    let text = flat(&text);
    for wrong in ["no memory", "error:", "64 GiB", "free of"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
    // "MTRR allocation failed" follows from the mismatch.
    assert!(!text.contains("Graphics performance"), "{text}");
}

#[test]
fn lost_megabytes_without_their_registers() {
    let text = post("227-syslog-grep-losing-69mb");
    says(
        &text,
        &[
            "losing 69MB of RAM: no range makes that much RAM write-back",
            "the rest of the RAM is covered; which it is, the registers would tell",
            "the variable ranges are not in the input",
            "paste /proc/mtrr",
        ],
    );
    let text = flat(&text);
    for wrong in ["no memory", "error:", "used, ", "free of"] {
        assert!(!text.contains(wrong), "{wrong}: {text}");
    }
}

#[test]
fn a_kernel_that_lost_the_ram_itself_is_blamed_itself() {
    let text = post("208-t3600-kernel-cleanup-loses-ram");
    says(
        &text,
        &[
            "the kernel's doing, not the firmware's",
            "boot with disable_mtrr_cleanup",
        ],
    );
    assert!(!flat(&text).contains("update the firmware"));
}

/// A line of each kernel, and words of the answer.
const LINES: &[(&str, &str)] = &[
    (
        "WARNING: strange, CPU MTRRs all blank?",
        "no range is write-back",
    ),
    (
        "CPU MTRRs all blank - virtualized system.",
        "the hypervisor decides",
    ),
    (
        "mtrr: your CPUs had inconsistent variable MTRR settings",
        "firmware programmed CPUs differently",
    ),
    (
        "KiInitializeMTRR: MTRR_MSR_DEFAULT is not consistent between processors.",
        "firmware programmed CPUs differently",
    ),
    (
        "mtrr: probably your BIOS does not setup all CPUs.",
        "firmware programmed CPUs differently",
    ),
    (
        "mtrr: your BIOS has set up an incorrect mask, fixing it up.",
        "fewer address bits",
    ),
    (
        "mtrr: your BIOS has configured an incorrect mask, fixing it.",
        "fewer address bits",
    ),
    (
        "MTRR: CPU 3: Writing MSR 200 to 6:0 failed",
        "refused the value",
    ),
    ("MTRRs disabled by BIOS", "all memory is then uncachable"),
    ("MTRR: Disabled", "all memory is then uncachable"),
    (
        "MTRRs disabled (not available)",
        "all memory is then uncachable",
    ),
    (
        "mtrr: CPU supports MTRRs but not enabled by BIOS",
        "all memory is then uncachable",
    ),
    (
        "CPU supports MTRRs but not enabled",
        "all memory is then uncachable",
    ),
    (
        "[Firmware Warn]: MTRR: CPU 0: SYSCFG[MtrrFixDramModEn] not cleared by BIOS, clearing this bit",
        "bit 19",
    ),
    (
        "Found optimal setting for mtrr clean up",
        "its arrangement, not the firmware's",
    ),
    (
        "mtrr_cleanup: can not find optimal value",
        "nothing is lost",
    ),
    (
        "please specify mtrr_gran_size/mtrr_chunk_size",
        "nothing is lost",
    ),
    (
        "mtrr: 0xd0000000,0x10000000 overlaps existing 0xd0000000,0x8000000",
        "0xd0000000-0xdfffffff",
    ),
    ("mtrr: no more MTRRs available", "all are in use"),
    (
        "mtrr: base or size exceeds the MTRR width",
        "within the address width",
    ),
    (
        "mtrr: base(0x430000000) is not aligned on a size(0x20000000) boundary",
        "0x430000000+0x10000000, 0x440000000+0x10000000",
    ),
    (
        "mtrr: size and base must be multiples of 4 kiB",
        "power of two",
    ),
    (
        "mtrr: your processor doesn't support write-combining",
        "MTRRCAP",
    ),
    ("mtrr: no MTRR for fd000000,800000 found", "not in use"),
    ("mtrr: reg: 3 has count=0", "not in use"),
    (
        "[drm] MTRR allocation failed.  Graphics performance may suffer.",
        "this is harmless",
    ),
    (
        "Failed to add WC MTRR for [00000000f0000000-00000000ffffffff]; performance may suffer.",
        "this kernel runs without PAT",
    ),
    (
        "(WW) RADEON(0): Failed to set up write-combining range (0xe8000000,0x8000000)",
        "this is harmless",
    ),
    (
        "i2o: could not enable write combining MTRR",
        "this is harmless",
    ),
    (
        "ioremap error for 0x78e31000-0x78e32000, requested 0x2, got 0x0",
        "uncached-minus asked for, write-back held",
    ),
    (
        "x86/PAT: reserve_ram_pages_type failed [mem 0x1000-0x1fff], track 0x2, req 0x1",
        "already mapped",
    ),
    ("ioremap reserve_memtype failed -22", "already mapped"),
    (
        "pmd_set_huge: Cannot satisfy [mem 0xf8000000-0xf8200000] with a huge-page mapping due to MTRR override.",
        "a little slower",
    ),
    (
        "x86/PAT: MTRRs disabled, skipping PAT initialization too.",
        "does not program the PAT",
    ),
    ("x86/PAT: PAT support disabled via boot option.", "nopat"),
    (
        "x86/PAT: PAT support disabled because CONFIG_X86_PAT is disabled in the kernel.",
        "X86_PAT",
    ),
    ("x86/PAT: PAT support disabled by the firmware.", "reads 0"),
    (
        "mtrr: Pentium Pro MTRR support, 10 var ranges, 88 fixed ranges",
        "the kernel uses the MTRRs",
    ),
    ("MTRRs set to read-only", "cannot change MTRRs"),
];

#[test]
fn every_line_has_an_answer() {
    for (line, part) in LINES {
        for prefix in [
            "",
            "[    0.123456] ",
            "Jan  1 00:00:00 box kernel: [    0.1] ",
            "(XEN) ",
        ] {
            let text = format!("{prefix}{line}\n");
            let flat = flat(text.as_bytes());
            assert!(flat.contains(part), "{line}: {flat}");
            assert!(flat.contains("the kernel says: "), "{flat}");
            assert!(!flat.contains("nothing wrong"), "{flat}");
        }
    }
}

#[test]
fn a_line_alone_asks_for_the_registers() {
    for (line, _) in LINES {
        let object = json(&[], line.as_bytes());
        assert_eq!(of_kind(&object, "incomplete").len(), 1, "{line}");
        assert!(
            object["map"].as_array().expect("a list").is_empty(),
            "{line}"
        );
        assert!(object["registers"]["total"].is_null(), "{line}");
    }
}

#[test]
fn the_answer_to_a_line_is_the_verdict() {
    let text = "mtrr: type mismatch for fd000000,800000 old: write-back new: write-combining\n\
                mtrr: no MTRR for fd000000,800000 found\n";
    let (_, out) = run(&["--color=never"], text.as_bytes());
    let (verdict, _) = out.split_once("\n\n").expect("a verdict");
    let verdict = verdict.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        verdict.starts_with("Not known: no MTRR in the input"),
        "{verdict}"
    );
    assert!(verdict.contains("this is harmless"), "{verdict}");
    // One cause, one finding.
    assert_eq!(
        of_kind(&json(&[], text.as_bytes()), "kernel-message").len(),
        1
    );
    let text = "x86/PAT: CPU 0/KVM:1 conflicting memory types fe00000000-ff00000000 \
                write-combining<->uncached-minus\nioremap memtype_reserve failed -16\n";
    assert!(of_kind(&json(&[], text.as_bytes()), "kernel-message").is_empty());
}
