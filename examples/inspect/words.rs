//! Words of a log line: numbers, sizes, memory types. Knows no log format.

use mtrr_pat::memtype::{MemType, PatType};

/// A type byte the manuals reserve, for a type a log prints as `?`.
pub const RESERVED_TYPE: u8 = 2;

/// One line of the input: its number, its text, and its words.
#[derive(Debug)]
pub struct Line<'a> {
    /// Counted from 1.
    pub number: u64,
    /// The text without terminal colours and line end.
    pub text: &'a str,
    /// The text split at white space.
    pub words: Vec<&'a str>,
    /// The text split at everything but letters, digits, `_` and `.`.
    pub atoms: Vec<&'a str>,
}

impl<'a> Line<'a> {
    /// Splits `text`. Only the first 64 words are kept: no format has that many.
    pub fn new(number: u64, text: &'a str) -> Self {
        Self {
            number,
            text,
            words: text.split_whitespace().take(64).collect(),
            atoms: text
                .split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '.'))
                .filter(|atom| !atom.is_empty())
                .take(128)
                .collect(),
        }
    }

    /// The `n`th word from the end, 0 being the last.
    pub fn word_from_end(&self, n: usize) -> &'a str {
        self.words.iter().rev().nth(n).copied().unwrap_or("")
    }

    /// What follows `key` in the line.
    pub fn after(&self, key: &str) -> Option<&'a str> {
        self.text
            .find(key)
            .and_then(|at| self.text.get(at + key.len()..))
    }

    /// The atom after `key`, compared without case.
    pub fn atom_after(&self, key: &str) -> Option<&'a str> {
        let at = self
            .atoms
            .iter()
            .position(|atom| atom.eq_ignore_ascii_case(key))?;
        self.atoms.get(at + 1).copied()
    }
}

/// Reads a hexadecimal number, with or without `0x`, `_` and a trailing `h`.
pub fn hex(word: &str) -> Option<u64> {
    let digits = word
        .strip_prefix("0x")
        .or_else(|| word.strip_prefix("0X"))
        .unwrap_or(word);
    let digits = digits.strip_suffix(['h', 'H']).unwrap_or(digits);
    if digits.is_empty() || digits.contains('+') {
        return None;
    }
    if digits.contains('_') {
        return u64::from_str_radix(&digits.replace('_', ""), 16).ok();
    }
    u64::from_str_radix(digits, 16).ok()
}

/// Reads a size such as `128KB`, `8kB`, `2048MB`, `2GB`, `1M`, in bytes.
pub fn size(word: &str) -> Option<u64> {
    let word = word
        .strip_suffix(['B', 'b'])
        .unwrap_or(word)
        .trim_end_matches('i');
    let unit = word.chars().next_back()?;
    let shift = match unit.to_ascii_uppercase() {
        'K' => 10,
        'M' => 20,
        'G' => 30,
        'T' => 40,
        _ => return None,
    };
    let digits = word.get(..word.len() - unit.len_utf8())?.trim();
    let count: u64 = digits.parse().ok()?;
    count.checked_mul(1 << shift)
}

/// Reads the name of an MTRR type as logs, /proc/mtrr, firmware and people write it.
///
/// A type the log itself could not name (`?`) gives [`RESERVED_TYPE`].
pub fn memtype(word: &str) -> Option<u8> {
    let word = word.trim_matches(|c: char| !(c.is_alphanumeric() || c == '?' || c == '-'));
    let plain: String = word
        .chars()
        .take(24)
        .filter(|c| *c != '-' && *c != '_')
        .map(|c| c.to_ascii_lowercase())
        .collect();
    Some(match plain.as_str() {
        "writeback" | "wb" => MemType::WriteBack.raw(),
        "uncachable" | "uncacheable" | "uncached" | "uc" => MemType::Uncachable.raw(),
        "writecombining" | "writecombine" | "wc" => MemType::WriteCombining.raw(),
        "writethrough" | "wt" => MemType::WriteThrough.raw(),
        "writeprotect" | "writeprotected" | "wp" => MemType::WriteProtected.raw(),
        "?" => RESERVED_TYPE,
        _ => return None,
    })
}

/// Reads the short name of a PAT type: `WB`, `UC-`, ...
pub fn pat_type(word: &str) -> Option<PatType> {
    PatType::ALL
        .into_iter()
        .find(|memtype| memtype.short().eq_ignore_ascii_case(word))
}

/// Removes terminal colours (ESC `[` ... letter) and control characters.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c == '\u{1b}' && chars.peek() == Some(&'[') {
            for c in chars.by_ref() {
                if c.is_ascii_alphabetic() {
                    break;
                }
            }
        } else if let Some(c) = typed(c) {
            out.push(c);
        }
    }
    out
}

/// The character a person would have typed: web pages and mail programs make others of it.
fn typed(c: char) -> Option<char> {
    match c {
        '\t' => Some(c),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
        '\u{2010}'..='\u{2015}' | '\u{2212}' => Some('-'),
        '\u{201c}' | '\u{201d}' => Some('"'),
        '\u{2018}' | '\u{2019}' | '\u{2032}' => Some('\''),
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' => None,
        _ => (!c.is_control()).then_some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_logs_write_them() {
        assert_eq!(hex("0xC06"), Some(0xc06));
        assert_eq!(hex("00000C06h"), Some(0xc06));
        assert_eq!(hex("0x1_0000"), Some(0x1_0000));
        assert_eq!(hex("+12"), None);
        assert_eq!(hex("12345678123456781"), None);
        assert_eq!(size("2048MB"), Some(2048 << 20));
        assert_eq!(size("128KB"), Some(128 << 10));
        assert_eq!(size("99999999999999TB"), None);
        assert_eq!(hex("0x_+1"), None);
    }

    #[test]
    fn types_as_people_write_them() {
        assert_eq!(memtype("write-back,"), Some(6));
        assert_eq!(memtype("uncachable"), Some(0));
        assert_eq!(memtype("?"), Some(RESERVED_TYPE));
        assert_eq!(memtype("WP"), Some(5));
        assert_eq!(memtype("reserved"), None);
        assert_eq!(pat_type("UC-"), Some(PatType::UncachedMinus));
    }

    #[test]
    fn colours_are_dropped() {
        assert_eq!(plain("\u{1b}[32mreg00:\u{1b}[0m base\0"), "reg00: base");
    }
}
