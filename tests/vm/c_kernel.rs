//! The kernel in C of `examples/c`: builds it with the system's C compiler.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, str};

/// For kernels: no vector unit, no red zone.
pub const BARE: &str = "x86_64-unknown-none";
/// Where that is not installed.
pub const HOST: &str = "x86_64-unknown-linux-gnu";

/// The package.
pub fn package() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/c")
}

/// The targets that the toolchain here can build the library for.
pub fn targets() -> Vec<&'static str> {
    let output = Command::new("rustc").args(["--print", "sysroot"]).output();
    let output = output.expect("the compiler is there");
    let sysroot = str::from_utf8(&output.stdout).expect("a path").trim();
    let installed = Path::new(sysroot).join("lib/rustlib").join(BARE).is_dir();
    if installed {
        vec![BARE, HOST]
    } else {
        println!("not built: {BARE}, because `rustup target add {BARE}` was not run here");
        vec![HOST]
    }
}

/// The C compilers here: the system's, and clang where it is installed.
pub fn compilers() -> Vec<&'static str> {
    let there = |compiler: &str| {
        let said = Command::new(compiler).arg("--version").output();
        said.is_ok_and(|said| said.status.success())
    };
    let all = ["cc", "clang"].into_iter();
    all.filter(|compiler| *compiler == "cc" || there(compiler))
        .collect()
}

/// Builds the kernel; gives the path of its image.
pub fn build(target: &str, compiler: &str) -> PathBuf {
    let script = package().join("build.sh");
    let output = Command::new(&script)
        .arg(format!("target/{target}-{compiler}-kernel"))
        .env("CC", compiler)
        .env("MTRR_PAT_C_TARGET", target)
        .output()
        .expect("the script can be run");
    assert!(
        output.status.success(),
        "{} {target}\n{}",
        script.display(),
        String::from_utf8_lossy(&output.stderr)
    );
    let path = str::from_utf8(&output.stdout).expect("a path").trim();
    PathBuf::from(path)
}
