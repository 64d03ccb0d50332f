//! Dumps as they are wrapped on their way: each must say what the plain one says.

use std::io::Write as _;

use flate2::write::GzEncoder;
use serde_json::{Value, json as value};

use super::{case, json, post, run};

const DUMPS: [&str; 4] = [
    "019-amd40-nested-wp",
    "043-low-hole-16gb-eight-used",
    "047-n100-all-ten-used",
    "030-d-p4-mtrrs-globally-off",
];

/// The report without what tells where in the input something is.
fn facts(input: &[u8]) -> Value {
    let mut object = json(&[], input);
    if let Some(findings) = object["findings"].as_array_mut() {
        for finding in findings {
            let text = finding["text"].as_str().unwrap_or("").to_string();
            if text.starts_with("line ") {
                let rest = text.split_once(", ").map_or("", |(_, rest)| rest);
                finding["text"] = rest.into();
            }
        }
    }
    object
}

/// Checks that every dump says the same after `wrap`.
fn same(wrap: impl Fn(&str) -> Vec<u8>) {
    for name in DUMPS {
        let plain = String::from_utf8(case(name)).expect("text");
        assert_eq!(facts(&wrap(&plain)), facts(plain.as_bytes()), "{name}");
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut out = GzEncoder::new(Vec::new(), flate2::Compression::default());
    out.write_all(text.as_bytes()).expect("to memory");
    out.finish().expect("to memory")
}

#[test]
fn gzip_and_utf_16() {
    same(gzip);
    // Two files compressed one after the other are one.
    same(|text| {
        let half = text[..text.len() / 2].rfind('\n').expect("lines") + 1;
        [gzip(&text[..half]), gzip(&text[half..])].concat()
    });
    let wide = |text: &str, mark: &str, bytes: fn(u16) -> [u8; 2]| -> Vec<u8> {
        format!("{mark}{text}")
            .encode_utf16()
            .flat_map(bytes)
            .collect()
    };
    for mark in ["\u{feff}", ""] {
        same(|text| wide(&text.replace('\n', "\r\n"), mark, u16::to_le_bytes));
        same(|text| wide(text, mark, u16::to_be_bytes));
    }
    same(|text| [b"\xef\xbb\xbf", text.as_bytes()].concat());
}

#[test]
fn a_compressed_file_that_was_cut_says_so() {
    let whole = gzip(
        &String::from_utf8(case("047-n100-all-ten-used"))
            .expect("text")
            .repeat(40),
    );
    let (code, text) = run(&[], &whole[..whole.len() / 2]);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("the input ends early here"), "{text}");
    assert_eq!(run(&[], &whole[..12]).0, 2);
}

#[test]
fn json_of_journals_containers_and_lists() {
    let each = |record: fn(&str) -> Value| {
        move |text: &str| -> Vec<u8> {
            let lines = text.lines().map(|line| format!("{}\n", record(line)));
            lines.collect::<String>().into_bytes()
        }
    };
    same(each(
        |line| value!({ "_PID": "1", "MESSAGE": line, "PRIORITY": "6" }),
    ));
    same(each(
        |line| value!({ "log": format!("{line}\n"), "stream": "stdout" }),
    ));
    same(each(|line| value!({ "MESSAGE": line.as_bytes() })));
    same(|text| serde_json::to_vec(&text.lines().collect::<Vec<_>>()).expect("JSON"));
    same(|text| serde_json::to_vec_pretty(&text.lines().collect::<Vec<_>>()).expect("JSON"));
    same(|text| value!({ "dmesg": text }).to_string().into_bytes());
    same(|text| serde_json::to_vec_pretty(&value!({ "a": [{ "out": text }] })).expect("JSON"));
}

/// `text` with the characters HTML keeps for itself written as entities.
fn escaped(text: &str) -> String {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    text.replace("  ", " &nbsp;")
}

#[test]
fn html_of_archives_and_forums() {
    same(|text| escaped(text).replace('\n', "<br>\n").into_bytes());
    same(|text| escaped(text).replace('\n', "<br/>").into_bytes());
    same(|text| {
        let lines = text.lines().map(escaped);
        let quote = |line| format!("<span class=\"quotelev2\">&gt;&gt; {line}\n</span><br>\n");
        lines.map(quote).collect::<String>().into_bytes()
    });
    same(|text| format!("<html><body><pre>\n{}</pre></body></html>", escaped(text)).into_bytes());
    same(|text| {
        let row = |line| format!("<tr>\n<td>1</td>\n<td>{}</td>\n</tr>\n", escaped(line));
        text.lines().map(row).collect::<String>().into_bytes()
    });
}

#[test]
fn mail_and_exported_tables() {
    same(|text| quoted_printable::encode(text));
    same(|text| text.replace("  ", "\u{a0} ").into_bytes());
    same(|text| {
        let mut out = csv::WriterBuilder::new()
            .quote_style(csv::QuoteStyle::Always)
            .from_writer(Vec::new());
        for line in text.lines() {
            out.write_record(["2024-01-01", "kernel", line])
                .expect("to memory");
        }
        out.into_inner().expect("to memory")
    });
}

#[test]
fn lost_newlines() {
    same(|text| text.replace('\n', " ").into_bytes());
    same(|text| text.replace('\n', "\\n").into_bytes());
    same(|text| text.replace('\n', "\r").into_bytes());
    let stamped = |text: &str| -> String {
        text.lines()
            .enumerate()
            .map(|(n, line)| format!("[{:>5}.{:06}] {line} ", n / 7, n * 1000 % 1_000_000))
            .collect()
    };
    same(|text| stamped(text).into_bytes());
}

#[test]
fn a_list_of_lines_with_its_tabs() {
    let object = json(&[], &post("205-asus-n56vz-json-list"));
    assert_eq!(object["registers"]["used"], 10);
    assert_eq!(object["registers"]["min_relaxed"]["UC"], 5);
}
