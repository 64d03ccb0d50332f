//! Lost newlines: a line that holds several records is split where each begins.

use super::read_msr;
use super::words;

/// The records of `line`; one when it holds no more.
pub fn split(line: &str) -> Vec<&str> {
    let starts = starts(line);
    if starts.len() < 2 {
        return vec![line];
    }
    let mut from = 0;
    let mut out = Vec::new();
    for start in starts.into_iter().chain([line.len()]) {
        let piece = line.get(from..start).unwrap_or("");
        if !piece.trim().is_empty() {
            out.push(piece);
        }
        from = start;
    }
    out
}

/// Where records begin: at time stamps if there are several, else at the words that open one.
fn starts(line: &str) -> Vec<usize> {
    let stamps: Vec<usize> = line
        .match_indices('[')
        .map(|(at, _)| at)
        .filter(|at| is_stamp(line.get(*at..).unwrap_or("")))
        .collect();
    if stamps.len() > 1 {
        return stamps;
    }
    let words: Vec<(usize, &str)> = line
        .split_whitespace()
        .map(|word| (word.as_ptr() as usize - line.as_ptr() as usize, word))
        .collect();
    let mut starts = Vec::new();
    let mut next = None;
    for (n, (at, _)) in words.iter().enumerate() {
        let opened = opens(words.get(n..).unwrap_or_default());
        if opened.is_some() || next == Some(n) {
            starts.push(*at);
        }
        if let Some(length) = opened {
            next = (length > 0).then_some(n + length);
        }
    }
    starts
}

/// `[    0.000000]`
fn is_stamp(text: &str) -> bool {
    let Some((inside, _)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) else {
        return false;
    };
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    inside.len() < 20
        && inside
            .trim()
            .split_once('.')
            .is_some_and(|(seconds, rest)| digits(seconds) && rest.len() == 6 && digits(rest))
}

/// Whether a record begins at the first of `words`, and how many words it has; 0 when that varies.
fn opens(record: &[(usize, &str)]) -> Option<usize> {
    let word = |n: usize| record.get(n).map_or("", |(_, word)| *word);
    let number = |word: &str| word.parse::<u8>().is_ok();
    let (first, second) = (word(0), word(1));
    let varies = |opens: bool| opens.then_some(0);
    match first {
        "MTRR" => return varies(matches!(second, "default" | "fixed" | "variable" | "map:")),
        "BIOS-e820:" | "TOM2:" | "x86/PAT:" | "last_pfn" => return Some(0),
        "total" => return varies(second == "RAM" && word(2) == "covered:"),
        "original" | "New" => return varies(second == "variable"),
        "reg" => return varies(number(second.trim_end_matches(',')) && word(2) == "base:"),
        _ => {}
    }
    match number(first) {
        true if second == "disabled" => Some(2),
        true if second == "base" && word(3) == "mask" => {
            Some(words::memtype(word(5)).map_or(0, |_| 6))
        }
        true => None,
        false if fixed_range(first, second) => Some(2),
        false => varies(proc_mtrr(first) || register(first, second)),
    }
}

/// `reg00:` or `reg00:base=..`
fn proc_mtrr(word: &str) -> bool {
    let digits = word.strip_prefix("reg").and_then(|rest| rest.get(..2));
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `A0000-BFFFF uncachable`
fn fixed_range(word: &str, memtype: &str) -> bool {
    word.len() == 11
        && word
            .split_once('-')
            .is_some_and(|(first, last)| words::hex(first).is_some() && words::hex(last).is_some())
        && words::memtype(memtype).is_some()
}

/// `0x200=0x6`, `0x200:`, `0x200 = 0x6`
fn register(word: &str, next: &str) -> bool {
    let apart = matches!(next, "=" | ":").then_some((word, ""));
    let Some((name, _)) = word.split_once(['=', ':']).or(apart) else {
        return false;
    };
    let number = name.strip_prefix("0x").and_then(words::hex);
    number
        .and_then(|msr| u32::try_from(msr).ok())
        .is_some_and(read_msr::is_ours)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn several_records_on_one_line() {
        let table = "MTRR default type: uncachable MTRR fixed ranges enabled:   00000-9FFFF \
                     write-back   A0000-BFFFF uncachable MTRR variable ranges enabled:   0 base \
                     000000000 mask F80000000 write-back   1 disabled";
        assert_eq!(split(table).len(), 7);
        assert_eq!(
            split("[    0.0] a [    0.000001] b [   12.345678] c").len(),
            3
        );
        assert_eq!(
            split("reg00: base=0x0 ( 0MB), size=1MB reg01: base=0x1 (1MB)").len(),
            2
        );
        assert_eq!(split("0x200=0xf8000000 0x201=0x3ffffc000800").len(), 2);
    }

    #[test]
    fn one_record_stays_whole() {
        for line in [
            "[    0.000000]   0 base 000000000 mask F80000000 write-back",
            "0x2ff: 0xc06 0xc06",
            "reg 0, base: 0GB, range: 4GB, type WB",
            "",
        ] {
            assert_eq!(split(line), [line]);
        }
    }
}
