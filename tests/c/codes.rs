//! Codes, names, texts and out-parameters, as a program in C sees them: all that answers without privilege.

use std::process::Command;

use crate::c_kernel::{HOST, package};
use crate::targets::library;

#[test]
fn calls_that_are_refused_say_so_in_c() {
    let library = library(HOST, "", "host-plain", "fat");
    let program = library.with_file_name("codes");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/c/codes.c");
    let built = Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(package())
        .arg(source)
        .arg(&library)
        .arg("-o")
        .arg(&program)
        .output()
        .expect("a C compiler is there: it links the tests");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    let run = Command::new(&program).output().expect("it can be run");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}");
    assert!(said.ends_with("36 codes\n"), "{said}");
}
