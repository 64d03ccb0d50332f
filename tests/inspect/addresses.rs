//! Addresses: every one that is printed says that it is hexadecimal, and can be given back.

use super::{case, json, refused, run, type_at};

/// The names of all cases that have a dump.
fn names() -> Vec<String> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/cases");
    let entries = std::fs::read_dir(folder).expect("the cases are there");
    let names: Vec<String> = entries
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.join("input.txt").exists())
        .map(|path| path.file_name().expect("a name").to_string_lossy().into())
        .collect();
    assert!(names.len() > 20);
    names
}

/// A word that is a hexadecimal number for sure, and does not say so.
fn bare(word: &str) -> bool {
    let letters = word.contains(|c: char| c.is_ascii_alphabetic());
    let digits = word.contains(|c: char| c.is_ascii_digit());
    word.len() >= 4
        && word.chars().all(|c| c.is_ascii_hexdigit())
        && digits
        && (letters || word.starts_with('0'))
}

#[test]
fn no_number_leaves_out_its_0x() {
    for name in names() {
        let (_, text) = run(
            &["--color=never", "--want", "0xe0000000+256M=WC"],
            &case(&name),
        );
        // A kernel's own words are quoted as they are.
        let own = text.lines().filter(|line| !line.contains("kernel says"));
        for line in own {
            let mut words = line.split(|c: char| !c.is_ascii_alphanumeric());
            assert!(!words.any(bare), "{name}: {line}");
        }
    }
}

#[test]
fn what_the_map_prints_can_be_given_back() {
    let mut rows = 0;
    for name in names() {
        let input = case(&name);
        let (_, text) = run(&["--color=never"], &input);
        let Some(map) = text.split("Memory map\n").nth(1) else {
            continue;
        };
        let object = json(&[], &input);
        let table = map.split("\n\n").next().expect("a table");
        let columns: Vec<Option<usize>> = table.lines().skip(2).map(|l| l.find('-')).collect();
        assert!(columns.iter().all(|at| *at == columns[0]), "{table}");
        for row in table.lines().skip(2) {
            let range = row.split_whitespace().next().expect("a range");
            for addr in range.split('-') {
                let (code, answer) = run(&["--type", addr], &input);
                let number = u64::from_str_radix(&addr[2..], 16).expect("hexadecimal");
                let begin = format!("{number:#x}: {} ", type_at(&object, number));
                assert_eq!(code, 0);
                assert!(answer.starts_with(&begin), "{name}: {addr}: {answer}");
                rows += 1;
            }
        }
    }
    assert!(rows > 100, "{rows} addresses");
}

#[test]
fn the_tables_are_aligned() {
    let (_, text) = run(&["--color=never"], &case("053-m2a-vm-k8-40bit"));
    for part in [
        "\n 0x0 ",
        "\n  0x0000000000-0x000009ffff     640 KiB  write-back       fixed ranges\n",
        "\n  0x0077f00000-0xffffffffff  1022.1 GiB  uncachable       ranges 3 4\n",
        "\n   0  base 0x0000000000  mask 0xffc0000000       1 GiB  write-back\n",
        "\n   4  base 0x0077f00000  mask 0xfffff00000       1 MiB  uncachable\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in:\n{text}");
    }
}

#[test]
fn numbers_without_a_base_are_refused() {
    let input = case("053-m2a-vm-k8-40bit");
    for (options, advice) in [
        (["--type", "0483800000"], "write 0x0483800000, or 483800000"),
        (["--type", "047f800000"], "write 0x047f800000"),
        (["--type", "e0000000"], "write 0xe0000000"),
        (["--type", "80000000h"], "write 0x80000000"),
        (["--type", "00"], "write 0x00, or 0 for decimal"),
        (["--want", "0100000000-0100ffffff=WC"], "write 0x0100ffffff"),
        (["--want", "0100000000-0x100ffffff=WC"], "write 0x010000000"),
        (["--want", "0100000000+16M=WC"], "write 0x0100000000"),
        (["--want", "0x100000000/01000000=WC"], "write 0x01000000"),
        (["--want", "0x100000000+016M=WC"], "write 16M"),
    ] {
        let why = refused(&options, &input);
        assert!(why.contains(options[1]) && why.contains(advice), "{why}");
    }
    let answer = |addr| run(&["--type", addr], &input).1;
    assert_eq!(answer("2012217344"), answer("0x77f00000"));
    assert_eq!(answer("1919M"), answer("0x77f00000"));
    assert!(answer("1919M").starts_with("0x77f00000: UC"));
    assert!(answer("0").starts_with("0x0: WB"));
}

#[test]
fn the_help_says_how_numbers_are_read() {
    let (code, help) = run(&["--help"], b"");
    assert_eq!(code, 0);
    let flat = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "0x and hexadecimal digits, or decimal, which K, M, G or T may follow",
        "Without 0x, hexadecimal digits are refused, and so is a decimal number with a zero",
    ] {
        assert!(flat.contains(part), "{help}");
    }
}

#[test]
fn a_picture_says_0x_too() {
    let path = std::env::temp_dir().join(format!("inspect-{}.svg", std::process::id()));
    let option = path.to_str().expect("a plain path");
    let (code, _) = run(&["--svg", option], &case("053-m2a-vm-k8-40bit"));
    let picture = std::fs::read_to_string(&path).expect("it was written");
    std::fs::remove_file(&path).expect("it is there");
    assert_eq!(code, 0);
    assert!(picture.contains(">0x77f00000</text>"), "{picture}");
}
