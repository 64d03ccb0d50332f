//! Numbers as a user types them, for the command line; dumps have formats of their own.

use super::quote::quoted;
use super::words::{hex, size};

/// Reads a number as a user types it: hexadecimal after `0x`, else decimal; `K M G T` at the end
/// of a decimal one multiply. What could be either is refused: digits copied from a dump look
/// decimal when no letter happens to be among them.
///
/// # Errors
/// What is wanted instead.
pub fn number(word: &str) -> Result<u64, String> {
    const WANTED: &str = "a number is wanted: 0xe0000000, 3584M, 4096";
    if word.starts_with("0x") || word.starts_with("0X") {
        return hex(word).ok_or_else(|| WANTED.into());
    }
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = word.strip_suffix(rest).unwrap_or(word);
    let bare = word.strip_suffix(['h', 'H']).unwrap_or(word);
    let short = quoted(bare, 40);
    if !bare.is_empty() && bare.chars().all(|c| c.is_ascii_hexdigit()) && !rest.is_empty() {
        return Err(format!("hexadecimal needs its 0x: write 0x{short}"));
    }
    if digits.len() > 1 && digits.starts_with('0') {
        let plain = match digits.trim_start_matches('0') {
            "" => "0",
            plain => plain,
        };
        let plain = quoted(plain, 40) + &quoted(rest, 40);
        return Err(if rest.is_empty() {
            format!("may be hexadecimal or decimal: write 0x{short}, or {plain} for decimal")
        } else {
            format!("a decimal number has no zero in front: write {plain}")
        });
    }
    let value = match (digits, rest) {
        ("", _) => None,
        (digits, "") => digits.parse().ok(),
        _ => size(word),
    };
    value.ok_or_else(|| WANTED.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_users_type_them() {
        for (word, value) in [
            ("0", 0),
            ("16", 16),
            ("4096", 0x1000),
            ("4G", 4 << 30),
            ("4GiB", 4 << 30),
            ("0x0", 0),
            ("0x0483800000", 0x4_8380_0000),
            ("0XE000_0000", 0xe000_0000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(number(word), Ok(value), "{word}");
        }
        for word in [
            "",
            "0x",
            "+5",
            "+4K",
            "-1",
            "G",
            "1_000",
            "18446744073709551616",
            "9e9M",
        ] {
            let why = number(word).unwrap_err();
            assert!(why.starts_with("a number is wanted"), "{word}: {why}");
        }
    }

    #[test]
    fn numbers_that_could_be_either_are_refused() {
        for (word, advice) in [
            ("0483800000", "write 0x0483800000, or 483800000 for decimal"),
            ("047f800000", "write 0x047f800000"),
            ("e0000000", "write 0xe0000000"),
            ("E0000000h", "write 0xE0000000"),
            ("80000000h", "write 0x80000000"),
            ("16B", "write 0x16B"),
            ("00", "write 0x00, or 0 for decimal"),
            ("0256M", "write 256M"),
            ("00K", "write 0K"),
        ] {
            let why = number(word).unwrap_err();
            assert!(why.ends_with(advice), "{word}: {why}");
        }
        assert!(number(&"0".repeat(9000)).unwrap_err().len() < 200);
    }
}
