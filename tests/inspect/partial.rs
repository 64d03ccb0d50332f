//! A dump that lost lines must not be answered with anything that the whole dump contradicts.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{json, run};

/// Dumps that are whole, of every form that kernels and tools print.
fn wholes() -> Vec<(String, String)> {
    let dir = format!("{}/tests/data/cases", env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(dir).expect("the cases");
    let mut all: Vec<(String, String)> = entries
        .filter_map(|entry| {
            let path = entry.expect("an entry").path().join("input.txt");
            let name = path.parent()?.file_name()?.to_str()?.to_string();
            let text = String::from_utf8(std::fs::read(&path).ok()?).ok()?;
            Some((name, text))
        })
        .collect();
    all.push(("coreboot".into(), COREBOOT.into()));
    all.push(("four CPUs".into(), per_cpu(4)));
    all.push(("rdmsr".into(), rdmsr()));
    all.push(("u-boot".into(), U_BOOT.into()));
    all.push(("used to the last".into(), FULL.into()));
    all.push(("the map of 6.5".into(), KERNEL_MAP.into()));
    let windbg = String::from_utf8(super::post("233-windbg-mtrr")).expect("text");
    all.push(("windbg".into(), windbg));
    let slim = String::from_utf8(super::post("slim-bootloader-qemu")).expect("text");
    all.push(("slim bootloader".into(), slim));
    assert!(all.len() > 25, "{} dumps", all.len());
    all
}

const COREBOOT: &str = "\
MTRR: default type WB/UC MTRR counts: 8/5.
MTRR: UC selected as default type.
MTRR: 0 base 0x0000000000000000 mask 0x0000000f80000000 type 6
MTRR: 1 base 0x000000007b000000 mask 0x0000000fff000000 type 0
MTRR: 2 base 0x000000007c000000 mask 0x0000000ffc000000 type 0
MTRR: 3 base 0x0000000080000000 mask 0x0000000ff0000000 type 1
MTRR: 4 base 0x0000000100000000 mask 0x0000000f80000000 type 6

MTRR check
Fixed MTRRs   : Enabled
Variable MTRRs: Enabled
Setting up SMI for CPU
";

const U_BOOT: &str = "\
Reg Valid Write-type   Base   ||        Mask   ||        Size   ||
0   Y     Back         0000000000000000 0000007f80000000 0000000080000000
1   Y     Uncacheable  000000007f000000 0000007fff000000 0000000001000000
2   N     Uncacheable  0000000000000000 0000000000000000 0000008000000000
3   N     Uncacheable  0000000000000000 0000000000000000 0000008000000000
4   N     Uncacheable  0000000000000000 0000000000000000 0000008000000000
5   N     Uncacheable  0000000000000000 0000000000000000 0000008000000000
6   N     Uncacheable  0000000000000000 0000000000000000 0000008000000000
7   N     Uncacheable  0000000000000000 0000000000000000 0000008000000000
=>
";

/// The list of Linux 6.5 and later, and the default type.
const KERNEL_MAP: &str = "\
MTRR default type: uncachable
MTRR map: 7 entries (3 fixed + 4 variable; max 23), built from 10 variable MTRRs
  0: 0000000000000000-000000000009ffff write-back
  1: 00000000000a0000-00000000000bffff uncachable
  2: 00000000000c0000-00000000000fffff write-protect
  3: 0000000000100000-00000000adffffff write-back
  4: 00000000ae000000-00000000afffffff uncachable
  5: 00000000d0000000-00000000dfffffff write-combining
  6: 0000000100000000-000000044fffffff write-back
last_pfn = 0x450000 max_arch_pfn = 0x400000000
";

/// Every range in use, on a machine with RAM above 4 GiB.
const FULL: &str = "\
BIOS-e820: [mem 0x0000000000100000-0x00000000bfffffff] usable
BIOS-e820: [mem 0x0000000100000000-0x000000033fffffff] usable
MTRR default type: uncachable
MTRR fixed ranges enabled:
  00000-9FFFF write-back
  A0000-BFFFF uncachable
  C0000-FFFFF write-protect
MTRR variable ranges enabled:
  0 base 000000000 mask F80000000 write-back
  1 base 080000000 mask FC0000000 write-back
  2 base 100000000 mask F00000000 write-back
  3 base 200000000 mask F00000000 write-back
  4 base 300000000 mask FC0000000 write-back
  5 base 0BF000000 mask FFF000000 uncachable
  6 base 0BE000000 mask FFF000000 uncachable
  7 base 0D0000000 mask FF0000000 write-combining
x86/PAT: Configuration [0-7]: WB  WC  UC- UC  WB  WP  UC- WT
";

/// What each of `count` CPUs has, every register by number.
fn per_cpu(count: u32) -> String {
    let mut text = String::new();
    for cpu in 0..count {
        let def_type = if cpu == 2 { "0x0" } else { "0xc00" };
        let mut row = |msr: &str, value: &str| {
            text.push_str(&format!("cpu {cpu} msr {msr} value {value}\n"));
        };
        row("0xfe", "0x504");
        row("0x2ff", def_type);
        for (pair, base, mask) in [
            (0, "0x6", "0xf80000800"),
            (1, "0x80000006", "0xfc0000800"),
            (2, "0x100000006", "0xf00000800"),
            (3, "0x0", "0x0"),
        ] {
            row(&format!("{:#x}", 0x200 + 2 * pair), base);
            row(&format!("{:#x}", 0x201 + 2 * pair), mask);
        }
        row("0x250", "0x0606060606060606");
        row("0x258", "0x0606060606060606");
        row("0x259", "0x0");
        for msr in 0x268..0x270 {
            row(&format!("{msr:#x}"), "0x0505050505050505");
        }
        row("0x277", "0x0007040600070406");
    }
    text
}

/// One CPU, a command and a value in turn.
fn rdmsr() -> String {
    per_cpu(1)
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            format!("# rdmsr {}\n{}\n", words[3], &words[5][2..])
        })
        .collect()
}

fn number(value: &Value) -> u64 {
    let text = value.as_str().expect("addresses are strings");
    u64::from_str_radix(&text[2..], 16).expect("hexadecimal")
}

/// The type at `addr`, or what says that it is not known.
fn at(object: &Value, addr: u64) -> Option<String> {
    let runs = object["map"].as_array().expect("a list");
    let run = runs
        .iter()
        .find(|run| (number(&run["start"])..=number(&run["end"])).contains(&addr))?;
    let name = run["type"].as_str().expect("a name");
    (name != "unknown").then(|| name.to_string())
}

/// Whether `part` says that it holds only if nothing is cut off: where a list leaves out what is off,
/// and ends with the input, nothing else can tell.
fn conditional(part: &Value) -> bool {
    let missing = part["missing"].as_array().expect("a list");
    let says = |sentence: &Value| {
        sentence
            .as_str()
            .is_some_and(|s| s.contains("if none is cut off"))
    };
    part["complete"].is_null() && missing.iter().any(says)
}

/// What `part` says although `whole` says otherwise.
fn contradictions(part: &Value, whole: &Value) -> Vec<String> {
    let mut out = Vec::new();
    if part["cpus"][0]["cpu"] != whole["cpus"][0]["cpu"] {
        // The map is another CPU's.
        return out;
    }
    let mut differ = |what: &str, a: &Value, b: &Value| {
        if !a.is_null() && !b.is_null() && a != b {
            out.push(format!("{what}: {a}, whole: {b}"));
        }
    };
    for key in ["enabled", "fixed_enabled", "default", "pat"] {
        differ(key, &part[key], &whole[key]);
    }
    if part["phys_bits_from"] != "assumed" {
        differ("phys_bits", &part["phys_bits"], &whole["phys_bits"]);
    }
    differ(
        "total",
        &part["registers"]["total"],
        &whole["registers"]["total"],
    );
    for ranges in part["variable"].as_array().into_iter().flatten() {
        let index = ranges["index"].as_u64().expect("a number") as usize;
        for key in ["valid", "base", "type"] {
            differ(
                &format!("range {index} {key}"),
                &ranges[key],
                &whole["variable"][index][key],
            );
        }
    }
    for (cpu, standing) in part["cpus"].as_array().into_iter().flatten().enumerate() {
        let cpus = whole["cpus"].as_array().expect("a list");
        let same = cpus.iter().find(|other| other["cpu"] == standing["cpu"]);
        for group in standing["differs"].as_array().into_iter().flatten() {
            let there =
                same.is_some_and(|s| s["differs"].as_array().expect("a list").contains(group));
            if !there {
                out.push(format!("CPU {cpu} differs in {group}"));
            }
        }
    }
    let may_be_off = part["enabled"].is_null() && whole["enabled"] == false;
    if conditional(part) || may_be_off {
        return out;
    }
    let edges = [part, whole].into_iter().flat_map(|object| {
        let runs = object["map"].as_array().into_iter().flatten();
        runs.flat_map(|run| [number(&run["start"]), number(&run["end"])])
    });
    let mut types: BTreeMap<u64, String> = BTreeMap::new();
    for addr in edges {
        match (at(part, addr), at(whole, addr)) {
            (Some(a), Some(b)) if a != b => {
                types.insert(addr, format!("{addr:#x} is {a}, whole: {b}"));
            }
            _ => {}
        }
    }
    out.extend(types.into_values().take(3));
    let said = |object: &Value| -> Vec<(String, String)> {
        let findings = object["findings"].as_array().expect("a list");
        findings
            .iter()
            .map(|f| {
                (
                    f["kind"].as_str().unwrap_or("").into(),
                    f["text"].as_str().unwrap_or("").into(),
                )
            })
            .collect()
    };
    let there = said(whole);
    for (kind, text) in said(part) {
        let about_input =
            ["incomplete", "unreadable-line", "kernel-message"].contains(&kind.as_str());
        let conditional =
            text.contains("if no range is cut off") || text.contains("the dump does not say");
        if !about_input && !conditional && !there.iter().any(|(k, _)| *k == kind) {
            out.push(format!("{kind}: {text}"));
        }
    }
    out
}

/// The parts of `text` and how each was made.
fn parts(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let join = |lines: &[&str]| {
        lines
            .iter()
            .map(|line| format!("{line}\n"))
            .collect::<String>()
    };
    let mut out = Vec::new();
    for at in 1..lines.len() {
        out.push((format!("the first {at} lines"), join(&lines[..at])));
        out.push((format!("from line {}", at + 1), join(&lines[at..])));
    }
    let back: Vec<&str> = lines.iter().rev().copied().collect();
    out.push(("reversed".into(), join(&back)));
    out.push(("twice".into(), join(&[&lines[..], &lines[..]].concat())));
    let each: Vec<&str> = lines.iter().flat_map(|line| [*line, *line]).collect();
    out.push(("each line twice".into(), join(&each)));
    for at in 1..lines.len() {
        let rest = [&lines[..], &lines[..at]].concat();
        out.push((format!("twice, the second time {at} lines"), join(&rest)));
        // Journals are read backwards, what a shell printed is not.
        if text.contains("# rdmsr") {
            continue;
        }
        let mut rest = back.clone();
        rest.remove(at);
        out.push((
            format!("reversed, without line {}", lines.len() - at),
            join(&rest),
        ));
        out.push((format!("reversed, the first {at} lines"), join(&back[..at])));
        out.push((format!("reversed, from line {}", at + 1), join(&back[at..])));
    }
    for at in 0..lines.len() {
        let mut rest = lines.clone();
        rest.remove(at);
        out.push((format!("without line {}", at + 1), join(&rest)));
        // Half a number is a number: nothing shows it where there is nothing else.
        if text.contains("rdmsr") || text.contains("msr 0x") {
            continue;
        }
        let mut garbled = lines.clone();
        let half = &lines[at][..lines[at].len() / 2];
        garbled[at] = half;
        out.push((format!("line {} cut in the middle", at + 1), join(&garbled)));
    }
    out
}

#[test]
fn no_part_of_a_dump_is_answered_against_the_whole() {
    let mut tried = 0;
    let mut failed = Vec::new();
    for (name, text) in wholes() {
        let whole = json(&[], text.as_bytes());
        for (how, part) in parts(&text) {
            let (code, answer) = run(&["--json"], part.as_bytes());
            if code == 2 {
                continue;
            }
            let object: Value = serde_json::from_str(&answer).expect("JSON");
            let wrong = contradictions(&object, &whole);
            if !wrong.is_empty() {
                failed.push(format!("{name}, {how}: {wrong:#?}"));
            }
            tried += 1;
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {tried}:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert!(tried > 500, "{tried} parts");
}

#[test]
fn order_and_repetition_change_nothing() {
    for (name, text) in wholes() {
        let whole = json(&[], text.as_bytes());
        for (how, part) in parts(&text) {
            if !["reversed", "twice", "each line twice"].contains(&how.as_str()) {
                continue;
            }
            let object = json(&[], part.as_bytes());
            for key in [
                "map",
                "variable",
                "registers",
                "enabled",
                "default",
                "cpus",
                "pat",
            ] {
                assert_eq!(object[key], whole[key], "{name}, {how}: {key}");
            }
            assert_eq!(object["changes"], whole["changes"], "{name}, {how}");
        }
    }
}
