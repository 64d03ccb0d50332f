//! What drivers and tools say about memory types, and the answer to it.

use super::{post, run};

/// The text report with single spaces.
fn flat(text: &[u8]) -> String {
    let (_, text) = run(&["--color=never"], text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The verdict, with single spaces.
fn verdict(text: &[u8]) -> String {
    let (_, text) = run(&["--color=never"], text);
    let (verdict, _) = text.split_once("\n  fix:").unwrap_or_else(|| {
        text.split_once("\n\n")
            .expect("something after the verdict")
    });
    verdict.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line of each driver, and words of the answer.
const LINES: &[(&str, &str)] = &[
    (
        "Failed to add WC MTRR for [0xe0000000-0xefffffff]: -22; performance may suffer",
        "a range of another type already covers it",
    ),
    (
        "Failed to add WC MTRR for [0xc0000000-0xcfffffff]: -28; performance may suffer",
        "all ranges are in use",
    ),
    (
        "mtrr_add FAILED for offset (00000000e0000000), size (0000000010000000), error (28)",
        "all ranges are in use",
    ),
    (
        "mtrr_add SUCCESS for offset (00000000e0000000), size (0000000010000000)",
        "says it has one",
    ),
    ("failed to set mtrr: Invalid argument", "harmless on amd64"),
    (
        "memcontrol: can't set range: Invalid argument",
        "overlaps a range whose type does not go with",
    ),
    (
        "memconfig: can't set range: No space left on device",
        "all variable ranges are in use",
    ),
    (
        "memcontrol: can't size range descriptor array: Operation not supported",
        "the kernel has no MTRRs to show or set",
    ),
    (
        "memcontrol: couldn't clear range: Operation not permitted",
        "it takes root",
    ),
    (
        "(==) NVIDIA(0): Removed MMIO write-combining range (0xa0000,0x20000)",
        "as it has to",
    ),
    (
        "(WW) R128(0): Failed to remove MMIO write-combining range (0xa0000,0x20000)",
        "may be combined",
    ),
    (
        "OSPCIClearResourceMTRRs: mtrr_add failed (-22)",
        "this is harmless",
    ),
    (
        "mlx4_core 0000:01:00.0: Failed to map blue flame area",
        "short messages take longer",
    ),
    ("x86/PAT: PAT MSR is 0, disabled.", "reads 0"),
    (
        "Successfully added WC MTRR for [0xd0000000-0xdfffffff]: 0; ",
        "says it has one",
    ),
    (
        "[fglrx:firegl_addmap] *ERROR* mtrr allocation failed (-22)",
        "this is harmless",
    ),
    ("set_mtrr: unable to set MTRR", "this is harmless"),
    (
        "ivtv0-fb: warning: mtrr_add() failed to add write combining region 0x01400000-0x01800000",
        "this is harmless",
    ),
    ("matroxfb: MTRR's turned on", "says it has one"),
    ("nvidiafb: MTRR set to ON", "says it has one"),
    (
        "uvesafb: mtrr should be set to 0 or 3; 2 is unsupported",
        "this one counts as none",
    ),
    (
        "ib_qib 0000:03:00.0: infinipath0: mtrr_add()  WC for PIO bufs failed (-22)",
        "wc_pat=1",
    ),
    (
        "infinipath0: No way to align address/size (f8000000/800000), no WC mtrr",
        "wc_pat=1",
    ),
    (
        "ib_ipath 0000:03:00.0: Write combining not enabled (err 22): performance may be poor",
        "ib_ipath) know MTRRs only",
    ),
    (
        "mlx5_core 0000:01:00.0: Write combining is not supported",
        "short messages take longer",
    ),
    (
        "[drm:amdgpu_bo_init [amdgpu]] *ERROR* Unable to set WC memtype for the aperture base",
        "the card stays unused",
    ),
    (
        "[TTM] Failed to set 512 pages to wc!",
        "the kernel could not change it",
    ),
    (
        "ioremap on RAM at 0x0000000060000000 - 0x00000000607e8fff",
        "RAM is mapped write-back already",
    ),
    (
        "NVRM: CPU does not support the PAT, falling back to MTRRs.",
        "depends on MTRRs",
    ),
    (
        "NVRM: PAT configuration unsupported, falling back to MTRRs.",
        "depends on MTRRs",
    ),
    (
        "NVRM: PAT index 1 already configured for Write-Combining!",
        "the driver's age",
    ),
    (
        "NVRM: Aborting, due to PAT already being configured",
        "the driver's age",
    ),
    (
        "NVRM: AGPGART: unable to set MTRR write-combining",
        "this is harmless",
    ),
    (
        "NVRM: VM: cache type 2 not supported for memory type 0!",
        "slot 1 is write-combining",
    ),
    (
        "NVRM: VM: memory type 1 does not allow caching!",
        "slot 1 is write-combining",
    ),
    (
        "NVRM: Xid (PCI:0000:01:00): 31, pid=1234, MMU Fault",
        "not about memory types",
    ),
];

#[test]
fn every_drivers_line_has_an_answer() {
    for (line, part) in LINES {
        for prefix in ["", "[   11.857711] ", "Jan  1 00:00:00 box kernel: "] {
            let text = format!("{prefix}{line}\n");
            let flat = flat(text.as_bytes());
            assert!(flat.contains(part), "{line}: {flat}");
            assert!(flat.contains("the kernel says: "), "{flat}");
            assert!(!flat.contains("nothing wrong"), "{flat}");
        }
    }
}

#[test]
fn a_conflict_without_a_range_is_the_verdict() {
    let said = verdict(&post("cachyos-conflict-no-range"));
    assert!(
        said.starts_with("Odd: that memory is already mapped with another type"),
        "{said}"
    );
    assert!(
        said.contains("(uncached-minus and write-combining met)"),
        "{said}"
    );
    // The MTRRs have no part in it: nobody has to show them.
    assert!(!said.contains("no MTRR in the input"), "{said}");
    let said = flat(&post("cachyos-conflict-no-range"));
    assert!(!said.contains("cut short"), "{said}");
    // Cut after the range, the range is told all the same.
    for end in ["write-comb", "write-combining<-", ""] {
        let line = format!("x86/PAT: Xorg:1 conflicting memory types e0000000-f0000000 {end}\n");
        let said = verdict(line.as_bytes());
        assert!(said.contains("Xorg"), "{end}: {said}");
        assert!(
            said.contains("0xe0000000-0xefffffff (256 MiB) is already mapped"),
            "{end}: {said}"
        );
        let said = verdict(format!("{line}something else\n").as_bytes());
        assert!(
            said.contains("0xe0000000-0xefffffff (256 MiB) is already mapped"),
            "{end}: {said}"
        );
    }
    let said = verdict(b"x86/PAT: Xorg:1 conflicting memory types\n");
    assert!(said.contains("already mapped with another type"), "{said}");
}

#[test]
fn lines_of_nvidias_driver_alone() {
    let said = verdict(&post("nvidia-tdx-lines"));
    assert!(
        said.starts_with("Odd: NVIDIA's driver was asked for a mapping"),
        "{said}"
    );
    let said = flat(&post("nvidia-tdx-lines"));
    assert!(said.contains("a TDX or SEV guest"), "{said}");
    assert!(
        said.contains("x86/PAT: Configuration [0-7]: WB WC"),
        "{said}"
    );
    // Where there is something else to say, its other lines are of no interest.
    let text = b"NVRM: Xid (PCI:0000:01:00): 31\nreg00: base=0x0 (0MB), size=2048MB: write-back, count=1\n";
    assert!(!flat(text).contains("Xid"));
}

#[test]
fn the_kernels_pat_counts_not_the_firmwares() {
    let said = flat(&post("mountall-i7-cleanup"));
    assert!(!said.contains("no write-combining slot"), "{said}");
    let text = String::from_utf8(post("mountall-i7-cleanup")).expect("text");
    let without = text.replace("new 0x7010600070106", "new 0x7040600070406");
    let said = flat(without.as_bytes());
    assert!(
        said.contains("the PAT has no write-combining slot"),
        "{said}"
    );
}
