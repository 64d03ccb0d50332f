//! The list of types that Linux 6.5 and later print with `mtrr=debug`, where it is all there is.

use super::{check_map, json, post, run};

/// The list of a machine with 16 GiB, as the kernel prints it.
const LIST: &str = "\
    MTRR map: 6 entries (3 fixed + 3 variable; max 23), built from 10 variable MTRRs\n\
    \x20 0: 0000000000000000-000000000009ffff write-back\n\
    \x20 1: 00000000000a0000-00000000000bffff uncachable\n\
    \x20 2: 00000000000c0000-00000000000fffff write-protect\n\
    \x20 3: 0000000000100000-00000000adffffff write-back\n\
    \x20 4: 00000000ae000000-00000000afffffff uncachable\n\
    \x20 5: 0000000100000000-000000044fffffff write-back\n";

/// Its map, where the default type is not known.
const MAP: [(u64, &str); 8] = [
    (0, "WB"),
    (0xa_0000, "UC"),
    (0xc_0000, "WP"),
    (0x10_0000, "WB"),
    (0xae00_0000, "UC"),
    (0xb000_0000, "unknown"),
    (0x1_0000_0000, "WB"),
    (0x4_5000_0000, "unknown"),
];

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn the_list_alone_is_the_map_and_gaps_are_not_known() {
    let object = json(&[], LIST.as_bytes());
    check_map(&object, &MAP);
    assert_eq!(object["complete"], false);
    assert_eq!(object["default"], serde_json::Value::Null);
    // Registers are not counted by what the kernel made of them.
    assert_eq!(object["registers"]["used"], serde_json::Value::Null);
    assert_eq!(object["registers"]["total"], 10);
    for range in object["variable"].as_array().unwrap() {
        assert_eq!(range["base"], serde_json::Value::Null, "{range}");
    }
    let missing = object["missing"].to_string();
    assert!(
        missing.contains("the variable ranges are not in the input"),
        "{missing}"
    );
    assert_eq!(object["verdict"]["state"], "fine", "{}", object["verdict"]);
    // The same without the line that counts, in any order, with a journal's words before it.
    let (_, entries) = LIST.split_once('\n').unwrap();
    check_map(&json(&[], entries.as_bytes()), &MAP);
    let journal = |line| format!("Dec 01 10:00:00 box kernel: {line}\n");
    let backwards: String = LIST.lines().rev().map(journal).collect();
    check_map(&json(&[], backwards.as_bytes()), &MAP);
}

#[test]
fn where_the_default_type_is_told_nothing_is_open() {
    let text = format!("MTRR default type: uncachable\n{LIST}");
    let object = json(&[], text.as_bytes());
    let told: Vec<(u64, &str)> = MAP
        .iter()
        .map(|(at, name)| (*at, if *name == "unknown" { "UC" } else { *name }))
        .filter(|(at, _)| *at != 0xb000_0000)
        .collect();
    check_map(&object, &told);
}

#[test]
fn registers_that_are_cut_are_filled_from_the_list() {
    let whole = String::from_utf8(post("208-t3600-kernel-cleanup-loses-ram")).unwrap();
    let cut: String = whole
        .lines()
        .filter(|line| {
            !["  0 base", "  2 base", "  6 disabled"]
                .iter()
                .any(|key| line.contains(key))
        })
        .filter(|line| !line.contains("total RAM") && !line.contains("clean up"))
        .map(|line| format!("{line}\n"))
        .collect();
    let object = json(&[], cut.as_bytes());
    let types = [
        0x10_0000,
        0xae00_0000,
        0xc000_0000,
        0x4_4000_0000,
        0x5_0000_0000,
    ]
    .map(|addr| super::type_at(&object, addr));
    assert_eq!(types, ["WB", "UC", "UC", "WB", "UC"], "{cut}");
    assert_eq!(object["variable"][0]["base"], serde_json::Value::Null);
    assert_eq!(object["variable"][1]["base"], "0x400000000");
}

#[test]
fn one_address_is_answered_from_the_list() {
    for (addr, want) in [
        ("0xae000000", "UC"),
        ("0x200000000", "WB"),
        ("0xc0000", "WP"),
    ] {
        let object = json(&["--type", addr], LIST.as_bytes());
        assert_eq!(object["type"]["type"], want, "{addr}");
        let (_, text) = run(&["--type", addr], LIST.as_bytes());
        assert!(text.contains(&format!("{addr}: {want}")), "{text}");
    }
    let (_, text) = run(&["--type", "0x200000000"], LIST.as_bytes());
    assert!(text.contains("the kernel's map"), "{text}");
    let (_, text) = run(&["--type", "0xc0000000"], LIST.as_bytes());
    assert!(text.contains("unknown without the default type"), "{text}");
    let object = json(&["--type", "0xc0000000"], LIST.as_bytes());
    assert_eq!(object["type"]["certain"], false);
}

#[test]
fn the_map_of_the_list_can_be_planned() {
    let (_, text) = run(&["--want", "0xd0000000+0x10000000=WC"], LIST.as_bytes());
    let text = flat(&text);
    assert!(text.contains("of 10 registers"), "{text}");
    assert!(
        text.contains("what the list leaves out is taken for uncachable"),
        "{text}"
    );
    assert!(
        text.contains("not through /proc/mtrr: which register holds what is not in the input"),
        "{text}"
    );
    assert!(!text.contains("add 1 to the"), "{text}");
    let object = json(&["--want", "0xd0000000+0x10000000=WC"], LIST.as_bytes());
    assert_eq!(object["want"]["way"], "exact");
    assert_eq!(object["want"]["commands"], serde_json::json!([]));
    // 0-2 GiB, -2.5, -2.6875, -2.71875, 4-8, 8-16, 16-17, 17-17.25 GiB as WB; the WC one. (Or UC
    // ones cut out of larger WB ones.)
    let (_, text) = run(&[], LIST.as_bytes());
    let text = flat(&text);
    assert!(
        text.contains("Fewest variable ranges for this map"),
        "{text}"
    );
    assert!(text.contains("(now: not in the input)"), "{text}");
    assert!(
        !text.contains("can be freed") && !text.contains("already minimal"),
        "{text}"
    );
}

#[test]
fn an_entry_that_is_missing_leaves_its_place_open() {
    for (gone, addr) in [("  3: ", 0x20_0000), ("  5: ", 0x2_0000_0000)] {
        let cut: String = LIST
            .lines()
            .filter(|line| !line.starts_with(gone))
            .map(|line| format!("{line}\n"))
            .collect();
        let cut = format!("MTRR default type: uncachable\n{cut}");
        let object = json(&[], cut.as_bytes());
        assert_eq!(super::type_at(&object, addr), "unknown", "{gone}");
        assert_eq!(super::type_at(&object, 0xaf00_0000), "UC");
        assert_eq!(object["verdict"]["state"], "unknown");
        let text = object["verdict"]["text"].as_str().unwrap();
        assert!(text.contains("of the kernel's map"), "{text}");
    }
}

#[test]
fn ram_that_the_list_leaves_uncachable_is_found() {
    let text = format!(
        "BIOS-e820: [mem 0x0000000100000000-0x000000045fffffff] usable\n\
         MTRR default type: uncachable\n{LIST}"
    );
    let object = json(&[], text.as_bytes());
    assert_eq!(object["verdict"]["state"], "wrong", "{}", object["verdict"]);
    assert_eq!(object["repair"]["ram"][0]["start"], "0x450000000");
    assert_eq!(object["repair"]["ram"][0]["end"], "0x45fffffff");
    assert_eq!(object["repair"]["commands"], serde_json::json!([]));
}

#[test]
fn two_lists_are_two_states() {
    let second = LIST.replace(
        "00000000ae000000-00000000afffffff uncachable",
        "00000000ae000000-00000000afffffff write-combining",
    );
    let object = json(&[], format!("{LIST}{second}").as_bytes());
    assert_eq!(super::type_at(&object, 0xae00_0000), "WC");
    let memory = &object["changes"][0]["memory"][0];
    assert_eq!(
        (&memory["before"], &memory["after"]),
        (&"UC".into(), &"WC".into())
    );
}

#[test]
fn whole_registers_outweigh_the_list() {
    let text =
        format!("reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back\n{LIST}");
    // /proc/mtrr shows what is in force now, and more of it than the list.
    let object = json(&[], text.as_bytes());
    assert_eq!(object["registers"]["used"], 1);
    assert_eq!(super::type_at(&object, 0xad00_0000), "UC");
}
