//! Machines whose question was what type memory has: one test each.

use super::{case, json, run, type_at};

/// Checks the types of addresses, and the fewest registers with default UC and WB.
pub fn check(name: &str, bits: &str, probes: &[(u64, &str)], minimum: (u64, u64)) {
    let object = json(&["--phys-bits", bits], &case(name));
    for (addr, want) in probes {
        assert_eq!(type_at(&object, *addr), *want, "{addr:#x}");
    }
    let strict = &object["registers"]["min_strict"];
    assert_eq!(
        (strict["UC"].as_u64(), strict["WB"].as_u64()),
        (Some(minimum.0), Some(minimum.1))
    );
    let layout = object["registers"]["layout"].as_array().expect("a list");
    assert_eq!(
        layout.len() as u64,
        minimum.0.min(minimum.1),
        "the layout achieves the minimum"
    );
}

/// Checks that the text for a person has all of `parts`; returns the exit code.
pub fn says(options: &[&str], name: &str, parts: &[&str]) -> u8 {
    let (code, text) = run(&[&["--color=never"], options].concat(), &case(name));
    // Words, whatever the line breaks.
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in parts {
        assert!(flat.contains(part), "\"{part}\" is not in:\n{text}");
    }
    code
}

#[test]
fn p4_36_bits_taken_for_40() {
    let code = says(
        &[],
        "001-p4-36bit-decoded-as-40",
        &[
            "983552 MB",
            "40 address bits",
            "made for 36",
            "the range is 512 MB",
            "36 address bits",
        ],
    );
    assert_eq!(code, 0);
    let object = json(&[], &case("001-p4-36bit-decoded-as-40"));
    assert_eq!(object["phys_bits_from"], "masks");
    assert_eq!(type_at(&object, 0x1fff_ffff), "WB");
    assert_eq!(type_at(&object, 0x2000_0000), "UC");
    // WC for the graphics card does not overlap: one register more.
    let want = ["--want", "0xd0000000+128M=WC"];
    says(
        &want,
        "001-p4-36bit-decoded-as-40",
        &["it fits: 2 of 8 registers (1 more"],
    );
}

#[test]
fn q6600_a_mask_of_zero_is_64_gib() {
    let name = "003-q6600-mask-zero-64gb";
    says(
        &[],
        name,
        &[
            "mask 0x000000000 64 GiB write-back",
            "assumed: 36 physical address bits",
        ],
    );
    let object = json(&["--phys-bits", "36"], &case(name));
    for (addr, want) in [
        (0xbff0_0000, "UC"),
        (0xc000_0000, "UC"),
        (0x1_bbff_ffff, "WB"),
    ] {
        assert_eq!(type_at(&object, addr), want);
    }
    // The map its owner wanted: 7 with default UC, 8 with default WB; 5 and 3 with free space.
    let want = [
        "--phys-bits",
        "36",
        "--want",
        "0-0xbfefffff=WB",
        "--want",
        "0xbff00000+1M=UC",
        "--want",
        "0xc0000000+512M=WC",
        "--want",
        "0xe0000000-0xffffffff=UC",
        "--want",
        "0x100000000-0x1bbffffff=WB",
        "--want",
        "0x1bc000000-0xfffffffff=UC",
    ];
    says(
        &want,
        name,
        &["exactly: 7 with default UC, 8 with default WB"],
    );
}

#[test]
fn xeon_write_through_inside_uncachable() {
    let name = "009-xeon-wt-fb-inside-uc";
    let probes = [
        (0xe000_0000, "UC"),
        (0xf1ff_ffff, "UC"),
        (0x3f00_0000, "UC"),
        (0x3eff_ffff, "WB"),
    ];
    check(name, "46", &probes, (5, 4));
    let code = says(
        &[],
        name,
        &["variable ranges 4-5 have no effect", "uncachable wins"],
    );
    assert_eq!(code, 1);
    says(&["--type", "0xf1ffffff"], name, &["0xf1ffffff: UC"]);
}

#[test]
fn xeon_d_a_huge_page_of_one_type() {
    let name = "010-xeond-10gbe-hugepage";
    let probes = [
        (0x383f_ffa0_0000, "UC"),
        (0x383f_ffff_0000, "UC"),
        (0x3840_0000_0000, "WB"),
    ];
    check(name, "46", &probes, (3, 2));
    says(
        &["--type", "0x383fffa00000"],
        name,
        &["UC uncachable", "largest page of one type here: 1 GiB"],
    );
    says(
        &[],
        name,
        &[
            "no effect: inside range 1",
            "useless: inside range 1",
            "assumed: default type WB",
        ],
    );
}

#[test]
fn amd_top_mem2_makes_memory_write_back() {
    let name = "015-tom2-4864m-forcewb";
    let probes = [
        (0x1_0000_0000, "WB"),
        (0x1_2fff_ffff, "WB"),
        (0x1_3000_0000, "UC"),
        (0xcfff_ffff, "WB"),
        (0xd000_0000, "UC"),
    ];
    check(name, "48", &probes, (3, 18));
    // Nothing is lost: memory above 4 GiB must not be reported.
    assert_eq!(
        says(&[], name, &["768 MiB write-back TOP_MEM2", "nothing wrong"]),
        0
    );
}

#[test]
fn amd_write_through_video_window() {
    let probes = [
        (0xa_0000, "WT"),
        (0xbf80_0000, "UC"),
        (0x6_3eff_ffff, "WB"),
        (0x6_3f00_0000, "UC"),
        (0xc_0000, "WP"),
        (0xd_0000, "UC"),
    ];
    check("017-amd-24gb-a0000-wt", "48", &probes, (3, 18));
}

#[test]
fn amd_write_protect_inside_write_protect() {
    let name = "019-amd40-nested-wp";
    let probes = [
        (0xfff4_0000, "WP"),
        (0xacb7_0000, "UC"),
        (0xacb8_0000, "WB"),
        (0x1_3fff_ffff, "WB"),
    ];
    check(name, "40", &probes, (6, 21));
    let code = says(
        &[],
        name,
        &[
            "useless: inside range 4",
            "TOP_MEM2 already makes this write-back",
            "above 4 GiB: 5",
        ],
    );
    assert_eq!(code, 1);
}

#[test]
fn p4_registers_programmed_but_off() {
    let name = "030-d-p4-mtrrs-globally-off";
    let object = json(&[], &case(name));
    assert_eq!(
        (&object["enabled"], &object["fixed_enabled"]),
        (&false.into(), &true.into())
    );
    for addr in [0, 0x100_0000, 0x3f80_0000] {
        assert_eq!(type_at(&object, addr), "UC");
    }
    assert_eq!(object["findings"][0]["kind"], "off-programmed");
    let code = says(
        &[],
        name,
        &[
            "error: the MTRRs are off (E=0) although ranges are programmed",
            "set E again",
        ],
    );
    assert_eq!(code, 1);
}

#[test]
fn hyper_v_off_and_blank_is_no_fault() {
    let name = "032-hyperv-guest-mtrr-off";
    let object = json(&[], &case(name));
    assert_eq!(type_at(&object, 0x100_0000), "UC");
    assert_eq!(
        says(
            &[],
            name,
            &[
                "off (E=0) and blank",
                "the hypervisor decides",
                "write-back"
            ]
        ),
        0
    );
    // The same registers on bare metal are one.
    let text = String::from_utf8(case(name)).expect("text");
    let bare = text.replace("CPU MTRRs all blank - virtualized system.", "");
    assert_eq!(run(&[], bare.as_bytes()).0, 1);
}

#[test]
fn qemu_default_write_back() {
    let name = "035-qemu-default-wb";
    let probes = [
        (0xe000_0000, "UC"),
        (0xffff_ffff, "UC"),
        (0x1_0000_0000, "WB"),
        (0xc_0000, "WP"),
    ];
    check(name, "40", &probes, (2, 1));
    // WC under the UC range does nothing: the UC range has to be split.
    let want = ["--want", "0xe0000000+16M=WC"];
    says(
        &want,
        name,
        &["it fits: ", "disable=0", "type=write-combining"],
    );
    says(&[], name, &["the processor has none"]);
}

#[test]
fn pat_of_zero() {
    let name = "038-pat-zero-from-firmware";
    let object = json(&[], &case(name));
    assert_eq!(
        object["pat"],
        serde_json::json!(["UC", "UC", "UC", "UC", "UC", "UC", "UC", "UC"])
    );
    let code = says(
        &[],
        name,
        &["the PAT is zero: no page can be cached", "0x7010600070106"],
    );
    assert_eq!(code, 1);
}
