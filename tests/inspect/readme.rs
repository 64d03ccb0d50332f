//! The README says what the example does, and keeps to its length.

use super::inspect;

const README: &str = include_str!("../../README.md");
const EXAMPLE: &str = include_str!("../../examples/integrate.rs");

#[test]
fn the_integration_code_is_the_examples() {
    let code = EXAMPLE.split("// README\n").nth(1).expect("two marks");
    assert!(README.contains(&format!("```rust\n{code}```")));
    let lines = code.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 20, "{lines} lines");
}

#[test]
fn the_readme_opens_with_two_commands_and_is_short() {
    assert!(README.lines().count() <= 150);
    let long = README.lines().find(|line| line.chars().count() > 100);
    assert_eq!(long, None, "at most 100 columns");
    let commands: Vec<&str> = README
        .split("```sh\n")
        .skip(1)
        .filter_map(|block| block.lines().next())
        .collect();
    assert_eq!(
        &commands[..2],
        [
            "cargo run --features sim --example s3_resume",
            "./tests/run.sh"
        ]
    );
}

#[cfg(target_pointer_width = "64")]
#[test]
fn the_sizes_are_those_stated() {
    let thousands = |bytes: usize| format!("{},{:03}", bytes / 1000, bytes % 1000);
    let said = format!(
        "A `Snapshot` is {} bytes, `CacheSync<256>` {};",
        size_of::<mtrr_pat::snapshot::Snapshot>(),
        thousands(size_of::<mtrr_pat::sync::CacheSync<256>>())
    );
    assert!(README.contains(&said), "{said}");
}

/// What `inspect` prints for the words after `--` in the README.
fn inspected(words: &str) -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let words = words.split_whitespace().map(|word| match root.join(word) {
        path if path.exists() => path.into(),
        _ => word.into(),
    });
    let first = ["inspect", "--color=never"].map(Into::into);
    let words = first.into_iter().chain(words);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let mut stdin = inspect::input::Stdin {
        text: &mut &b""[..],
        terminal: false,
    };
    inspect::run(words, &mut stdin, &mut out, &mut err);
    assert_eq!(String::from_utf8_lossy(&err), "");
    String::from_utf8(out).expect("output is UTF-8")
}

/// Whether `shown` is `real` with `...` for one or more lines left out, and nothing else left out.
fn abridged(shown: &[&str], real: &[&str]) -> bool {
    match shown {
        [] => real.is_empty(),
        ["...", rest @ ..] => (1..=real.len()).any(|skip| abridged(rest, &real[skip..])),
        [first, rest @ ..] => real.first() == Some(first) && abridged(rest, &real[1..]),
    }
}

#[test]
fn the_output_shown_is_what_inspect_prints() {
    let mut blocks = 0;
    for block in README
        .split("```text\n$ cargo run --example inspect -- ")
        .skip(1)
    {
        let block = block.split("```").next().expect("an end");
        let (words, shown) = block.split_once('\n').expect("a command");
        let real = inspected(words);
        let shown: Vec<&str> = shown.lines().collect();
        let real: Vec<&str> = real.lines().collect();
        assert!(abridged(&shown, &real), "{shown:#?}\nof\n{real:#?}");
        blocks += 1;
    }
    assert!(blocks > 0);
}
