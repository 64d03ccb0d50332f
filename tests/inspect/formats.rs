//! The formats people post, each with its own trap. Registers here are made up or from reports
//! that quote registers without a dump.

use super::{case, json, run, type_at};

/// All CPUs' registers as `rdmsr -a` prints them.
fn rdmsr_all(rows: &[(&str, &[&str])]) -> String {
    let mut text = String::new();
    for (msr, values) in rows {
        text.push_str(&format!(
            "root@box:~# rdmsr -a {msr}\n{}\n",
            values.join("\n")
        ));
    }
    text
}

#[test]
fn rdmsr_of_all_cpus_names_the_one_that_differs() {
    let text = rdmsr_all(&[
        ("0xfe", &["508", "508", "508", "508"]),
        ("0x2ff", &["c06", "c06", "c06", "c06"]),
        ("0x200", &["c0000000", "c0000000", "c0000000", "c0000000"]),
        (
            "0x201",
            &["fffc0000800", "fffc0000800", "ffff0000800", "fffc0000800"],
        ),
        (
            "0x277",
            &[
                "407050600070106",
                "407050600070106",
                "407050600070106",
                "7040600070406",
            ],
        ),
    ]);
    let object = json(&[], text.as_bytes());
    assert_eq!(object["phys_bits"], 44);
    assert_eq!(object["registers"]["total"], 8);
    let differs: Vec<String> = (0..4)
        .map(|cpu| object["cpus"][cpu]["differs"].to_string())
        .collect();
    assert_eq!(differs, ["[]", "[]", "[\"variable\"]", "[\"pat\"]"]);
    let (code, text) = run(&[], text.as_bytes());
    assert_eq!(code, 1);
    assert!(text.contains("CPU 2 differs in: variable"), "{text}");
    assert!(text.contains("CPU 3 differs in: pat"), "{text}");
}

#[test]
fn cpus_are_named_by_core_when_cpuinfo_is_there() {
    let cpuinfo: String = (0..4)
        .map(|n| {
            format!(
                "processor\t: {n}\nphysical id\t: 0\ncore id\t\t: {}\n\n",
                n % 2
            )
        })
        .collect();
    let msrs = rdmsr_all(&[("0x2ff", &["c06", "c06", "c06", "0"])]);
    let (_, text) = run(&[], format!("{cpuinfo}{msrs}").as_bytes());
    assert!(
        text.contains("CPU 3 (core 1) differs in: default"),
        "{text}"
    );
}

#[test]
fn bases_of_pairs_not_in_use_do_not_count() {
    let mut text = String::new();
    for (cpu, junk) in [(0, "0x1000"), (1, "0xffff000")] {
        for register in ["0xfe=0x402", "0x2ff=0x806", "0x200=0", "0x201=0", "0x203=0"] {
            text.push_str(&format!("CPU {cpu}: {register}\n"));
        }
        text.push_str(&format!("CPU {cpu}: 0x202={junk}\n"));
    }
    let object = json(&[], text.as_bytes());
    assert_eq!(object["cpus"][1]["differs"].to_string(), "[]");
    let (code, text) = run(&[], text.as_bytes());
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("all in sync"), "{text}");
}

#[test]
fn an_ap_that_was_never_programmed_differs_in_everything() {
    let mut text =
        String::from("cpu0\n0xfe: 0x508\n0x2ff: 0xc00\n0x200: 0x6\n0x201: 0xf80000800\n");
    let fixed = [
        "250", "258", "259", "268", "269", "26a", "26b", "26c", "26d", "26e", "26f",
    ];
    for msr in fixed {
        text.push_str(&format!("0x{msr}: 0x0606060606060606\n"));
    }
    text.push_str("cpu1\n0xfe: 0x508\n0x2ff: 0x0\n0x200: 0x0\n0x201: 0x0\n");
    for msr in fixed {
        text.push_str(&format!("0x{msr}: 0x0\n"));
    }
    let object = json(&[], text.as_bytes());
    let differs = object["cpus"][1]["differs"].to_string();
    assert_eq!(differs, "[\"fixed\",\"variable\",\"default\"]");
}

#[test]
fn a_guest_with_default_write_protect_and_nothing_else() {
    let text = "cpu 0 msr 0x2ff value 0x805\ncpu 1 msr 0x2ff value 0x0\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(object["default"], "WP");
    assert_eq!(object["fixed_enabled"], false);
    // The variable ranges are not shown: where none matches, the default type holds.
    assert_eq!(object["complete"], false);
    for addr in ["0", "0xa0000", "0x100000000"] {
        let (_, text) = run(&["--type", addr], text.as_bytes());
        assert!(
            text.contains("unknown without the variable ranges"),
            "{text}"
        );
        assert!(text.contains("as far as the input goes WP"), "{text}");
    }
    assert_eq!(object["cpus"][1]["differs"].to_string(), "[\"default\"]");
}

#[test]
fn a_guest_without_variable_ranges() {
    let object = json(
        &[],
        b"IA32_MTRRCAP = 0x500\nIA32_MTRR_DEF_TYPE (0x2ff): 0x00000800\n",
    );
    assert_eq!(type_at(&object, 0x8000_0000), "UC");
    assert_eq!(object["registers"]["total"], 0);
}

#[test]
fn amd_registers_by_name() {
    let text = "PHYS0 0xff000005/0xffffff000800\nPHYS1 0x6/0xffff80000800\nSYSCFG 0x3fc0000\n\
                TOP_MEM 0x80000000\nTOP_MEM2 0x4080000000\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(object["phys_bits"], 48);
    assert_eq!(type_at(&object, 0xff00_0000), "WP");
    assert_eq!(type_at(&object, 0x4000_0000), "WB");
}

#[test]
fn pairs_whose_bases_lie_under_their_masks() {
    let text = "pair0 0x6 / 0x3FFFF8000800\npair1 0x8000006 / 0x3FFF00000800\n\
                pair2 0x100000006 / 0x3FF000000800\npair3 0x1000000006 / 0x380000000800\n\
                pair4 0x80000000006 / 0x800\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(object["phys_bits"], 46);
    assert_eq!(type_at(&object, 0xfec0_0000), "WB");
    let findings = object["findings"].as_array().expect("a list");
    let found: Vec<&str> = findings
        .iter()
        .filter(|finding| finding["kind"] == "base-under-mask")
        .filter_map(|finding| finding["text"].as_str())
        .collect();
    assert_eq!(found.len(), 1, "one cause, one finding: {found:?}");
    assert!(
        found[0].starts_with("the bases of variable ranges 1-4 have bits"),
        "{found:?}"
    );
}

#[test]
fn the_pat_of_a_xen_guest() {
    let object = json(
        &[],
        b"x86/PAT: Configuration [0-7]: WB  WT  UC- UC  WC  WP  UC  UC\n",
    );
    let pat = ["WB", "WT", "UC-", "UC", "WC", "WP", "UC", "UC"];
    assert_eq!(object["pat"], serde_json::json!(pat));
}

#[test]
fn prefixes_and_colours_are_skipped() {
    let plain = String::from_utf8(case("019-amd40-nested-wp")).expect("text");
    let want = json(&[], plain.as_bytes());
    for prefix in [
        "[    0.000000] ",
        "Nov  3 10:00:00 box kernel: [    0.000000] ",
        "2024-11-03T10:00:00+0100 box kernel: ",
        "<6>",
        "(XEN) ",
        "\u{1b}[32m[    0.000000] \u{1b}[0m",
        "> ",
    ] {
        let text: String = plain
            .lines()
            .map(|line| format!("{prefix}{line}\r\n"))
            .collect();
        assert_eq!(json(&[], text.as_bytes()), want, "{prefix:?}");
    }
}

#[test]
fn coreboot_per_cpu() {
    let mut text = String::new();
    for id in ["0x0", "0x2"] {
        text.push_str(&format!(
            "[DEBUG]  apic_id {id} setup mtrr for CPU physical address size: 39 bits\n\
             [DEBUG]  apic_id {id}: MTRR: default type WB/UC MTRR counts: 3/3.\n\
             [DEBUG]  apic_id {id}: MTRR: UC selected as default type.\n\
             [DEBUG]  apic_id {id}: MTRR: 0 base 0x0000000000000000 mask 0x0000007f80000000 type 6\n\
             [DEBUG]  apic_id {id}: MTRR: 1 base 0x000000007b000000 mask 0x0000007fff000000 type 0\n\
             [DEBUG]  apic_id {id}: MTRR: 2 base 0x000000007c000000 mask 0x0000007ffc000000 type 0\n"
        ));
    }
    let object = json(&[], text.as_bytes());
    assert_eq!(
        (&object["phys_bits"], &object["phys_bits_from"]),
        (&39.into(), &"log".into())
    );
    assert_eq!(type_at(&object, 0x7aff_ffff), "WB");
    assert_eq!(type_at(&object, 0x7b00_0000), "UC");
    assert_eq!(object["cpus"].as_array().map(Vec::len), Some(2));
}

#[test]
fn coreboot_of_old_and_u_boot_and_edk2() {
    let old = "Setting variable MTRR 0, base:    0MB, range: 2048MB, type WB\n\
               Setting variable MTRR 1, base: 2032MB, range:   16MB, type UC\n";
    let u_boot = "Reg Valid Write-type   Base   ||        Mask   ||        Size   ||\n\
        0   Y     Back         0000000000000000 0000007f80000000 0000000080000000\n\
        1   Y     Uncacheable  000000007f000000 0000007fff000000 0000000001000000\n\
        2   N     Uncacheable  0000000000000000 0000000000000000 0000008000000000\n";
    let edk2 = "MTRR Default Type: 0000000000000C00\n\
        Variable MTRR[00]: Base=0000000000000006 Mask=0000007F80000800\n\
        Variable MTRR[01]: Base=000000007F000000 Mask=0000007FFF000800\n\
        Variable MTRR[02]: Base=0000000000000000 Mask=0000000000000000\n";
    for text in [old, u_boot, edk2] {
        let object = json(&[], text.as_bytes());
        assert_eq!(type_at(&object, 0x7eff_ffff), "WB", "{text}");
        assert_eq!(type_at(&object, 0x7f00_0000), "UC", "{text}");
        assert_eq!(object["registers"]["used"], 2, "{text}");
    }
}

#[test]
fn freebsd_memcontrol() {
    let text = "0x0/0x10000 BIOS write-back fixed-base fixed-length set-by-firmware active\n\
                0x0/0x80000000 BIOS write-back set-by-firmware active\n\
                0x7f000000/0x1000000 BIOS uncacheable set-by-firmware active\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(type_at(&object, 0x7eff_ffff), "WB");
    assert_eq!(type_at(&object, 0x7f00_0000), "UC");
}

#[test]
fn ram_that_is_not_covered_is_counted() {
    let text = "BIOS-provided physical RAM map:\n\
                BIOS-e820: [mem 0x0000000000100000-0x000000007fffffff] usable\n\
                BIOS-e820: [mem 0x0000000100000000-0x000000017fffffff] usable\n\
                reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back\n\
                reg01: base=0x100000000 ( 4096MB), size= 1024MB, count=1: write-back\n";
    let (code, out) = run(&[], text.as_bytes());
    assert_eq!(code, 1);
    assert!(
        out.contains("RAM is uncachable: 0x140000000-0x17fffffff (1 GiB)"),
        "{out}"
    );
}

#[test]
fn the_width_says_where_it_is_from() {
    let reg = "reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back\n";
    let cases = [
        (String::new(), "assumed", 36),
        (
            "address sizes\t: 39 bits physical, 48 bits virtual\n".into(),
            "log",
            39,
        ),
    ];
    for (head, from, bits) in cases {
        let object = json(&[], format!("{head}{reg}").as_bytes());
        assert_eq!(
            (&object["phys_bits_from"], &object["phys_bits"]),
            (&from.into(), &bits.into())
        );
    }
    let object = json(&["--phys-bits", "52"], reg.as_bytes());
    assert_eq!(
        (&object["phys_bits_from"], &object["phys_bits"]),
        (&"flag".into(), &52.into())
    );
}

#[test]
fn the_last_of_several_tables_counts() {
    let one = case("043-low-hole-16gb-eight-used");
    let two = case("055-mingo-8gb-uc-first");
    let both = [one, two.clone()].concat();
    let (a, b) = (json(&[], &both), json(&[], &two));
    assert_eq!(a["map"], b["map"]);
    assert!(run(&[], &both).1.contains("2 tables of variable ranges"));
}

#[test]
fn pictures_are_written() {
    let path = std::env::temp_dir().join(format!("inspect-{}.svg", std::process::id()));
    let name = path.to_str().expect("a plain path");
    run(&["--svg", name], &case("019-amd40-nested-wp"));
    let text = std::fs::read_to_string(&path).expect("the picture");
    std::fs::remove_file(&path).expect("it was written");
    assert!(text.starts_with("<svg") && text.trim_end().ends_with("</svg>"));
    assert_eq!(text.matches("<title>").count(), 10, "one box per run");
}
