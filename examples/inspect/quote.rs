//! Input as messages quote it.

/// `text` as a message may quote it: nothing in it that a terminal would act on, bytes that are no
/// text as `\xff`, and no longer than about `most` columns.
pub fn quoted(text: impl AsRef<[u8]>, most: usize) -> String {
    let mut out = String::new();
    let pieces = text.as_ref().utf8_chunks().flat_map(|chunk| {
        let text = chunk.valid().chars().map(|c| match c {
            '\'' | '"' | '\\' => c.to_string(),
            _ => c.escape_debug().to_string(),
        });
        text.chain(chunk.invalid().iter().map(|byte| format!("\\x{byte:02x}")))
    });
    let mut columns = 0;
    for piece in pieces {
        columns += piece.chars().count();
        if columns > most {
            return out + "...";
        }
        out.push_str(&piece);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn quotes_are_short_and_harmless() {
        let text = "it's \"a\\b\" \u{e9}\u{1b}[31m\u{202e}\t\0".as_bytes();
        let seen = quoted([text, b"\xff\xc3"].concat(), 80);
        assert_eq!(
            seen,
            "it's \"a\\b\" \u{e9}\\u{1b}[31m\\u{202e}\\t\\0\\xff\\xc3"
        );
        assert_eq!(quoted("12345", 5), "12345");
        assert_eq!(quoted("123456", 5), "12345...");
        assert_eq!(quoted([0xff; 5000], 10), "\\xff\\xff...");
    }
}
