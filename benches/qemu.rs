//! What bringing a CPU in line costs inside the kernel of `examples/kernel` under QEMU: this crate against a kernel that always goes
//! through the whole procedure, in turns in one boot.
//!
//! `cargo bench --bench qemu` runs 4, 8 and 64 CPUs; numbers after `--` replace these (up to 255), `--json` prints one JSON document,
//! `--kvm` uses KVM instead of emulation. An emulator's cycles are not hardware's, and WBINVD costs it nothing: the ratios of one row
//! and the counts mean something, nothing else does. Noise only ever adds: the ratio of the least ticks is the one to trust, that of
//! the medians shows how far. In rendezvous of more CPUs than the host has, the host's scheduler is most of both.
#![cfg(all(target_os = "linux", target_arch = "x86_64", not(loom)))]

#[allow(
    dead_code,
    reason = "the test that shares this file uses all of it, a bench does not"
)]
#[path = "../tests/vm/mod.rs"]
mod vm;

use serde_json::{Map, Value, json};
use std::time::Duration;
use vm::Vm;

const PER_OPERATION: [&str; 6] = ["rdmsr", "wrmsr", "wbinvd", "cr0", "cr3", "cr4"];

const RATIOS: [&str; 2] = ["ratio_least", "ratio_median"];

/// The figures of one boot.
struct Boot {
    cpus: u32,
    accel: &'static str,
    /// Operations of one AP: state, who, counts.
    operations: Vec<Map<String, Value>>,
    /// Ticks: what, state, turns, both sides.
    ticks: Vec<Map<String, Value>>,
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let said = |flag: &str| words.iter().any(|word| word == flag);
    if !vm::wanted() {
        return;
    }
    let asked: Vec<u32> = words.iter().filter_map(|word| word.parse().ok()).collect();
    let sizes: &[u32] = match (said("--bench"), asked.is_empty()) {
        // Without the flag that `cargo bench` gives, this is a test that it works.
        (false, _) => &[2],
        (true, true) => &[4, 8, 64],
        (true, false) => &asked,
    };
    let accel = if said("--kvm") { "kvm" } else { "tcg" };
    let mut boots = Vec::new();
    for &cpus in sizes {
        let boot = Boot::run(cpus, accel);
        if !said("--json") {
            boot.print();
        }
        boots.push(boot);
    }
    if said("--json") {
        let boots: Vec<Value> = boots.iter().map(Boot::json).collect();
        println!("{}", json!({ "boots": boots }));
    }
}

impl Boot {
    fn run(cpus: u32, accel: &'static str) -> Self {
        let smp: &'static str = cpus.to_string().leak();
        let mut vm = Vm::new("q35", smp, "bench=sync quiet");
        vm.accel = accel;
        // As on Intel: two RDMSR less.
        vm.cpu = "qemu64,vendor=GenuineIntel";
        vm.timeout *= 1 + cpus / 8;
        let run = vm.run();
        assert!(
            run.succeeded(),
            "{vm}: exit code {:?} after {:?}\n{}{}",
            run.code,
            Duration::from_secs(run.elapsed.as_secs()),
            run.stderr,
            run.serial
        );
        let mut boot = Self {
            cpus,
            accel,
            operations: Vec::new(),
            ticks: Vec::new(),
        };
        for line in run.serial.lines() {
            if let Some(fields) = line.trim_end().strip_prefix("BENCH ops ") {
                boot.operations.push(parse(fields));
            } else if let Some(fields) = line.trim_end().strip_prefix("BENCH ticks ") {
                boot.ticks.push(with_ratio(parse(fields)));
            }
        }
        boot
    }

    fn print(&self) {
        println!("\n{} CPUs, {}: operations of one AP", self.cpus, self.accel);
        row("state", "who", &PER_OPERATION.map(str::to_owned));
        for line in &self.operations {
            let counts = PER_OPERATION.map(|name| line[name].to_string());
            row(text(line, "state"), text(line, "who"), &counts);
        }
        println!("TSC ticks: one AP alone, and all CPUs together");
        let columns = [
            "turns",
            "ours_least",
            "peer_least",
            "ours_median",
            "peer_median",
        ];
        let mut names: Vec<String> = columns.map(str::to_owned).into();
        names.extend(RATIOS.map(str::to_owned));
        row("state", "what", &names);
        for line in &self.ticks {
            let mut cells: Vec<String> = columns.map(|name| line[name].to_string()).into();
            let ratios = RATIOS.map(|name| format!("{:.2}", line[name].as_f64().unwrap_or(0.0)));
            cells.extend(ratios);
            row(text(line, "state"), text(line, "what"), &cells);
        }
    }

    fn json(&self) -> Value {
        json!({
            "cpus": self.cpus,
            "accel": self.accel,
            "operations": self.operations,
            "ticks": self.ticks,
        })
    }
}

/// `name=value` words, numbers as numbers.
fn parse(fields: &str) -> Map<String, Value> {
    let pairs = fields.split(' ').filter_map(|word| word.split_once('='));
    let value = |text: &str| {
        text.parse::<u64>()
            .map_or_else(|_| json!(text), |number| json!(number))
    };
    pairs
        .map(|(name, text)| (name.to_owned(), value(text)))
        .collect()
}

fn with_ratio(mut line: Map<String, Value>) -> Map<String, Value> {
    let ticks = |name: &str| line[name].as_f64().expect("the kernel prints a number");
    let ratios = ["least", "median"].map(|which| {
        let [ours, peer] = ["ours", "peer"].map(|who| ticks(&format!("{who}_{which}")));
        (format!("ratio_{which}"), json!(peer / ours))
    });
    line.extend(ratios);
    line
}

fn text<'a>(line: &'a Map<String, Value>, name: &str) -> &'a str {
    line.get(name).and_then(Value::as_str).unwrap_or("")
}

fn row(first: &str, second: &str, cells: &[String]) {
    print!("  {first:<8}  {second:<8}");
    for cell in cells {
        print!("  {cell:>12}");
    }
    println!();
}
