//! What mail programs, other tools and the kernel itself do to a dump. Each was met in a public
//! bug report.

use super::{json, run, type_at};

/// A table as the kernel prints it on a 36-bit machine.
const TABLE: &str = "\
MTRR default type: uncachable
MTRR variable ranges enabled:
  0 base 000000000 mask C00000000 write-back
  1 base 0E0000000 mask FE0000000 uncachable
  2 disabled
";

#[test]
fn lines_broken_by_a_mail_program() {
    let text = "  reg00: base=0x00000000 (   0MB), size= 128MB: write-back, \ncount=1\n\
                reg01: base=0xe0000000 (3584MB), size= 128MB: \nwrite-combining, count=2\n\
                > reg02: base=0xdc000000 (3520MB), size=  64MB:\n> write-combining, count=4\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(object["registers"]["used"], 3);
    assert_eq!(type_at(&object, 0xe000_0000), "WC");
    assert_eq!(type_at(&object, 0xdc00_0000), "WC");
}

#[test]
fn a_broken_line_that_does_not_go_on() {
    let text = "reg00: base=0x00000000 (   0MB), size= 128MB: write-back, count=1\n\
                reg01: base=0xe0000000 (3584MB), size= 128MB:\n\
                reg02: base=0xdc000000 (3520MB), size=  64MB: write-combining, count=4\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(object["registers"]["used"], 2);
    assert_eq!(object["findings"][0]["kind"], "unreadable-line");
    assert!(run(&[], text.as_bytes()).1.contains("line 2 of the input"));
}

#[test]
fn quoted_printable() {
    let text = "BIOS-e820: [mem 0x0000000000100000-0x000000001ffdffff] usab=\nle\n\
                e820: last_pfn =3D 0x1ffe0 max_arch_pfn =3D 0x400000000\n\
                x86/PAT: Configuration [0-7]: WB  WC  UC- UC  WB  WP  UC- WT=\n =20\n";
    let object = json(&[], format!("{TABLE}{text}").as_bytes());
    assert_eq!(object["pat"][7], "WT");
    assert_eq!(
        object["findings"].as_array().map(Vec::len),
        Some(0),
        "{object}"
    );
}

#[test]
fn the_kernels_own_clean_up_is_not_a_table() {
    // Cut in the middle, as posted: the fuller table above must stand.
    let text = "original variable MTRRs\nreg 0, base: 0GB, range: 16GB, type WB\n\
                reg 1, base: 3584MB, ra";
    let object = json(&[], format!("{TABLE}{text}").as_bytes());
    assert_eq!(object["registers"]["used"], 2);
    // No processor has three: the list may have lost its end.
    assert!(object["registers"]["total"].is_null());
    assert_eq!(type_at(&object, 0xe000_0000), "UC");
    assert_eq!(object["phys_bits_from"], "masks");
}

#[test]
fn the_clean_up_alone_is_better_than_nothing() {
    let text = "reg 0, base: 0GB, range: 2GB, type WB\nreg 1, base: 1984MB, range: 64MB, type UC\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(type_at(&object, 0x7bff_ffff), "WB");
    assert_eq!(type_at(&object, 0x7c00_0000), "UC");
}

#[test]
fn masks_made_for_32_bits_on_a_wider_machine() {
    let text = "MTRR default type: uncachable\nMTRR variable ranges enabled:\n  \
                0 base 000000000 mask 0C0000000 write-back\n  1 disabled\n\
                mtrr: your BIOS has set up an incorrect mask, fixing it up.\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(object["phys_bits"], 36);
    // The mask leaves bits 35:32 out: every 4 GiB it matches again.
    assert_eq!(type_at(&object, 0x1_0000_0000), "WB");
    assert_eq!(object["findings"][0]["kind"], "mask-width");
}

#[test]
fn the_kernels_list_of_vendors_is_no_vendor() {
    let text = format!(
        "KERNEL supported cpus:\n  Intel GenuineIntel\n  AMD AuthenticAMD\n{TABLE}smpboot: CPU0: \
         Intel(R) Xeon(R)\n"
    );
    let (_, out) = run(&["--type", "0xe0000000", "--pat", "WC"], text.as_bytes());
    assert!(out.contains("(Intel)") && !out.contains("AMD"), "{out}");
}

#[test]
fn the_firmware_test_suite_and_a_forum_list() {
    let fwts = "Reg 0: 0x0000000000000000 - 0x0000000080000000 ( 2048 MB) Write-Back \n\
                Reg 1: 0x000000007f000000 - 0x0000000080000000 (   16 MB) Uncached \n";
    let list = "variable range 0: 000000000-07FFFFFFF WB\nvariable range 1: 07F000000-07FFFFFFF UC\n\
                variable range 2: disabled\n";
    for text in [fwts, list] {
        let object = json(&[], text.as_bytes());
        assert_eq!(type_at(&object, 0x7eff_ffff), "WB", "{text}");
        assert_eq!(type_at(&object, 0x7f00_0000), "UC", "{text}");
    }
}

#[test]
fn a_firmware_log_cut_in_its_last_line_says_so() {
    let text = "CPU physical address size: 39 bits\nMTRR: UC selected as default type.\n\
                MTRR: 0 base 0x0000000000000000 mask 0x0000007f80000000 type 6\nMTRR: 5 base";
    let (code, out) = run(&[], text.as_bytes());
    assert_eq!(code, 1);
    assert!(out.contains("line 4 of the input: cut short"), "{out}");
}

#[test]
fn complaints_of_a_kernel_alone() {
    let text = "[    0.240311] mtrr: your CPUs had inconsistent fixed MTRR settings\n\
                [    0.240313] mtrr: your CPUs had inconsistent variable MTRR settings\n\
                [    0.240316] mtrr: probably your BIOS does not setup all CPUs.\n";
    let (code, out) = run(&[], text.as_bytes());
    assert_eq!(code, 1);
    assert!(out.contains("inconsistent fixed MTRR"), "{out}");
    let object = json(&[], text.as_bytes());
    assert_eq!(object["map"].to_string(), "[]");
    assert_eq!(object["findings"][0]["severity"], "warning");
}

#[test]
fn the_kernel_example() {
    let text = "\
        round 1 cpu 0 apic 0 | before E=1 FE=1 default=6 ranges=2 pat=0407050600070106 | path=in_sync \
        changed=- ticks=1 | after E=1 FE=1 default=6 ranges=2 pat=0407050600070106 differs=0\n\
        round 1 cpu 1 apic 1 | before E=0 FE=0 default=0 ranges=0 pat=0007040600070406 | path=window \
        changed=all ticks=1 | after E=1 FE=1 default=6 ranges=2 pat=0007040600070406 differs=1\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(object["default"], "WB");
    assert_eq!(object["cpus"][0]["differs"].to_string(), "[]");
    assert_eq!(object["cpus"][1]["differs"].to_string(), "[\"pat\"]");
    assert_eq!(object["map"].to_string(), "[]");
    assert!(run(&[], text.as_bytes()).1.contains("lists no ranges"));
}

#[test]
fn what_the_kernel_says_in_a_line_that_was_broken() {
    let flat = |text: &str| {
        let (_, text) = run(&["--color=never"], text.as_bytes());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let whole = [
        (
            "WARNING: BIOS bug: CPU MTRRs don't cover all of memory, losing 69MB of RAM.",
            "69 MiB of RAM left out",
        ),
        (
            "mtrr: your CPUs had inconsistent fixed MTRR settings",
            "firmware programmed CPUs differently",
        ),
        (
            "mtrr: type mismatch for e0000000,10000000 old: write-back new: write-combining",
            "a driver wanted write-combining for 0xe0000000-0xefffffff",
        ),
        (
            "x86/PAT: memtype_reserve failed [mem 0xe0000000-0xefffffff], track uncached-minus, req uncached-minus",
            "0xe0000000-0xefffffff (256 MiB) is already mapped",
        ),
        (
            "[drm] MTRR allocation failed.  Graphics performance may suffer.",
            "got no write-combining range",
        ),
    ];
    for prefix in [
        "[    0.069178] ",
        "Jan 21 19:29:00 quad kernel: [    0.069178] ",
    ] {
        for (line, part) in whole {
            // Broken at each space that leaves something of either half.
            for (at, _) in line
                .match_indices(' ')
                .filter(|(at, _)| (20..line.len() - 4).contains(at))
            {
                let text = format!(
                    "{prefix}{}\n{}\n{prefix}bio: create slab\n",
                    &line[..at],
                    &line[at + 1..]
                );
                let said = flat(&text);
                assert!(said.contains(part), "{text}{said}");
                assert_eq!(
                    said.matches("the kernel says").count().max(1),
                    1,
                    "{text}{said}"
                );
            }
        }
    }
    // A line that is whole is not the beginning of the next.
    let said = flat(
        "[    1.0] [drm] MTRR allocation failed.  Graphics performance may suffer.\nis losing 69MB of RAM bad?\n",
    );
    assert!(!said.contains("69 MiB"), "{said}");
    let pat = "[    0.000690] x86/PAT: Configuration [0-7]: WB  WC  UC- UC  WB  WP \nUC- WT\n";
    let said = flat(pat);
    assert!(
        said.contains("slots 0-7: WB WC UC- UC WB WP UC- WT"),
        "{said}"
    );
    assert!(!said.contains("not eight"), "{said}");
    let list = "reg00: base=0x00000000 (   0MB), size=2048MB: write-back, count=1\n";
    let said = flat(&format!(
        "{list}[    0.000690] x86/PAT: Configuration [0-7]: WB  WC  UC- UC\n[    1.0] something\n"
    ));
    assert!(said.contains("not eight PAT types"), "{said}");
}
