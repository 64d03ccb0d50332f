//! What firmware alone sets: by name, by number and per CPU; shown, and compared.

use super::{json, run};
use serde_json::Value;

const AMD: &str = "IA32_MTRRCAP = 0x508\nIA32_MTRR_DEF_TYPE: 0xc06\nTOP_MEM 0x80000000\n\
                   MSR 0xc0010016 0x0\nMSR 0xc0010017 0x0\n\
                   IORRBase1 0xe0000010\nIORRMask1 0xfffff0000800\n";

fn flat(text: &str) -> String {
    let (code, out) = run(&["--phys-bits", "48"], text.as_bytes());
    assert!(code < 2);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Kinds of the findings.
fn kinds(object: &Value) -> Vec<&str> {
    let findings = object["findings"].as_array().expect("a list");
    findings
        .iter()
        .filter_map(|one| one["kind"].as_str())
        .collect()
}

#[test]
fn what_a_dump_shows_is_printed() {
    let text = flat(AMD);
    for part in [
        "Set by firmware alone",
        "TOP_MEM 0x80000000: memory below, devices from there to 4 GiB",
        "IORR 0: off",
        "IORR 1 base 0xe0000000 mask 0xfffff0000000: reads go to memory, writes to devices",
        "the variable ranges are not in the input",
    ] {
        assert!(text.contains(part), "\"{part}\" is not in: {text}");
    }
    assert!(!text.contains("TME_ACTIVATE"));
    // Bit 20 of SYSCFG is clear.
    let text = flat(&format!("SYSCFG 0x40000\n{AMD}"));
    assert!(text.contains("TOP_MEM 0x80000000: off in SYSCFG"), "{text}");
    let text = flat("IA32_MTRR_DEF_TYPE: 0xc06\nIA32_TME_ACTIVATE: 0x1000400000003\n");
    assert!(
        text.contains("4 address bits hold the key's number"),
        "{text}"
    );
    let text = flat("IA32_MTRR_DEF_TYPE: 0xc06\nmsr[982] = 1\n");
    assert!(
        text.contains("TME_ACTIVATE 0x1: no memory encryption"),
        "{text}"
    );
    let text = flat("IA32_MTRR_DEF_TYPE: 0xc06\n");
    assert!(!text.contains("Set by firmware alone"), "{text}");
}

#[test]
fn the_object_has_them() {
    let object = json(&[], AMD.as_bytes());
    let routing = &object["routing"];
    assert_eq!(routing["top_mem"], "0x80000000");
    assert_eq!(routing["iorr"][0]["valid"], false);
    assert_eq!(routing["iorr"][1]["base"], "0xe0000010");
    assert_eq!(routing["iorr"][1]["mask"], "0xfffff0000800");
    assert_eq!(routing["tme_activate"], Value::Null);
    // Half a range is no range.
    let object = json(&[], b"IA32_MTRR_DEF_TYPE: 0xc06\nIORRMask0 0x800\n");
    assert_eq!(object["routing"]["iorr"], serde_json::json!([null, null]));
}

#[test]
fn cpus_that_differ_are_named() {
    let text = "IA32_MTRRCAP = 0x508\n0x2ff: c06 c06 c06 c06\n0xc001001a: 80000000 80000000 \
                40000000 40000000\n0x982: 3 3 3 3\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(kinds(&object), ["routing-differs", "incomplete"]);
    let found = object["findings"][0]["text"].as_str().expect("a text");
    assert!(
        found.starts_with("CPU 2, 3 differ from CPU 0 in: TOP_MEM;"),
        "{found}"
    );
    let differs = |cpu: usize| object["cpus"][cpu]["differs"].to_string();
    assert_eq!(differs(1), "[]");
    assert_eq!(differs(3), "[\"routing\"]");
    // What one CPU does not show is no difference.
    let object = json(&[], b"cpu 0 msr 0x2ff value 0xc06\ncpu 0 msr 0xc001001a value 0x0\ncpu 1 msr 0x2ff value 0xc06\n");
    assert_eq!(kinds(&object), ["incomplete"]);
}
