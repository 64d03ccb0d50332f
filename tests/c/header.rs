//! The header in the repository is the one that the functions make.

use std::fs;
use std::process::Command;

use cbindgen::{Builder, Config, DocumentationStyle, Language, Style};

use crate::c_kernel::package;

const HEAD: &str = "\
/*
 * MTRR and PAT bring-up for kernels in C: the functions of examples/c, made from its sources by the test
 * `header_is_up_to_date` (MTRR_PAT_BLESS=1 writes it anew). README.md has the order of the calls.
 *
 * What every call asks of the kernel (the \"duties of this library\"): privilege level 0 in 64-bit mode, on
 * one CPU from its start to its end; nobody else changes MTRRs, PAT, CR0.CD, CR0.NW or CR4.PGE of that CPU
 * meanwhile; code, stack and data stay mapped; NMI and machine-check handlers call nothing in here, and
 * touch little: caches may be off; `me` is the number of the CPU that calls. No vector unit is used.
 */";

fn made() -> String {
    let config = Config {
        language: Language::C,
        header: Some(HEAD.into()),
        include_guard: Some("MTRR_PAT_H".into()),
        no_includes: true,
        sys_includes: ["stdbool.h", "stddef.h", "stdint.h"].map(Into::into).into(),
        cpp_compat: true,
        style: Style::Tag,
        usize_is_size_t: true,
        documentation_style: DocumentationStyle::Doxy,
        line_length: 110,
        ..Config::default()
    };
    let builder = Builder::new()
        .with_config(config)
        .with_src(package().join("src/lib.rs"));
    let mut header = Vec::new();
    builder
        .generate()
        .expect("every signature has a form in C")
        .write(&mut header);
    String::from_utf8(header).expect("it is text")
}

#[test]
fn header_is_up_to_date() {
    let (path, made) = (package().join("mtrr_pat.h"), made());
    if std::env::var("MTRR_PAT_BLESS").is_ok_and(|value| value == "1") {
        fs::write(&path, &made).expect("it can be written");
    }
    let found = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == made,
        "{} is not what src/*.rs make: MTRR_PAT_BLESS=1 cargo test --test c header",
        path.display()
    );
}

/// By itself, without an extension of one compiler, also where C++ includes it.
#[test]
fn header_is_plain_c() {
    for language in ["-std=c99", "-std=c11", "-std=c17"] {
        let output = Command::new("cc")
            .args(["-fsyntax-only", "-Wall", "-Wextra", "-pedantic", "-Werror"])
            .args(["-ffreestanding", language, "-x", "c"])
            .arg(package().join("mtrr_pat.h"))
            .output()
            .expect("a C compiler is there: it links the tests");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{language}: {said}");
    }
}
