//! Targets and flags, by the object code of all that the header offers, linked as a kernel links it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::c_kernel::{BARE, HOST, package, targets};
use crate::object::Object;

/// Where kernels are linked: low, physical equals virtual, and in the last 2 GiB.
const LOW: u64 = 0x200_0000;
const HIGH: u64 = 0xffff_ffff_8020_0000;

/// As `build.sh` has them.
const BARE_FLAGS: &str = "-Crelocation-model=static -Ccode-model=kernel";
const HOST_FLAGS: &str = "-Crelocation-model=static -Ccode-model=kernel \
     -Cno-redzone=yes -Cforce-unwind-tables=no -Ctarget-feature=-sse,-sse2";

/// The library, built for a target with these flags, and linked at an address.
fn linked(target: &str, flags: &str, folder: &str, address: u64) -> Object {
    let library = library(target, flags, folder, "fat");
    let out = library.with_file_name(format!("all-{address:x}"));
    link(&library, &out, address)
}

/// The library, built for a target with these flags.
pub fn library(target: &str, flags: &str, folder: &str, lto: &str) -> PathBuf {
    let folder = package().join("target").join(folder);
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(package())
        .args(["build", "--quiet", "--release", "--target", target])
        .arg("--target-dir")
        .arg(&folder)
        .env("RUSTFLAGS", flags)
        .env("CARGO_PROFILE_RELEASE_LTO", lto)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .output()
        .expect("cargo is there");
    assert!(
        built.status.success(),
        "{target} {flags}\n{}",
        String::from_utf8_lossy(&built.stderr)
    );
    folder.join(target).join("release/libmtrr_pat_c.a")
}

/// Everything the header has, and what that needs; an address that does not fit a relocation is an error.
fn link(library: &Path, out: &PathBuf, address: u64) -> Object {
    let functions = functions();
    let wanted = functions
        .iter()
        .map(|name| format!("--require-defined={name}"));
    let output = Command::new("ld")
        .args(["-static", "--gc-sections", "-e", "mtrr_pat_boot_init"])
        .arg(format!("-Ttext-segment={address:#x}"))
        // memcpy and its kind are the kernel's.
        .arg("--unresolved-symbols=ignore-all")
        .args(wanted)
        .arg(library)
        .arg("-o")
        .arg(out)
        .output()
        .expect("the linker is there");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Object::of(out)
}

/// The names of the header's functions, but for the one that is the kernel's.
fn functions() -> Vec<String> {
    let header = fs::read_to_string(package().join("mtrr_pat.h")).expect("it is there");
    let lines = header
        .lines()
        .filter(|line| !line.starts_with([' ', '/', 't']));
    let names: Vec<String> = lines
        .filter_map(|line| {
            let (before, _) = line.split_once('(')?;
            let name = before.rsplit([' ', '*']).next()?;
            let ours = name.starts_with("mtrr_pat_") && name != "mtrr_pat_panic";
            ours.then(|| name.to_owned())
        })
        .collect();
    assert!(names.len() >= 20, "{names:?}");
    names
}

/// Whether an instruction needs the vector unit, MMX or the x87.
fn is_vector(instruction: &str) -> bool {
    let operation = instruction.split(' ').next().unwrap_or("");
    let registers = ["%xmm", "%ymm", "%zmm", "%mm", "%st"];
    registers.iter().any(|name| instruction.contains(name))
        || operation.starts_with('f')
        || ["emms", "ldmxcsr", "stmxcsr"].contains(&operation)
}

/// Whether an instruction uses memory below the stack pointer, which an interrupt overwrites.
fn is_red_zone(instruction: &str) -> bool {
    !instruction.starts_with("lea")
        && instruction.split("-0x").skip(1).any(|rest| {
            let digits = rest.trim_start_matches(|c: char| c.is_ascii_hexdigit());
            digits.starts_with("(%rsp)")
        })
}

/// It is the library, and nothing in it is for a kernel to fear.
fn fit_for_a_kernel(object: &Object, what: &str) {
    for operation in ["rdmsr", "wrmsr", "wbinvd", "mfence", "cli", "rdtsc"] {
        let there = object.all().any(|code| code.starts_with(operation));
        assert!(there, "{what}: no {operation}");
    }
    let bad = |code: &&str| is_vector(code) || is_red_zone(code);
    let found: Vec<_> = object.all().filter(bad).take(10).collect();
    assert!(found.is_empty(), "{what}: {found:#?}");
}

#[test]
fn bare_target_has_no_vector_instruction_and_no_red_zone() {
    if !targets().contains(&BARE) {
        return;
    }
    for (flags, folder) in [
        ("", "bare-plain".into()),
        (BARE_FLAGS, format!("{BARE}-kernel")),
    ] {
        for address in [LOW, HIGH] {
            let object = linked(BARE, flags, &folder, address);
            fit_for_a_kernel(&object, &format!("{BARE} {flags} at {address:#x}"));
        }
    }
}

#[test]
fn host_target_has_none_with_these_flags() {
    for address in [LOW, HIGH] {
        let object = linked(HOST, HOST_FLAGS, &format!("{HOST}-kernel"), address);
        fit_for_a_kernel(&object, &format!("{HOST} {HOST_FLAGS} at {address:#x}"));
    }
}

/// The reason for the flags: SSE as soon as the boot CPU calls, and the red zone.
#[test]
fn host_target_without_flags_needs_sse_at_once() {
    let object = linked(HOST, "", "host-plain", LOW);
    let reached = object.reached_from("mtrr_pat_boot_init");
    assert!(reached.iter().any(|(_, code)| is_vector(code)));
    assert!(object.all().any(is_red_zone));
}

/// `core` was compiled with SSE, and without LTO it stays so.
#[test]
fn host_target_has_sse_without_lto() {
    let library = library(HOST, HOST_FLAGS, "host-no-lto", "off");
    let object = link(&library, &library.with_file_name("all"), LOW);
    assert!(object.all().any(is_vector));
}

#[test]
fn build_script_has_these_flags() {
    let script = fs::read_to_string(package().join("build.sh")).expect("it is there");
    let extra = HOST_FLAGS.strip_prefix(BARE_FLAGS).expect("it starts so");
    assert!(script.contains(&format!("flags=\"{BARE_FLAGS}\"")));
    assert!(script.contains(&format!("flags=\"$flags{extra}\"")));
}

#[test]
fn what_is_looked_for() {
    for code in ["movaps %xmm0,(%rsp)", "fld1", "emms", "paddb %mm1,%mm0"] {
        assert!(is_vector(code), "{code}");
    }
    for code in ["mfence", "mov %rsp,%rax", "lfence"] {
        assert!(!is_vector(code), "{code}");
    }
    assert!(is_red_zone("mov %rax,-0x8(%rsp)"));
    assert!(!is_red_zone("lea -0x80(%rsp),%rsp"));
    assert!(!is_red_zone("mov %al,-0x2(%rsp,%rcx,1)"));
}
