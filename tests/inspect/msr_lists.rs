//! Registers as people list them: loops around `rdmsr`, several values a line, tables.

use serde_json::Value;

use super::{json, post, run, type_at};

/// The registers of one processor, in the order people ask for them.
const REGISTERS: [(u32, u64); 8] = [
    (0xfe, 0x508),
    (0x2ff, 0xc00),
    (0x200, 0x6),
    (0x201, 0x7f_8000_0800),
    (0x202, 0x7f00_0000),
    (0x203, 0x7f_ff00_0800),
    (0x204, 0),
    (0x205, 0),
];

/// What `text` says, without what depends on its form.
fn facts(text: &str) -> Value {
    let mut object = json(&[], text.as_bytes());
    for key in ["missing", "complete"] {
        object[key] = Value::Null;
    }
    object
}

/// The registers one after the other, as `cpu 0 msr 0x2ff value 0xc00`.
fn plain(cpus: u32) -> String {
    let each = |cpu: u32| {
        REGISTERS.map(|(msr, value)| format!("cpu {cpu} msr {msr:#x} value {value:#x}\n"))
    };
    (0..cpus).flat_map(each).collect()
}

fn values(text: impl Fn(u64) -> String) -> String {
    REGISTERS.iter().map(|(_, value)| text(*value)).collect()
}

fn numbers(separator: &str, text: impl Fn(u32) -> String) -> String {
    let list: Vec<String> = REGISTERS.iter().map(|(msr, _)| text(*msr)).collect();
    list.join(separator)
}

#[test]
fn loops_around_rdmsr() {
    let want = facts(&plain(1));
    let bare = values(|value| format!("{value:x}\n"));
    let hex = numbers(" ", |msr| format!("{msr:#x}"));
    let short = numbers(" ", |msr| format!("{msr:x}"));
    let decimal = numbers(" ", |msr| msr.to_string());
    for text in [
        format!("# for i in {hex}; do rdmsr $i; done\n{bare}"),
        format!("$ for i in {short} ; do sudo rdmsr 0x$i ; done\n{bare}"),
        format!("$ for i in {decimal}; do rdmsr $(printf 0x%x $i); done\n{bare}"),
        format!("$ for reg in {hex}; do\n> rdmsr -p 0 ${{reg}}\n> done\n{bare}"),
        numbers("\n", |msr| format!("sudo rdmsr {msr:#x}")) + "\n" + &bare,
        format!(
            "# for i in {hex}; do rdmsr -d $i; done\n{}",
            values(|value| format!("{value}\n"))
        ),
        REGISTERS
            .map(|(msr, value)| format!("rdmsr {msr:#x} = {value:x}\n"))
            .concat(),
        REGISTERS
            .map(|(msr, value)| format!("{msr:#x} = {value:#x} "))
            .concat()
            + "\n",
        REGISTERS
            .chunks(2)
            .map(|two| {
                format!(
                    "{:#x}={:#x} {:#x}={:#x}\n",
                    two[0].0, two[0].1, two[1].0, two[1].1
                )
            })
            .collect(),
    ] {
        assert_eq!(facts(&text), want, "{text}");
    }
}

#[test]
fn loops_over_every_cpu() {
    let want = facts(&plain(4));
    let hex = numbers(" ", |msr| format!("{msr:#x}"));
    let each = REGISTERS.map(|(msr, value)| (msr, format!("{value:x}\n").repeat(4)));
    let all: String = each.iter().map(|(_, values)| values.as_str()).collect();
    let row = |value: u64| format!("{value:x} {value:x} {value:x} {value:x}\n");
    for text in [
        format!("# for i in {hex}; do rdmsr -a $i; done\n{all}"),
        each.iter()
            .map(|(msr, values)| format!("# rdmsr --all {msr:#x}\n{values}"))
            .collect(),
        REGISTERS
            .map(|(msr, value)| format!("# rdmsr -a {msr:#x} | uniq -c\n      4 {value:x}\n"))
            .concat(),
        REGISTERS
            .map(|(msr, value)| format!("{msr:#x}: {}", row(value)))
            .concat(),
        REGISTERS
            .map(|(msr, value)| format!("# rdmsr -a {msr:#x} | xargs\n{}", row(value)))
            .concat(),
    ] {
        assert_eq!(facts(&text), want, "{text}");
    }
}

#[test]
fn counted_values_name_no_cpu() {
    let text = "# rdmsr -a 0x2ff | sort | uniq -c\n      1 0\n      7 c06\n";
    let object = json(&[], text.as_bytes());
    assert_eq!(object["cpus"].as_array().map(Vec::len), Some(8));
    let (_, out) = run(&[], text.as_bytes());
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("only how many"), "{out}");
}

#[test]
fn a_loop_whose_output_lost_a_line_says_so() {
    let text = "# for i in 0x200 0x201 0x202; do rdmsr $i; done\n6\nf80000800\n";
    let (code, out) = run(&[], text.as_bytes());
    assert_ne!(code, 0);
    assert!(!out.contains("nothing wrong"), "{out}");
    // A register that cannot be read stands for itself.
    let text = "# for i in 0xfe 0x2ff 0x200 0x201; do rdmsr $i; done\n\
                rdmsr: CPU 0 cannot read MSR 0x000000fe\nc00\n6\nf80000800\n";
    assert_eq!(type_at(&json(&[], text.as_bytes()), 0x10_0000), "WB");
}

#[test]
fn tables_with_a_heading() {
    let want = facts(&plain(1));
    let rows = |row: fn(u32, u64) -> String| {
        REGISTERS
            .iter()
            .map(|(msr, value)| row(*msr, *value))
            .collect::<String>()
    };
    for text in [
        format!(
            "| MSR | Value |\n|-----|:-----:|\n{}",
            rows(|msr, value| format!("| `{msr:#x}` | `{value:#x}` |\n"))
        ),
        format!(
            "msr,value\n{}",
            rows(|msr, value| format!("{msr:x},{value:x}\n"))
        ),
        format!(
            "cpu;register;data\n{}",
            rows(|msr, value| format!("0;{msr:#x};{value:#018x}\n"))
        ),
        format!(
            "Register\tHigh (EDX)\tLow (EAX)\n{}",
            rows(|msr, value| format!(
                "0x{msr:08X}\t{:08X}\t{:08X}\n",
                value >> 32,
                value & 0xffff_ffff
            ))
        ),
        format!(
            "MSR address,cpu0\n{}",
            rows(|msr, value| format!("{msr:#x},{value:#x}\n"))
        ),
    ] {
        assert_eq!(facts(&text), want, "{text}");
    }
}

#[test]
fn two_cpus_with_eight_digits_are_no_halves() {
    let object = json(&[], &post("2cpu-8digits"));
    assert_eq!(object["phys_bits"], 46);
    assert_eq!(object["cpus"].as_array().map(Vec::len), Some(2));
    assert_eq!(object["cpus"][1]["differs"].to_string(), "[]");
    assert_eq!(object["variable"][0]["base"], "0xc0000000");
}

#[test]
fn one_or_two_registers_a_line_are_one_cpu() {
    let long = json(&[], &post("029-oneline"));
    let short = json(&[], &post("029-short"));
    assert_eq!(long, short);
    assert_eq!(long["cpus"].as_array().map(Vec::len), Some(1));
    assert_eq!(type_at(&long, 0xc000_0000), "UC");
    assert_eq!(type_at(&long, 0xfbff_ffff), "UC");
}

#[test]
fn a_hypervisors_trace_of_its_guest() {
    let text: String = REGISTERS
        .iter()
        .map(|(msr, value)| {
            format!(" qemu-812 [003] 99.1: kvm_msr: msr_write {msr:x} = {value:#x}\n")
        })
        .collect();
    let object = json(&[], text.as_bytes());
    assert_eq!(object["variable"][1]["base"], "0x7f000000");
    assert_eq!(object["cpus"].as_array().map(Vec::len), Some(1));
}
