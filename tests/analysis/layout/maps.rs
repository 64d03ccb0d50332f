//! The maps of `tests/data/layout`.

use std::fs;
use std::path::Path;

use mtrr_pat::layout::{FixedRanges, Region, Unlisted};
use mtrr_pat::memtype::MemType;

use super::naive::Problem;

/// Every map with its name, in the order of names.
pub fn all() -> Vec<(String, Problem)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/layout");
    let files = fs::read_dir(folder).expect("the maps are there");
    let mut maps: Vec<_> = files
        .map(|file| file.expect("a map can be listed").path())
        .filter(|path| path.extension().is_some_and(|end| end == "map"))
        .map(|path| {
            let text = fs::read_to_string(&path).expect("a map can be read");
            let name = path.file_stem().expect("a map has a name");
            (name.to_string_lossy().into_owned(), parsed(&text))
        })
        .collect();
    maps.sort_by(|a, b| a.0.cmp(&b.0));
    maps
}

fn parsed(text: &str) -> Problem {
    let mut problem = Problem::new(52, Vec::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["width", bits] => {
                let bits = bits.parse().expect("a width is a number");
                problem = Problem::new(bits, Vec::new());
            }
            ["fixed", "on"] => problem.fixed = FixedRanges::On,
            ["fixed", "off"] => problem.fixed = FixedRanges::Off,
            ["unlisted", "uncachable"] => problem.unlisted = Unlisted::Uncachable,
            ["unlisted", "dont-care"] => problem.unlisted = Unlisted::DontCare,
            ["top_mem2", addr] => problem.top_mem2 = address(addr),
            [kind @ ("ram" | "mmio"), start, end, name] => {
                let mut types = MemType::ALL.into_iter();
                let memtype = types.find(|memtype| memtype.short() == name);
                let make = if kind == "ram" {
                    Region::ram
                } else {
                    Region::mmio
                };
                let memtype = memtype.expect("a type is one of five");
                problem
                    .regions
                    .push(make(address(start), address(end), memtype));
            }
            _ => panic!("not a line of a map: {line}"),
        }
    }
    problem
}

fn address(word: &str) -> u64 {
    let digits = word.strip_prefix("0x").expect("addresses start with 0x");
    u64::from_str_radix(digits, 16).expect("addresses are hexadecimal")
}
