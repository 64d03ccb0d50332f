//! One test per published machine.

use super::{case, json, run, type_at};

/// Checks the types of addresses, and the fewest registers with default UC and WB.
fn check(name: &str, bits: &str, probes: &[(u64, &str)], minimum: (u64, u64)) {
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
fn says(options: &[&str], name: &str, parts: &[&str]) -> u8 {
    let (code, text) = run(options, &case(name));
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
            "mask 000000000 64 GiB write-back",
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
        &[
            "variable range 4 has no effect",
            "variable range 5 has no effect",
            "uncachable wins",
        ],
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

#[test]
fn nas_with_the_power_on_pat() {
    let name = "042-ds620slim-39bit";
    let probes = [
        (0x7b00_0000, "UC"),
        (0x7fff_ffff, "UC"),
        (0x2_7fff_ffff, "WB"),
        (0x2_8000_0000, "UC"),
    ];
    check(name, "39", &probes, (5, 10));
    says(
        &[],
        name,
        &[
            "page tables reach: UC, WT, WB, UC-; not: WC, WP",
            "39 address bits (from the masks)",
        ],
    );
}

#[test]
fn eight_registers_where_three_do() {
    let name = "043-low-hole-16gb-eight-used";
    let probes = [
        (0xf700_0000, "UC"),
        (0xf800_0000, "UC"),
        (0xf6ff_ffff, "WB"),
        (0x3_ffff_ffff, "WB"),
    ];
    check(name, "36", &probes, (3, 4));
    says(
        &[],
        name,
        &[
            "all 8 variable ranges are in use",
            "3 with default UC, 4 with default WB (now: 8)",
            "5 can be freed",
        ],
    );
}

#[test]
fn netbook_with_a_range_below_1_mib() {
    let name = "045-aspire-one-uc-under-1m";
    let probes = [
        (0x3f50_0000, "UC"),
        (0xfffe_0000, "WP"),
        (0x3f4f_ffff, "WB"),
    ];
    check(name, "36", &probes, (5, 23));
    says(
        &[],
        name,
        &["useless: below 1 MiB", "useless: same as the default type"],
    );
    let want = ["--want", "0x40000000+256M=WC"];
    says(
        &want,
        name,
        &[
            "exactly: 6 with default UC, 25 with default WB",
            "it fits: 6 of 8",
        ],
    );
    says(
        &["--type", "0x10000"],
        name,
        &["0x10000: UC", "not certain"],
    );
}

#[test]
fn n100_ten_registers_where_seven_do() {
    let name = "047-n100-all-ten-used";
    let probes = [
        (0x4_7f80_0000, "UC"),
        (0x4_837f_ffff, "UC"),
        (0x4_8380_0000, "WB"),
        (0x8_0000_0000, "UC"),
    ];
    check(name, "39", &probes, (7, 10));
    says(
        &[],
        name,
        &[
            "10 used, 0 free of 10",
            "7 with default UC, 10 with default WB",
            "3 can be freed",
        ],
    );
}

#[test]
fn openssd_five_instead_of_eight() {
    let name = "049-openssd-host-12gb";
    check(
        name,
        "36",
        &[(0x3_1eff_ffff, "WB"), (0x3_1f00_0000, "UC")],
        (5, 7),
    );
    says(
        &[],
        name,
        &[
            "if nothing above 0x31f000000 matters",
            "2 with default UC, 1 with default WB",
        ],
    );
}

#[test]
fn e6510_trimmed_above_ram() {
    let name = "050-e6510-uc-trim-above-top";
    let probes = [
        (0x2_3000_0000, "UC"),
        (0x2_2fff_ffff, "WB"),
        (0xd000_0000, "UC"),
    ];
    check(name, "36", &probes, (5, 8));
    let want = ["--want", "0xe0000000-0xefffffff=WC"];
    says(
        &want,
        name,
        &[
            "3 with default UC, 2 with default WB",
            "exactly: 7 with default UC, 9 with default WB",
            "6 with default UC, 3 with default WB",
            "it fits: 7 of 8 registers",
        ],
    );
}

#[test]
fn hp_g6_full_but_exact() {
    let name = "052-hp-g6-eight-used";
    let probes = [
        (0x1_57ff_ffff, "WB"),
        (0x1_5800_0000, "UC"),
        (0x9b80_0000, "UC"),
    ];
    check(name, "36", &probes, (8, 19));
    says(
        &[],
        name,
        &["6 with default UC, 13 with default WB", "already minimal"],
    );
}

#[test]
fn k8_board_three_instead_of_five() {
    let name = "053-m2a-vm-k8-40bit";
    check(
        name,
        "40",
        &[(0x77ef_ffff, "WB"), (0x77f0_0000, "UC")],
        (3, 11),
    );
}

#[test]
fn server_whose_uncachable_range_comes_first() {
    let name = "055-mingo-8gb-uc-first";
    let probes = [
        (0xefff_ffff, "WB"),
        (0xf000_0000, "UC"),
        (0x1_efff_ffff, "WB"),
        (0x1_f000_0000, "UC"),
    ];
    check(name, "36", &probes, (3, 5));
    says(&[], name, &["2 with default UC, 1 with default WB"]);
}

#[test]
fn i2o_write_combining_needs_a_split() {
    let name = "057-i2o-wc-over-wb-and-uc";
    check(
        name,
        "40",
        &[
            (0xfb00_0000, "UC"),
            (0xe4ff_ffff, "WB"),
            (0x1_ffff_ffff, "WB"),
        ],
        (5, 11),
    );
    let want = ["--phys-bits", "40", "--want", "0xfb000000+16M=WC"];
    says(
        &want,
        name,
        &[
            "exactly: 7 with default UC, 15 with default WB",
            "7 with default UC, 8 with default WB",
        ],
    );
}

#[test]
fn uv_three_of_eight_are_useless() {
    let name = "059-uv-12tb-46bit";
    let probes = [
        (0xc1f_ffff_ffff, "WB"),
        (0xf00_0000_0000, "UC"),
        (0xfef_ffff_ffff, "UC"),
        (0xff0_0000_0000, "WB"),
        (0xff00_0000, "UC"),
    ];
    check(name, "46", &probes, (6, 5));
    let object = json(&[], &case(name));
    for (index, useless) in [false, false, false, false, false, true, true, true]
        .into_iter()
        .enumerate()
    {
        let note = object["variable"][index]["note"].as_str().expect("a note");
        assert_eq!(note.contains("useless"), useless, "range {index}: {note}");
    }
}

#[test]
fn brickland_one_inside_another() {
    let name = "061-brickland-46bit-redundant";
    let probes = [
        (0x7fc0_0000, "UC"),
        (0x7c00_0000, "UC"),
        (0x387f_ffff_ffff, "UC"),
        (0x3880_0000_0000, "WB"),
    ];
    check(name, "46", &probes, (4, 3));
    says(&[], name, &["variable range 3 is redundant"]);
}

#[test]
fn xeon_that_the_kernel_could_not_clean_up() {
    let name = "063-xeon-320gb-cleanup-fails";
    check(
        name,
        "46",
        &[(0x50_6fff_ffff, "WB"), (0x50_7000_0000, "UC")],
        (6, 16),
    );
    says(
        &[],
        name,
        &["already minimal", "3 with default UC, 2 with default WB"],
    );
}

/// Maps somebody wanted, without a machine: (ranges, bits, default UC, default WB).
#[test]
fn maps_asked_for_without_a_machine() {
    let asked: [(&[&str], &str, &str); 3] = [
        (
            &["0-0x89ffffff=WB", "0xfc240000+8K=WC", "0xff000000+16M=WP"],
            "39",
            "5 with default UC, 30 with default WB",
        ),
        (
            &[
                "0-0x7affffff=WB",
                "0x80000000+256M=WC",
                "0x100000000-0x27dffffff=WB",
            ],
            "39",
            "7 with default UC, 14 with default WB",
        ),
        (
            &[
                "0-0x7b7fffff=WB",
                "0xff000000+16M=WP",
                "0x100000000-0x17fffffff=WB",
            ],
            "39",
            "5 with default UC, 17 with default WB",
        ),
    ];
    for (wants, bits, answer) in asked {
        let mut options = vec!["--phys-bits", bits];
        for want in wants {
            options.extend(["--want", want]);
        }
        let (code, text) = run(&options, b"");
        assert_eq!(code, 0);
        assert!(text.contains(answer), "{answer} is not in:\n{text}");
    }
}
