//! Machines whose question was how many registers are enough: one test each.

use super::cases::{check, says};
use super::{case, json, run};

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
        &["0x10000: unknown without the fixed ranges", "UC uncachable"],
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
