//! More posts of people with a memory-type problem, found in public issue trackers.

use super::{check_map, json, post, run, type_at};

/// The words of the report, whatever its line breaks.
fn says(name: &str) -> String {
    let (_, text) = run(&["--color=never"], &post(name));
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn ram_mapped_uncached_stays_write_back() {
    // Asked: why is it "got write-back"? Because it is RAM, mapped write-back already.
    let text = says("sgx-step-ram-uncached");
    assert!(
        text.contains("app asked for uncached-minus of 0x481488000-0x481488fff (4 KiB) and 1 more")
    );
    assert!(
        text.contains("write-back is what the program got"),
        "{text}"
    );
    // The same, each line broken by a mail program.
    let text = says("celadon-wrapped-ram-wc");
    assert!(text.contains("NDK MediaCodec_ asked for write-combining of 0x1e7a80000-0x1e7a87fff"));
    assert!(text.contains("and 2 more"), "{text}");
    assert!(!text.contains("cut short"), "{text}");
}

#[test]
fn who_holds_the_range_is_said_as_far_as_the_line_says_it() {
    let text = says("pcimem-conflict");
    assert!(
        text.contains("0xca000000-0xca7fffff (8 MiB) is already mapped write-combining"),
        "{text}"
    );
    assert_eq!(json(&[], &post("pcimem-conflict"))["phys_bits"], 39);
    // A program that maps firmware tables through /dev/mem in a Xen dom0.
    let text = says("fwupd-dom0-uncached");
    assert!(text.contains("fwupd was refused a mapping: 0x76896000-0x76897fff (8 KiB) is already mapped write-back"), "{text}");
    assert_eq!(
        text.matches("was refused").count(),
        2,
        "the verdict and one finding, though three lines tell of it: {text}"
    );
}

#[test]
fn a_log_that_begins_at_register_4() {
    let object = json(&[], &post("xilinx-tail-39bit"));
    assert_eq!(object["phys_bits"], 39);
    // What a register that is shown makes uncachable is certain, all else is not.
    assert_eq!(type_at(&object, 0x2_c000_0000), "UC");
    assert_eq!(type_at(&object, 0x4e00_0000), "UC");
    assert_eq!(type_at(&object, 0x10_0000), "unknown");
    assert_eq!(type_at(&object, 0x1_0000_0000), "unknown");
}

#[test]
fn an_amd_machine_of_48_bits_printed_with_twelve_digits() {
    let object = json(&[], &post("media-tree-amd-48bit"));
    assert_eq!(object["phys_bits"], 48);
    check_map(
        &object,
        &[
            (0x10_0000, "WB"),
            (0x8f80_0000, "UC"),
            (0x1_0000_0000, "WB"),
            (0x2_3f00_0000, "UC"),
        ],
    );
    assert_eq!(object["registers"]["total"], 8);
}

#[test]
fn a_guest_whose_table_is_empty_is_write_back_by_default() {
    let object = json(&[], &post("cloud-guest-expected"));
    assert_eq!(object["default"], "WB");
    assert_eq!(object["fixed_enabled"], false);
    assert_eq!(type_at(&object, 0xa_0000), "WB");
    assert_eq!(object["registers"]["used"], 0);
}
