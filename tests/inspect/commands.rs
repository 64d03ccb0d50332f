//! The lines for /proc/mtrr, run one by one on a model of Linux's /proc/mtrr: for every dump there
//! is, the end must be the layout printed above them, and memory must fare well on the way.

use super::linux_mtrr::{Kernel, Range};
use super::{json, run};

/// A layout of the text report with its lines.
#[derive(Debug, Default)]
struct Printed {
    default: String,
    layout: Vec<Range>,
    lines: Vec<String>,
    /// What is said to happen in between.
    uncached: bool,
    exposed: bool,
}

/// The layouts of a report, in order.
fn printed(text: &str, bits: u64) -> Vec<Printed> {
    let hex = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).ok();
    let mut out: Vec<Printed> = Vec::new();
    let mut rows = false;
    for line in text.lines() {
        if let Some(rest) = line.trim().strip_prefix("layout (default ") {
            let default = rest.trim_end_matches("):").to_string();
            out.push(Printed {
                default,
                ..Printed::default()
            });
            rows = true;
            continue;
        }
        let Some(last) = out.last_mut() else { continue };
        let words: Vec<&str> = line.split_whitespace().collect();
        if let (true, [_, base, mask, .., name]) = (rows, words.as_slice())
            && let (Some(base), Some(mask)) = (hex(base), hex(mask))
            && line.starts_with("  ")
        {
            let mask = mask & !0xfff;
            let size = (!mask & ((1 << bits) - 1)) + 1;
            last.layout.push(Range::new(base & !0xfff, size, name));
            continue;
        }
        rows &= line.contains("PHYSBASE");
        last.uncached |= line.contains("RAM is uncached in between");
        last.exposed |= line.contains("where a device may be");
        if line.trim().starts_with("echo ") {
            last.lines.push(line.trim().to_string());
        }
    }
    out
}

/// All dumps, by name.
fn dumps() -> Vec<(String, Vec<u8>)> {
    let mut out = Vec::new();
    for folder in ["cases", "posts"] {
        let root = format!("{}/tests/data/{folder}", env!("CARGO_MANIFEST_DIR"));
        for entry in std::fs::read_dir(root).expect("a folder").flatten() {
            let path = entry.path().join("input.txt");
            if let Ok(bytes) = std::fs::read(path) {
                out.push((entry.file_name().to_string_lossy().into_owned(), bytes));
            }
        }
    }
    out.sort();
    assert!(out.len() > 30, "only {} dumps", out.len());
    out
}

#[test]
fn every_line_is_taken_and_leads_to_the_layout_above() {
    let mut seen = 0;
    let wishes: [&[&str]; 6] = [
        &[],
        &["--want", "0xe0000000+256M=WC"],
        &["--want", "0xd0000000+16M=WC", "--want", "0xf0000000+1M=UC"],
        &["--want", "0x30000000+64M=WC"],
        &["--want", "0x100000000+2G=WB"],
        &[
            "--want",
            "0x20000000+512M=UC",
            "--want",
            "0x40000000+512M=WT",
        ],
    ];
    for (name, input) in dumps() {
        for options in wishes {
            seen += check(&format!("{name} {options:?}"), options, &input);
        }
    }
    assert!(seen > 60, "only {seen} lists of lines");
}

/// Runs all lists of lines that `options` give for one dump; how many there were.
fn check(name: &str, options: &[&str], input: &[u8]) -> usize {
    let (code, text) = run(&[&["--color=never"], options].concat(), input);
    if code == 2 || !text.contains("echo ") {
        return 0;
    }
    let object = json(options, input);
    let mut seen = 0;
    for printed in printed(&text, object["phys_bits"].as_u64().expect("bits")) {
        if printed.lines.is_empty() {
            continue;
        }
        seen += 1;
        let mut kernel = Kernel::of(&object, &printed.default);
        assert_eq!(kernel.default_name(), printed.default, "{name}");
        let before = kernel.clone();
        let mut after = kernel.clone();
        after.hold(&printed.layout);
        let mut harm = (false, false);
        for line in &printed.lines {
            kernel
                .write(line)
                .unwrap_or_else(|why| panic!("{name}: {line}: {why}\n{text}"));
            let now = kernel.harm(&before, &after);
            harm = (harm.0 || now.0, harm.1 || now.1);
        }
        assert_eq!(kernel.sorted(), after.sorted(), "{name}\n{text}");
        assert_eq!(
            harm,
            (printed.uncached, printed.exposed),
            "{name}: said and done\n{text}"
        );
        let most = before.used() + after.arriving(&before) + before.leaving(&after);
        if most <= before.total() {
            assert!(!harm.0, "{name}: registers are free\n{text}");
            // Linux takes no part of an uncachable range while that range is there.
            assert!(
                !harm.1 || before.is_split(&after),
                "{name}: registers are free\n{text}"
            );
        }
    }
    seen
}

#[test]
fn the_model_does_what_linux_does() {
    let mut kernel = Kernel::blank(3);
    let mut write = |line: &str| kernel.write(&format!("echo \"{line}\" > /proc/mtrr"));
    assert!(write("base=0x0 size=0x80000000 type=write-back").is_ok());
    // Inside one of its own type it would only be counted; over another type it is refused.
    assert!(write("base=0x1000 size=0x1000 type=write-back").is_err());
    assert!(write("base=0x1000 size=0x1000 type=write-combining").is_err());
    assert!(write("base=0x1000 size=0x1000 type=uncachable").is_ok());
    assert!(write("base=0x40000000 size=0x40000000 type=write-through").is_ok());
    assert!(
        write("base=0x80000000 size=0x1000 type=write-back").is_err(),
        "no slot"
    );
    // Around one of its own type it takes that one's place.
    assert!(write("base=0x0 size=0x100000000 type=write-back").is_ok());
    assert!(
        write("base=0x3000 size=0x2000 type=uncachable").is_err(),
        "not aligned"
    );
    assert!(write("disable=3").is_err(), "no such register");
    assert!(write("disable=1").is_ok());
    assert!(write("disable=1").is_err(), "not used");
    assert_eq!(kernel.used(), 2);
}
