//! What Linux says of the types pages are mapped with, and formats of other systems.

use super::{check_map, json, post, run};

/// The words of the report, whatever its line breaks.
fn says(input: &[u8]) -> String {
    let (_, text) = run(&["--color=never"], input);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn two_lists_of_mapped_ranges_are_compared() {
    let name = "202-pat-memtype-list-before-after";
    let object = json(&[], &post(name));
    let first = &object["findings"][0];
    assert_eq!(first["kind"], "mapped-differently");
    assert_eq!(first["start"], "0x2000000000");
    assert_eq!(first["end"], "0x20ffffffff");
    let text = says(&post(name));
    assert!(
        text.contains(
            "0x2000000000-0x20ffffffff (4 GiB) is mapped uncached-minus in the first list and \
             write-combining in the second"
        ),
        "{text}"
    );
    let told = text.matches("in the first list").count();
    assert_eq!(
        told, 2,
        "the verdict and one finding; the order of equal ranges is no difference: {text}"
    );
}

#[test]
fn the_newer_form_of_the_list_says_the_same() {
    let text = String::from_utf8(post("202-pat-memtype-list-before-after")).expect("text");
    let newer: String = text
        .lines()
        .map(|line| match line.split_once(" @ ") {
            Some((name, range)) => {
                let (start, end) = range.split_once('-').expect("a range");
                let wide = |text: &str| format!("{:0>16}", text.trim_start_matches("0x"));
                format!("PAT: [mem 0x{}-0x{}] {name}\n", wide(start), wide(end))
            }
            None => format!("{line}\n"),
        })
        .collect();
    assert!(newer.contains("PAT: [mem 0x0000002000000000-0x0000002100000000] write-combining"));
    assert_eq!(json(&[], newer.as_bytes()), json(&[], text.as_bytes()));
}

#[test]
fn lists_are_compared_from_last_to_first_too() {
    let text = String::from_utf8(post("202-pat-memtype-list-before-after")).expect("text");
    let reversed: Vec<&str> = text.lines().rev().collect();
    let text = says(reversed.join("\n").as_bytes());
    assert!(
        text.contains("(4 GiB) is mapped write-combining in the first list"),
        "{text}"
    );
}

#[test]
fn one_list_differs_from_nothing() {
    let text = String::from_utf8(post("202-pat-memtype-list-before-after")).expect("text");
    let (first, _) = text.split_once("And with").expect("two lists");
    let (code, out) = run(&[], first.as_bytes());
    assert_eq!(code, 0, "{out}");
    assert!(!out.contains("second list"), "{out}");
    assert!(out.contains("35 mapped ranges"), "{out}");
}

#[test]
fn a_refused_mapping_is_explained() {
    let name = "215-nvidia-fs-pat-conflict";
    let text = says(&post(name));
    for part in [
        "0x387fe0000000-0x387fefffffff (256 MiB) is already mapped write-combining",
        "uncached-minus was asked for",
        "has to ask for write-combining, or wait until the first is gone",
        "the MTRRs have no part in it",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(
        text.matches("was refused").count(),
        2,
        "the verdict and one finding, though two lines tell of it: {text}"
    );
    // The form before 5.6.
    let old = "Xorg:812 conflicting memory types e0000000-f0000000 uncached-minus<->write-combining\n\
               reserve_memtype failed 0xe0000000-0xf0000000, track uncached-minus, req uncached-minus\n";
    let text = says(old.as_bytes());
    assert!(text.contains("Xorg was refused"), "{text}");
    assert!(text.contains("0xe0000000-0xefffffff (256 MiB) is already mapped write-combining"));
    let pfn = "x86/PAT: Xorg:812 map pfn expected mapping type uncached-minus for \
               [mem 0xe0000000-0xefffffff], got write-combining\n";
    let text = says(pfn.as_bytes());
    assert!(text.contains("0xe0000000-0xefffffff (256 MiB) is already mapped write-combining"));
}

#[test]
fn the_windows_debugger() {
    let object = json(&[], &post("233-windbg-mtrr"));
    assert_eq!(object["phys_bits"], 42);
    assert_eq!(object["registers"]["total"], 8);
    assert_eq!(object["fixed_enabled"], true);
    assert_eq!(object["default"], "UC");
    check_map(
        &object,
        &[
            (0, "WB"),
            (0xa_0000, "UC"),
            (0xc_0000, "WP"),
            (0xc_c000, "UC"),
            (0xf_0000, "WP"),
            (0x10_0000, "WB"),
            (0xc000_0000, "UC"),
            (0x1_0000_0000, "WB"),
            (0x20_0000_0000, "UC"),
        ],
    );
}

#[test]
fn linuxbios_numbers_its_fixed_ranges() {
    let object = json(&[], &post("226-linuxbios-winfast6300"));
    assert_eq!(
        (&object["enabled"], &object["fixed_enabled"]),
        (&true.into(), &true.into())
    );
    check_map(
        &object,
        &[
            (0, "WB"),
            (0xa_0000, "UC"),
            (0x10_0000, "WB"),
            (0x780_0000, "UC"),
        ],
    );
    assert_eq!(object["registers"]["min_strict"]["UC"], 2);
}

#[test]
fn the_map_line_of_linux_6_5_counts_the_registers() {
    let (_, text) = run(&[], &post("212-framework-xen-dom0-map-only"));
    assert!(text.contains("WB WT UC- UC WC WP UC UC"), "{text}");
    let table = "MTRR map: 6 entries (3 fixed + 3 variable; max 23), built from 10 variable MTRRs\n\
                 reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back\n";
    let object = json(&[], table.as_bytes());
    assert_eq!(object["registers"]["total"], 10);
    assert_eq!(object["fixed_enabled"], true);
    // One piece more where AMD's TOP_MEM2 is one of them.
    let table = table
        .replace("max 23", "max 24")
        .replace("from 10", "from 11");
    assert_eq!(json(&[], table.as_bytes())["registers"]["total"], 10);
}

#[test]
fn memory_of_the_kernel_stays_write_back() {
    let one = "[   56.4] x86/PAT: app:2512 map pfn RAM range req uncached-minus for \
               [mem 0x481488000-0x481488fff], got write-back\n";
    // As a mail program breaks it, in either place.
    let broken = "[   45.8] x86/PAT: NDK MediaCodec_:3753 map pfn RAM range req\nwrite-combining for \
                  [mem 0x1e7a80000-0x1e7a87fff], got write-back\n[   45.9] x86/PAT: .decoder:4088 \
                  map pfn RAM range\nreq write-combining for [mem 0x1e7a70000-0x1e7a70fff], got \
                  write-back\n";
    let text = says(one.as_bytes());
    assert!(
        text.contains("app asked for uncached-minus of 0x481488000-0x481488fff (4 KiB)"),
        "{text}"
    );
    let text = says(broken.as_bytes());
    let part =
        "NDK MediaCodec_ asked for write-combining of 0x1e7a80000-0x1e7a87fff (32 KiB) and 1 more";
    assert!(text.contains(part), "{text}");
    assert!(
        text.contains("write-back is what the program got"),
        "{text}"
    );
}

#[test]
fn a_conflict_without_its_second_line_claims_no_more_than_it_says() {
    let line = "x86/PAT: pcimem:922560 conflicting memory types ca000000-ca800000 \
                uncached-minus<->write-combining\n";
    let text = says(line.as_bytes());
    assert!(
        text.contains("0xca000000-0xca7fffff (8 MiB) is already mapped write-combining"),
        "{text}"
    );
    assert!(
        text.contains("uncached-minus was asked for or is there too"),
        "{text}"
    );
}

#[test]
fn xen_prints_top_mem2_with_twelve_digits() {
    let table = "(XEN) MTRR default type: uncachable\n(XEN) MTRR variable ranges enabled:\n\
                 (XEN)   0 base 000000000000 mask ffff80000000 write-back\n(XEN)   1 disabled\n";
    for (line, want) in [("000230000000 (WB)", "WB"), ("000230000000", "UC")] {
        let text = format!("{table}(XEN) TOM2: {line}\n(XEN) more\n");
        let object = json(&[], text.as_bytes());
        assert_eq!(super::type_at(&object, 0x1_0000_0000), want, "{line}");
    }
}
