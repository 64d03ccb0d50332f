//! The README says what the example does, and keeps to its length.

const README: &str = include_str!("../README.md");
const EXAMPLE: &str = include_str!("../examples/integrate.rs");

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
        "a `Snapshot` is {} bytes, `CacheSync<256>` {};",
        size_of::<mtrr_pat::snapshot::Snapshot>(),
        thousands(size_of::<mtrr_pat::sync::CacheSync<256>>())
    );
    assert!(README.contains(&said), "{said}");
}
