//! Dumps that lack something: what is missing is said, the rest is answered, nothing else claimed.

use super::{json, post, run, type_at};

/// The text report with single spaces.
fn flat(text: &[u8]) -> String {
    let (_, text) = run(&["--color=never"], text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What no partial dump may be told.
const CLAIMS: [&str; 5] = [
    "nothing wrong",
    "is write-back (default",
    " free of ",
    "all in sync",
    "already minimal",
];

fn claims_nothing(text: &str) {
    for claim in CLAIMS {
        assert!(!text.contains(claim), "\"{claim}\" in:\n{text}");
    }
}

#[test]
fn a_table_that_begins_in_the_middle() {
    let text = post("219-relm-coreboot-tail");
    let object = json(&[], &text);
    for addr in [0x10_0000, 0x7fff_ffff, 0x9000_0000] {
        assert_eq!(type_at(&object, addr), "unknown");
    }
    let shown = |addr: &str| {
        let runs = object["map"].as_array().expect("a list");
        let run = runs.iter().find(|run| run["start"] == addr).expect("a run");
        (run["shown"].to_string(), run["end"].to_string())
    };
    assert_eq!(
        shown("0x80000000"),
        ("\"WC\"".into(), "\"0x8fffffff\"".into())
    );
    assert_eq!(
        shown("0x100000000"),
        ("\"WB\"".into(), "\"0x17fffffff\"".into())
    );
    assert_eq!(
        (&object["enabled"], &object["fixed_enabled"]),
        (&true.into(), &true.into())
    );
    let text = flat(&text);
    claims_nothing(&text);
    for part in [
        "variable ranges 0-2 are not in the input",
        "256 MiB not known write-combining (range 3) unless a missing range overlaps",
        "2 GiB not known write-back (range 4) unless a missing range overlaps",
        "2 GiB not known no range in the input",
    ] {
        assert!(text.contains(part), "\"{part}\" is not in:\n{text}");
    }
}

#[test]
fn registers_alone_are_answered() {
    let object = json(&[], &post("029-oneline"));
    assert_eq!(type_at(&object, 0xc000_0000), "UC");
    assert_eq!(type_at(&object, 0xfbff_ffff), "UC");
    assert_eq!(type_at(&object, 0xfc00_0000), "WB");
    assert_eq!(type_at(&object, 0xbfff_ffff), "WB");
    assert!(object["complete"].is_null());
    assert_eq!(object["cpus"].as_array().map(Vec::len), Some(1));
    let text = flat(&post("029-oneline"));
    assert!(
        text.contains("4 used; how many exist is not in the input"),
        "{text}"
    );
    assert!(!text.contains("free of"), "{text}");
    assert_eq!(
        json(&[], &post("029-short"))["map"],
        object["map"],
        "two a line"
    );
}

#[test]
fn two_values_of_eight_digits_are_two_cpus() {
    let object = json(&[], &post("2cpu-8digits"));
    assert_eq!(object["cpus"].as_array().map(Vec::len), Some(2));
    assert_eq!(object["phys_bits"], 46);
    assert_eq!(object["cpus"][1]["differs"], serde_json::json!([]));
    assert_eq!(type_at(&object, 0xc000_0000), "UC");
    assert_eq!(type_at(&object, 0xbfff_ffff), "WB");
    let text = flat(&post("2cpu-8digits"));
    assert!(
        text.contains("no difference in what the input shows"),
        "{text}"
    );
    assert!(!text.contains("all in sync"), "{text}");
    // An address's upper half is no more than twenty bits: these are two halves.
    let object = json(
        &[],
        b"0x2ff: c06\n0x200: 00000001 00000006\n0x201: 0000003f c0000800\n",
    );
    assert_eq!(type_at(&object, 0x1_0000_0000), "WB");
    assert_eq!(object["cpus"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_cpu_that_shows_less_is_not_in_sync() {
    let mut text = String::new();
    for cpu in 0..3 {
        for (msr, value) in [
            ("0xfe", "0x402"),
            ("0x2ff", "0x800"),
            ("0x200", "0x6"),
            ("0x201", "0xf80000800"),
            ("0x203", "0x0"),
        ] {
            if cpu != 1 || msr != "0x201" {
                text.push_str(&format!("cpu {cpu} msr {msr} value {value}\n"));
            }
        }
    }
    let object = json(&[], text.as_bytes());
    assert_eq!(
        object["cpus"][1]["missing"],
        serde_json::json!(["variable"])
    );
    assert_eq!(object["cpus"][1]["differs"], serde_json::json!([]));
    assert_eq!(object["cpus"][2]["missing"], serde_json::json!([]));
    let text = flat(text.as_bytes());
    assert!(
        text.contains("not all shown of every CPU: variable"),
        "{text}"
    );
    assert!(!text.contains("all in sync"), "{text}");
}

#[test]
fn a_value_lost_from_a_column_moves_none_to_another_cpu() {
    let column = |msr: &str, values: &[&str]| format!("# rdmsr -a {msr}\n{}\n", values.join("\n"));
    let whole = [
        column("0xfe", &["402"; 4]),
        column("0x2ff", &["800"; 4]),
        column("0x200", &["6"; 4]),
        column(
            "0x201",
            &["f80000800", "f80000800", "fc0000800", "f80000800"],
        ),
        column("0x203", &["0"; 4]),
    ];
    let object = json(&[], whole.concat().as_bytes());
    assert_eq!(
        object["cpus"][2]["differs"],
        serde_json::json!(["variable"])
    );
    let mut short = whole.clone();
    short[3] = column("0x201", &["f80000800", "fc0000800", "f80000800"]);
    let object = json(&[], short.concat().as_bytes());
    for cpu in 0..4 {
        assert_eq!(
            object["cpus"][cpu]["differs"],
            serde_json::json!([]),
            "CPU {cpu}"
        );
        assert_eq!(
            object["cpus"][cpu]["missing"],
            serde_json::json!(["variable"])
        );
    }
}

#[test]
fn mtrrcap_is_taken_as_it_is() {
    let head = "IA32_MTRR_DEF_TYPE: 0x806\n0x200: 0x80000000\n0x201: 0xf80000800\n";
    let text = format!("IA32_MTRRCAP = 0x500\n{head}");
    let object = json(&[], text.as_bytes());
    assert_eq!(object["registers"]["total"], 0);
    assert_eq!(type_at(&object, 0x8000_0000), "WB");
    let text = flat(text.as_bytes());
    assert!(text.contains("MTRRCAP 0x500: no variable ranges"), "{text}");
    assert!(
        text.contains("says that 0 variable ranges exist: 0 in the input do not count"),
        "{text}"
    );
    let text = flat(format!("IA32_MTRRCAP = 0x1\n{head}").as_bytes());
    assert!(
        text.contains("MTRRCAP 0x1: no fixed ranges, no write-combining"),
        "{text}"
    );
    assert!(
        !text.contains("the fixed ranges are not in the input"),
        "{text}"
    );
}

#[test]
fn off_without_a_list_has_no_ranges_to_count() {
    let text = "MTRR default type: uncachable\nMTRR variable ranges disabled:\nMTRR: Disabled\n\
                CPU MTRRs all blank - virtualized system.\n";
    let object = json(&[], text.as_bytes());
    assert!(object["registers"]["total"].is_null());
    assert_eq!(type_at(&object, 0x8000_0000), "UC");
    let text = flat(text.as_bytes());
    assert!(
        !text.contains(" free of ") && !text.contains("variable ranges exist"),
        "{text}"
    );
}

#[test]
fn no_layout_is_planned_for_half_a_map() {
    let text = "reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back\n\
                reg02: base=0x100000000 ( 4096MB), size= 2048MB, count=1: write-back\n\
                reg03: base=0x0c0000000 ( 3072MB), size=  256MB, count=1: uncachable\n$\n";
    let object = json(&["--want", "0xe0000000+256M=WC"], text.as_bytes());
    assert!(object["registers"]["min_strict"]["UC"].is_null());
    assert_eq!(type_at(&object, 0x8000_0000), "unknown");
    assert_eq!(
        type_at(&object, 0xc000_0000),
        "UC",
        "nothing changes what is uncachable"
    );
    let (_, text) = run(&["--want", "0xe0000000+256M=WC"], text.as_bytes());
    assert!(
        text.contains("not planned: variable range 1 not in the input"),
        "{text}"
    );
    assert!(text.contains("off, or the line is missing"), "{text}");
}

#[test]
fn mail_that_quotes_without_a_space() {
    // 1 GiB of RAM, the last 16 MiB of it in no range.
    let text = ">reg00: base=0x00000000 (   0MB), size= 512MB: write-back, count=1\n\
                >reg01: base=0x20000000 ( 512MB), size= 256MB: write-back, count=1\n\
                > >reg02: base=0x30000000 ( 768MB), size= 128MB: write-back, count=1\n\
                >\n>Looks pretty normal.\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(object["registers"]["used"], 3);
    assert_eq!(type_at(&object, 0x37ff_ffff), "WB");
    assert_eq!(type_at(&object, 0x3800_0000), "UC");
}

#[test]
fn a_type_with_the_next_sentence_at_its_end() {
    let text = "reg00: base=0x000000000 (    0MB), size= 1024MB, count=1: write-back\n\
                reg01: base=0x0c0000000 ( 3072MB), size=  256MB, count=1: write-combiningThe change \
                will not last\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(type_at(&object, 0xc000_0000), "WC");
}

#[test]
fn the_verdict_on_half_a_list_is_that_it_is_half() {
    let text = "reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back\n\
                reg01: base=0x080000000 ( 2048MB), siz";
    assert_eq!(json(&[], text.as_bytes())["verdict"]["state"], "unknown");
    let text =
        "MTRR default type: uncachable\nMTRR fixed ranges enabled:\n  00000-9FFFF write-back\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(object["verdict"]["state"], "unknown");
    assert_eq!(type_at(&object, 0), "unknown", "the MTRRs may be off");
    assert!(!flat(text.as_bytes()).contains("Variable ranges:"));
}
