//! What a telephone read off the kernel example's screen.

use super::{json, run, type_at};

const BOOT: [&str; 2] = [
    "MTRR-PAT 1/1 BOOT CPU 0 BITS 40 AMD VM FE: 508 2FF: C06 200: 80000000 FF80000800 0*14 250: 606060606060606 258: 606060606060606 0 268: 505050505050505*8 277: 7040600070406 END",
    "MTRR-PAT 1/1 BOOT CPU 1-3 BITS 40 AMD VM FE: 508 2FF: 0 200: 0*16 250: 0 258: 0*2 268: 0*8 277: 7040600070406 END",
];

/// As from a text screen: a state in two parts. After a sleep, first what the kernel had set.
const WAKE: [&str; 3] = [
    "MTRR-PAT 1/1 SET CPU 0-3 BITS 40 AMD FE: 508 2FF: C06 200: 80000000 FF80000800 8000000001 FFFF000800 0*12 250: 606060606060606 258: 606060606060606 0 268: 505050505050505*8 277: 7010500070406 END",
    "MTRR-PAT 1/2 WAKE CPU 0-3 BITS 40 AMD FE: 508 2FF: C06 200: 80000000 FF80000800 0*14 END",
    "MTRR-PAT 2/2 WAKE CPU 0-3 BITS 40 AMD 250: 606060606060606 258: 606060606060606 0 268: 505050505050505*8 277: 7040600070406 END",
];

#[test]
fn every_register_is_read() {
    let object = json(&[], BOOT.join("\n").as_bytes());
    assert_eq!(object["phys_bits"], 40);
    assert_eq!(object["registers"]["used"], 1);
    assert_eq!(object["registers"]["total"], 8);
    for (addr, want) in [
        (0, "WB"),
        (0xa_0000, "UC"),
        (0xc_0000, "WP"),
        (0x8000_0000, "UC"),
    ] {
        assert_eq!(type_at(&object, addr), want, "{addr:#x}");
    }
    let differ = object["cpus"].as_array().expect("a list");
    let others: Vec<_> = differ.iter().filter(|cpu| cpu["cpu"] != 0).collect();
    assert_eq!(others.len(), 3, "{object}");
    assert_eq!(object["verdict"]["state"], "wrong", "three CPUs are off");
    assert_eq!(object["complete"], true, "{object}");
}

/// The order in which somebody scans them does not matter, nor do missing newlines.
#[test]
fn in_any_order() {
    let all: Vec<&str> = BOOT.into_iter().chain(WAKE).collect();
    let wanted = json(&[], all.join("\n").as_bytes());
    let changes = wanted["changes"].as_array().expect("a list");
    assert_eq!(changes.len(), 2, "boot, set, wake: {wanted}");
    assert_eq!(changes[0]["memory"][0]["after"], "WC");
    assert_eq!(changes[1]["memory"][0]["before"], "WC");
    for turn in 0..all.len() {
        let mut turned = all.clone();
        turned.rotate_left(turn);
        for between in ["\n", " ", "", "\n\nsent from my telephone\n"] {
            for quote in ["", "> "] {
                let text: Vec<String> =
                    turned.iter().map(|code| format!("{quote}{code}")).collect();
                let got = json(&[], text.join(between).as_bytes());
                for key in ["map", "variable", "registers", "cpus", "pat", "verdict"] {
                    assert_eq!(
                        got[key], wanted[key],
                        "{key}, {turn}, {between:?}, {quote:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_part_that_is_missing_is_named() {
    for (without, named) in [(1, "1"), (2, "2")] {
        let rest: Vec<&str> = WAKE
            .into_iter()
            .enumerate()
            .filter_map(|(n, code)| (n != without).then_some(code))
            .collect();
        let (_, text) = run(&["--color=never"], rest.join("\n").as_bytes());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            text.contains(&format!("of 2 codes with WAKE, CPU 0, not here: {named}")),
            "{text}"
        );
        let (_, whole) = run(&["--color=never"], WAKE.join("\n").as_bytes());
        assert!(!whole.contains("not here"), "{whole}");
    }
}

/// Cut anywhere: what is left is read, and never says what the whole contradicts.
#[test]
fn cut_anywhere() {
    let whole = json(&[], WAKE[0].as_bytes());
    for end in 0..WAKE[0].len() {
        let (code, out) = run(&["--json"], &WAKE[0].as_bytes()[..end]);
        if code == 2 {
            continue;
        }
        let part: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_ne!(part["verdict"]["state"], "fine", "{end}: {out}");
        for range in part["map"].as_array().expect("a list") {
            let start = range["start"].as_str().expect("an address");
            let start = u64::from_str_radix(&start[2..], 16).expect("hexadecimal");
            let (said, right) = (
                range["type"].as_str().expect("a type"),
                type_at(&whole, start),
            );
            assert!(
                said == "unknown" || said == right,
                "{end}: {start:#x} {said}, not {right}"
            );
        }
    }
}

/// Numbers that nobody prints are no reason to stop.
#[test]
fn nonsense() {
    for text in [
        "MTRR-PAT",
        "MTRR-PAT 1/1",
        "MTRR-PAT 9/0 WAKE CPU 0 FE: 1 END",
        "MTRR-PAT 1/4000000000 BOOT CPU 0-4294967295 BITS 999 FE: 508 END",
        "MTRR-PAT 1/1 BOOT CPU 5-3,x BITS 40 FFFFFFFF: 1*255 1 END",
        "MTRR-PAT 1/1 BOOT CPU 0 200: FFFFFFFFFFFFFFFFF END",
        "MTRR-PAT 1/1 BOOT CPU 0 200: 1*999 END",
        "MTRR-PAT MTRR-PAT MTRR-PAT 1/1 NEVER CPU 0 FE: 508 END",
    ] {
        run(&[], text.as_bytes());
        run(&["--json"], text.as_bytes());
    }
}

/// What else is pasted with the codes is not lost: the kernel's own lines say no more than they do, other registers are a state.
#[test]
fn beside_others() {
    let wanted = json(&[], BOOT.join("\n").as_bytes());
    let log = format!(
        "round 0 cpu 0 apic 0 | before E=0 | after E=1 FE=1 default=6 ranges=1 pat=0407050600070106 differs=0\n| text\n{}\n",
        BOOT.map(|code| format!("screen: code {code}")).join("\n")
    );
    let got = json(&[], log.as_bytes());
    for key in ["map", "variable", "registers", "cpus"] {
        assert_eq!(got[key], wanted[key], "{key}");
    }
    let other = "reg00: base=0x0e0000000 ( 3584MB), size=  512MB, count=1: uncachable\n";
    let got = json(&[], format!("{other}{}\n", BOOT[0]).as_bytes());
    assert_eq!(got["changes"].as_array().map(Vec::len), Some(1), "{got}");
    assert_eq!(type_at(&got, 0x8000_0000), "UC");
}
