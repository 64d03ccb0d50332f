//! The address width: from the masks, whatever the number of digits a kernel prints them with.

use super::{check_map, json, post, run, type_at};

#[test]
fn a_32_bit_processor_whose_kernel_prints_nine_digits() {
    let object = json(&[], &post("204-atom330-mask-zero"));
    assert_eq!(object["phys_bits"], 32);
    check_map(
        &object,
        &[
            (0, "WB"),
            (0xa_0000, "UC"),
            (0xc_0000, "WP"),
            (0xd_0000, "UC"),
            (0xe_0000, "WT"),
            (0xf_0000, "WP"),
            (0x10_0000, "WB"),
            (0xe000_0000, "UC"),
        ],
    );
    let strict = &object["registers"]["min_strict"];
    assert_eq!((&strict["UC"], &strict["WB"]), (&2.into(), &1.into()));
}

#[test]
fn linux_6_5_prints_three_zeros_too_many() {
    let object = json(&[], &post("208-t3600-kernel-cleanup-loses-ram"));
    assert_eq!(object["phys_bits"], 46);
    check_map(
        &object,
        &[
            (0, "WB"),
            (0xa_0000, "UC"),
            (0xc_0000, "WP"),
            (0x10_0000, "WB"),
            (0xae00_0000, "UC"),
            (0x1_0000_0000, "WB"),
            (0x4_5000_0000, "UC"),
        ],
    );
    let strict = &object["registers"]["min_strict"];
    assert_eq!((&strict["UC"], &strict["WB"]), (&6.into(), &19.into()));
    let (_, text) = run(&[], &post("208-t3600-kernel-cleanup-loses-ram"));
    assert!(!text.contains("holes"), "{text}");
    assert!(text.lines().count() < 80, "{text}");
}

/// A kernel's table of one write-back range.
fn table(digits: usize, base: u64, mask: u64) -> String {
    format!(
        "MTRR default type: uncachable\nMTRR variable ranges enabled:\n  \
         0 base {base:0digits$X} mask {mask:0digits$X} write-back\n  1 disabled\n"
    )
}

#[test]
fn masks_decide_and_digits_do_not() {
    for digits in [8, 9, 11, 12] {
        let object = json(&[], table(digits, 0, 0xc000_0000).as_bytes());
        assert_eq!(object["phys_bits"], 32, "{digits} digits");
    }
    for digits in [10, 12, 13, 15] {
        let object = json(&[], table(digits, 0, 0x7f_c000_0000).as_bytes());
        assert_eq!(object["phys_bits"], 39, "{digits} digits");
    }
}

#[test]
fn only_the_log_itself_makes_it_wider() {
    for (message, bits) in [
        ("", 32),
        (
            "mtrr: your BIOS has set up an incorrect mask, fixing it up.\n",
            36,
        ),
        (
            "mtrr: your BIOS has configured an incorrect mask, fixing it.\n",
            36,
        ),
    ] {
        let text = table(9, 0, 0xc000_0000) + message;
        let object = json(&[], text.as_bytes());
        assert_eq!(object["phys_bits"], bits, "{message}");
        assert_eq!(object["phys_bits_from"], "masks");
    }
    // Three digits more, and the log says that it is a new kernel.
    let text = "Linux version 6.12.9-200.fc41.x86_64 (builder)\n".to_string()
        + &table(12, 0, 0xc000_0000)
        + "mtrr: your BIOS has configured an incorrect mask, fixing it.\n";
    assert_eq!(json(&[], text.as_bytes())["phys_bits"], 36);
}

#[test]
fn memory_above_what_the_masks_reach_makes_it_wider_too() {
    let ram = "BIOS-e820: [mem 0x0000000100000000-0x000000013fffffff] usable\n";
    let object = json(
        &[],
        (ram.to_string() + &table(9, 0, 0xc000_0000)).as_bytes(),
    );
    assert_eq!(object["phys_bits"], 36);
}

#[test]
fn a_mask_of_zero_is_as_large_as_the_kernel_says() {
    for (range, bits) in [("4GB", 32), ("64GB", 36), ("1TB", 40), ("256TB", 48)] {
        let text = table(9, 0, 0)
            + &format!("original variable MTRRs\nreg 0, base: 0GB, range: {range}, type WB\n");
        let object = json(&[], text.as_bytes());
        assert_eq!(object["phys_bits"], bits, "{range}");
    }
    // Without that list only the digits are left.
    assert_eq!(json(&[], table(9, 0, 0).as_bytes())["phys_bits"], 36);
    assert_eq!(json(&[], table(10, 0, 0).as_bytes())["phys_bits"], 40);
}

#[test]
fn a_line_with_a_digit_lost_is_read_from_the_kernels_list() {
    let text = "MTRR default type: uncachable\nMTRR variable ranges enabled:\n  \
                0 base 000000000 mask F80000000 write-back\n  \
                1 base 07E000000 mask FFE00000 uncachable\n  2 disabled\n\
                original variable MTRRs\nreg 0, base: 0GB, range: 2GB, type WB\n\
                reg 1, base: 2016MB, range: 32MB, type UC\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(type_at(&object, 0x7dff_ffff), "WB");
    assert_eq!(type_at(&object, 0x7e00_0000), "UC");
    assert_eq!(type_at(&object, 0x7fff_ffff), "UC");
    assert!(run(&[], text.as_bytes()).1.contains("variable range 1"));
}
