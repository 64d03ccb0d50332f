//! More than one state of the registers in one input: compared, the difference first.

use super::{case, json, post, run, type_at};

/// The text report with single spaces.
fn flat(text: &[u8]) -> String {
    let (_, text) = run(&["--color=never"], text);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_diff_of_two_proc_mtrr() {
    let text = post("210-proc-mtrr-diff");
    let object = json(&[], &text);
    // The later state is the one the report is about.
    assert_eq!(type_at(&object, 0xc7ff_ffff), "WB");
    assert_eq!(type_at(&object, 0xc800_0000), "UC");
    assert_eq!(object["registers"]["used"], 3);
    let changes = object["changes"].as_array().expect("a list");
    assert_eq!(changes.len(), 1, "{object}");
    let memory = serde_json::json!([
        { "start": "0xc8000000", "end": "0xcfffffff", "before": "WB", "after": "UC" }
    ]);
    assert_eq!(changes[0]["memory"], memory);
    let (code, _) = run(&[], &text);
    assert_eq!(code, 1);
    let text = flat(&text);
    assert!(!text.contains("nothing wrong"), "{text}");
    let change = text.find("0xc8000000-0xcfffffff (128 MiB): write-back, then uncachable");
    let map = text.find("Memory map").expect("a map");
    assert!(
        change.expect("the change") < map,
        "the difference first: {text}"
    );
    assert!(
        text.contains("variable range 2: 0xc0000000+256 MiB write-back, then 0xc0000000+128 MiB"),
        "{text}"
    );
}

const PROC: &str = "\
reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back
reg01: base=0x080000000 ( 2048MB), size= 1024MB, count=1: write-back
reg02: base=0x0d0000000 ( 3328MB), size=  256MB, count=1: write-combining
";

#[test]
fn two_proc_mtrr_of_which_the_second_has_less() {
    let less: String = PROC
        .lines()
        .take(2)
        .map(|line| format!("{line}\n"))
        .collect();
    for between in ["", "\n$ cat /proc/mtrr   # after resume\n", "after:\n"] {
        let text = format!("before:\n{PROC}{between}{less}$\n");
        let object = json(&[], text.as_bytes());
        let changes = object["changes"].as_array().expect("a list");
        assert_eq!(changes.len(), 1, "{text}");
        assert_eq!(changes[0]["memory"][0]["start"], "0xd0000000");
        assert_eq!(changes[0]["memory"][0]["after"], "UC");
        assert!(
            flat(text.as_bytes())
                .contains("variable range 2: 0xd0000000+256 MiB write-combining, then off")
        );
    }
    let same = format!("{PROC}\n{PROC}");
    assert_eq!(json(&[], same.as_bytes())["changes"], serde_json::json!([]));
}

#[test]
fn two_boots() {
    let text = String::from_utf8(case("042-ds620slim-39bit")).expect("text");
    let other = text.replace(
        "  2 base 007B000000 mask 7FFF000000 uncachable",
        "  2 disabled",
    );
    let object = json(&[], format!("{text}{other}").as_bytes());
    assert_eq!(
        object["changes"][0]["memory"],
        serde_json::json!([
            { "start": "0x7b000000", "end": "0x7bffffff", "before": "UC", "after": "WB" }
        ])
    );
    assert_eq!(type_at(&object, 0x7b00_0000), "WB");
    let object = json(&[], format!("{other}{text}{other}").as_bytes());
    assert_eq!(object["changes"].as_array().map(Vec::len), Some(2));
}

#[test]
fn registers_before_and_after_sleep() {
    let list = |cpu: u32, def_type: &str, mask: &str| {
        let mut text = String::new();
        for (msr, value) in [
            ("0xfe", "0x402"),
            ("0x2ff", def_type),
            ("0x200", "0x6"),
            ("0x201", mask),
            ("0x203", "0x0"),
        ] {
            text.push_str(&format!("cpu {cpu} msr {msr} value {value}\n"));
        }
        text
    };
    let before = format!(
        "{}{}",
        list(0, "0x800", "0xf80000800"),
        list(1, "0x800", "0xf80000800")
    );
    let after = format!(
        "{}{}",
        list(0, "0x800", "0xf80000800"),
        list(1, "0x0", "0x0")
    );
    let object = json(
        &[],
        format!("before S3\n{before}after S3\n{after}").as_bytes(),
    );
    assert_eq!(
        object["changes"][0]["registers"],
        serde_json::json!(["CPU 1 changed in: variable, default"])
    );
    assert_eq!(
        object["cpus"][1]["differs"],
        serde_json::json!(["variable", "default"])
    );
    // One register again, with another value: only that changed.
    let text = format!(
        "{}cpu 0 msr 0x2ff value 0xc06\n",
        list(0, "0x800", "0xf80000800")
    );
    let object = json(&[], text.as_bytes());
    let registers = object["changes"][0]["registers"]
        .as_array()
        .expect("a list");
    assert_eq!(registers.len(), 2, "{registers:?}");
    assert_eq!(object["default"], "WB");
}

#[test]
fn a_list_with_dashes_is_no_diff() {
    let text: String = PROC.lines().map(|line| format!("- {line}\n")).collect();
    let object = json(&[], text.as_bytes());
    assert_eq!(object["registers"]["used"], 3);
    assert_eq!(object["changes"], serde_json::json!([]));
}

#[test]
fn u_boot_before_and_after_a_command() {
    let row = |number: u32, valid: char, name: &str, base: u64, mask: u64, size: u64| {
        format!("{number}   {valid}     {name:<12} {base:016x} {mask:016x} {size:016x}\n")
    };
    let list = |valid: char| {
        let mut text =
            "=> mtrr\nCPU 0:\nReg Valid Write-type   Base   ||        Mask   ||        Size   ||\n"
                .to_string();
        text += &row(0, 'Y', "Back", 0, 0xf_8000_0000, 0x8000_0000);
        text += &row(1, 'Y', "Back", 0x8000_0000, 0xf_e000_0000, 0x2000_0000);
        text += &row(2, valid, "Combine", 0xd000_0000, 0xf_f000_0000, 0x1000_0000);
        for number in 3..8 {
            text += &row(number, 'N', "Uncacheable", 0, 0, 0x10_0000_0000);
        }
        text
    };
    let text = format!("{}=> mtrr disable 2\n{}=> \n", list('Y'), list('N'));
    let object = json(&[], text.as_bytes());
    assert_eq!(object["changes"][0]["memory"][0]["before"], "WC");
    assert_eq!(object["changes"][0]["memory"][0]["start"], "0xd0000000");
    let registers = object["changes"][0]["registers"]
        .as_array()
        .expect("a list");
    assert_eq!(registers.len(), 1, "{registers:?}");
    assert_eq!(object["registers"]["used"], 2);
    assert_eq!(object["cpus"].as_array().map(Vec::len), Some(1));
}

#[test]
fn two_machines_in_one_post() {
    // Ranges between were freed: /proc/mtrr leaves them out, as it would a lost line.
    let text = "The first one:\n\
                reg00: base=0x00000000 (   0MB), size= 512MB: write-back, count=1\n\
                reg01: base=0x20000000 ( 512MB), size= 256MB: write-back, count=1\n\
                reg02: base=0xd4000000 (3392MB), size=  32MB: write-combining, count=2\n\
                reg05: base=0xd0000000 (3328MB), size=  64MB: write-combining, count=2\n\n\
                The second one:\n\
                reg00: base=0x00000000 (   0MB), size= 256MB: write-back, count=1\n\
                reg05: base=0xd0000000 (3328MB), size=  64MB: write-combining, count=1\n\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(object["complete"], false);
    assert_eq!(
        object["changes"][0]["memory"],
        serde_json::json!([]),
        "nothing is certain"
    );
    let registers = object["changes"][0]["registers"].to_string();
    assert!(
        registers.contains("variable range 0: 0x0+512 MiB write-back, then 0x0+256 MiB"),
        "{registers}"
    );
    assert!(!registers.contains("variable range 1"), "{registers}");
    let text = flat(text.as_bytes());
    assert!(text.contains("two states, or two machines"), "{text}");
    assert!(
        text.contains("variable ranges 1-4 are not in the input (off, or the line is missing)"),
        "{text}"
    );
}

#[test]
fn a_log_and_the_proc_mtrr_that_came_with_it() {
    let log = String::from_utf8(case("042-ds620slim-39bit")).expect("text");
    let list = "reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back\n\
                reg01: base=0x07c000000 ( 1984MB), size=   64MB, count=1: uncachable\n\
                reg02: base=0x07b000000 ( 1968MB), size=   16MB, count=1: uncachable\n\
                reg03: base=0x100000000 ( 4096MB), size= 4096MB, count=1: write-back\n\
                reg04: base=0x200000000 ( 8192MB), size= 2048MB, count=1: write-back\n";
    let object = json(&[], format!("{log}{list}").as_bytes());
    assert_eq!(object["changes"], serde_json::json!([]));
    let more = "reg05: base=0x0d0000000 ( 3328MB), size=  256MB, count=1: write-combining\n";
    let object = json(&[], format!("{log}{list}{more}").as_bytes());
    assert_eq!(object["changes"][0]["memory"][0]["after"], "WC");
    let text = flat(format!("{log}{list}{more}").as_bytes());
    assert!(
        text.contains("Changed from the log to /proc/mtrr"),
        "{text}"
    );
    assert!(
        text.contains("variable range 5: off, then 0xd0000000+256 MiB write-combining"),
        "{text}"
    );
}
