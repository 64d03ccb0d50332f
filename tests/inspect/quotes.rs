//! What messages quote of input that is empty, long, or no text.

use std::path::PathBuf;

use super::{refused, run, run_all};

/// A file that is gone at the end of a test.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, bytes: &[u8]) -> Self {
        let path = std::env::temp_dir().join(format!("inspect-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("a temporary file");
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("a plain path")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Fails where a terminal would see more than text, or a line is endless.
fn harmless(text: &str) {
    let odd =
        |c: char| c != '\n' && !matches!(c, '\'' | '"' | '\\') && c.escape_debug().count() > 1;
    assert!(!text.contains(odd), "{text:?}");
    assert!(
        text.lines().all(|line| line.chars().count() < 500),
        "{text}"
    );
}

const PROC: &[u8] = b"reg00: base=0x000000000 (    0MB), size= 2048MB, count=1: write-back\n";

#[test]
fn an_empty_input_is_called_empty() {
    let empty = Scratch::new("empty", b"");
    let other = Scratch::new("other", b"");
    assert_eq!(refused(&[], b""), "inspect: standard input: it is empty\n");
    assert_eq!(
        refused(&["-"], b""),
        "inspect: standard input: it is empty\n"
    );
    let one = empty.path();
    let said = format!("inspect: {one}: the file is empty\n");
    assert_eq!(refused(&[one], b""), said);
    assert_eq!(refused(&["--want", "0xe0000000+16M=WC", one], b""), said);
    let two = refused(&[one, other.path()], b"");
    assert!(two.ends_with(": all of them are empty\n"), "{two}");
    for blank in [&b"\n"[..], b" \t\n\n", &[0; 100]] {
        let why = refused(&[], blank);
        assert!(why.contains("no text, only blank lines"), "{why}");
    }
}

#[test]
fn an_empty_file_among_others_is_noted() {
    let empty = Scratch::new("among", b"");
    let (code, out, _) = run_all(&[empty.path(), "-"], PROC);
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(code < 2 && flat.contains(": the file is empty"), "{out}");
    assert!(!run(&["-"], PROC).1.contains("is empty"));
}

#[test]
fn a_line_nobody_knows_is_quoted() {
    let why = refused(&[], b"\nhello \"world\"\nand more\n");
    assert!(
        why.contains("\"hello \"world\"\": neither this nor any other of 3 lines"),
        "{why}"
    );
    assert!(refused(&[], b"hello").contains("\"hello\": this one line is not"));
}

#[test]
fn bytes_that_are_no_text_are_escaped() {
    let why = refused(&[], b"\xff\x1b[31mred\x07 \xe2\x80\xae\xc3\xa9\n");
    harmless(&why);
    assert!(
        why.contains("\"\\xff\\u{1b}[31mred\\u{7} \\u{202e}\u{e9}\""),
        "{why}"
    );
    let every: Vec<u8> = (1..=255).filter(|byte| *byte != b'\n').collect();
    harmless(&refused(&[], &every));
    harmless(&refused(&[], &[0xff; 5000]));
    let long = refused(&[], &[b'x'; 5000]);
    assert!(long.contains("xxx...\"") && long.len() < 250, "{long}");
}

#[test]
fn words_of_the_command_line_are_escaped() {
    let long = format!("{}\u{1b}[31m", "9".repeat(5000));
    for word in ["\u{1b}[31m\u{202e}", "0\u{1b}[31m", long.as_str()] {
        for options in [
            &["--type", word][..],
            &["--want", word],
            &["--want", &format!("0x1000+{word}=WC")],
            &["--phys-bits", word],
            &["--color", word],
            &[&format!("--{word}")],
            &[&format!("/nonexistent/{word}")],
        ] {
            harmless(&refused(options, b""));
        }
    }
    let why = refused(&["--type", &long], b"");
    assert!(
        why.contains("999...' for '--type <ADDR>': a number is wanted"),
        "{why}"
    );
    harmless(&refused(&["--svg", "/nonexistent/\u{1b}[31m"], PROC));
}

#[test]
fn what_a_log_says_is_escaped() {
    let text = "Hypervisor detected: K\u{202e}VM\n\
                mtrr_cleanup: can not \u{202e}find\u{ad} optimal value\n";
    let (_, out) = run(&["--color=never"], &[text.as_bytes(), PROC].concat());
    harmless(&out);
    assert!(
        out.contains("K\\u{202e}VM") && out.contains("not \\u{202e}find"),
        "{out}"
    );
    let text = format!("Hypervisor vendor: \u{202e}{}\n", "K".repeat(3000));
    let (_, out) = run(&["--color=never"], &[text.as_bytes(), PROC].concat());
    harmless(&out);
    assert!(out.contains("KKK..."), "{out}");
}
