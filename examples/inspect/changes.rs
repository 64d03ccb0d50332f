//! What became different from one state in the input to the next.

use std::collections::BTreeMap;

use mtrr_pat::lookup::Run;
use mtrr_pat::pat::Pat;

use super::differs;
use super::dump::{Dump, Listing};
use super::fill;
use super::machine::Machine;
use super::map::{self, Map};
use super::regs::{Regs, Variable};
use super::resolve;
use super::states::State;

/// The difference between two states.
#[derive(Debug)]
pub struct Change {
    /// First line of the earlier state; `None` for the log against /proc/mtrr.
    pub from: Option<u64>,
    /// Memory whose type changed: first byte, end, type before and after.
    pub memory: Vec<Memory>,
    /// Registers that changed, in words.
    pub registers: Vec<String>,
}

/// Memory of another type than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Memory {
    /// First byte.
    pub start: u64,
    /// First byte after.
    pub end: u64,
    /// The type before.
    pub before: Run,
    /// The type now.
    pub after: Run,
}

/// How each state of the input differs from the next; states that do not are left out.
pub fn all(machine: &Machine) -> Vec<Change> {
    let earlier = &machine.dump.earlier;
    let machines: Vec<Machine> = earlier
        .iter()
        .map(|state| as_machine(machine, state))
        .collect();
    let mut all: Vec<(u64, &Machine)> = earlier
        .iter()
        .zip(&machines)
        .map(|(state, machine)| (state.from, machine))
        .collect();
    all.push((0, machine));
    let states = all.windows(2).filter_map(|pair| match pair {
        [(from, before), (_, after)] => between(Some(*from), before, after),
        _ => None,
    });
    let mut changes: Vec<Change> = states.collect();
    let proc_mtrr = machine.dump.proc_mtrr.as_ref();
    changes.extend(proc_mtrr.and_then(|block| between(None, machine, &as_proc(machine, block))));
    changes
}

/// The machine as its /proc/mtrr shows it, where the input has a fuller table too.
fn as_proc(machine: &Machine, block: &BTreeMap<u8, Variable>) -> Machine {
    let regs = Regs {
        variable: block.clone(),
        ..machine.boot_regs().cloned().unwrap_or_default()
    };
    let listing = Listing {
        used_only: true,
        ..Listing::default()
    };
    let state = State {
        cpus: BTreeMap::from([(0, regs)]),
        listing,
        ..State::default()
    };
    as_machine(machine, &state)
}

/// What came before, in words.
pub fn title(change: &Change) -> String {
    match change.from {
        Some(line) => format!("Changed since the state in line {line}"),
        None => "Changed from the log to /proc/mtrr".into(),
    }
}

/// The machine as it was in `state`; what the state does not show is as in the whole input.
fn as_machine(machine: &Machine, state: &State) -> Machine {
    let mut cpus = state.cpus.clone();
    for (number, regs) in &mut cpus {
        if let Some(now) = machine.dump.cpus.get(number) {
            regs.cap = regs.cap.or(now.cap);
        }
    }
    let dump = Dump {
        cpus,
        // Another state came after it.
        records: state.listing.last_record + 1,
        listing: state.listing.clone(),
        kernel_map: state.kernel_map.clone(),
        earlier: Vec::new(),
        proc_mtrr: None,
        ..machine.dump.clone()
    };
    resolve::resolve(dump, Some(machine.bits), None)
}

fn between(from: Option<u64>, before: &Machine, after: &Machine) -> Option<Change> {
    let memory = memory(before, after);
    let registers = registers(before, after);
    let some = !memory.is_empty() || !registers.is_empty();
    some.then_some(Change {
        from,
        memory,
        registers,
    })
}

/// Memory whose type is certain in both states, and another.
fn memory(before: &Machine, after: &Machine) -> Vec<Memory> {
    let (Some(old), Some(new)) = (before.boot(), after.boot()) else {
        return Vec::new();
    };
    if !before.map_known() || !after.map_known() {
        return Vec::new();
    }
    let old = before.doubt().pieces(&Map::new(old));
    let new = after.doubt().pieces(&Map::new(new));
    let mut out: Vec<Memory> = Vec::new();
    let (mut a, mut b) = (old.iter().peekable(), new.iter().peekable());
    while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
        let (start, end) = (x.run.start.max(y.run.start), x.run.end.min(y.run.end));
        if start < end && x.certain && y.certain && x.run.memtype != y.run.memtype {
            out.push(Memory {
                start,
                end,
                before: x.run,
                after: y.run,
            });
        }
        if x.run.end <= y.run.end {
            a.next();
        } else {
            b.next();
        }
    }
    out
}

/// Registers of the first CPU that differ, and which other CPUs changed.
fn registers(before: &Machine, after: &Machine) -> Vec<String> {
    let (Some(old), Some(new)) = (before.boot(), after.boot()) else {
        return Vec::new();
    };
    let mut out = Vec::new();
    let both = before.gaps.count.is_some() == after.gaps.count.is_some();
    let count = old.variable_count().max(new.variable_count());
    for index in 0..count {
        let range = |machine: &Machine| described(machine, index);
        let (a, b) = (range(before), range(after));
        let shown = before.shows(index) && after.shows(index);
        // In /proc/mtrr what is off is not listed.
        let listed = shown || both && !before.gaps.variable() && !after.gaps.variable();
        if a != b && listed {
            out.push(format!("variable range {index}: {a}, then {b}"));
        }
    }
    let (a, b) = (before.boot_regs(), after.boot_regs());
    if let (Some(a), Some(b)) = (a, b) {
        let mut word = |name: &str, a: Option<String>, b: Option<String>| {
            if let (Some(a), Some(b)) = (a, b)
                && a != b
            {
                out.push(format!("{name}: {a}, then {b}"));
            }
        };
        let on = |on: Option<bool>| on.map(|on| if on { "on" } else { "off" }.to_string());
        let memtype = |byte: Option<u8>| {
            byte.map(|byte| {
                let name = mtrr_pat::memtype::MemType::from_field(byte);
                name.map_or_else(|_| format!("{byte:#x}"), |name| name.to_string())
            })
        };
        let pat = |word: Option<u64>| word.map(|word| Pat::from_raw(word).to_string());
        let hex = |word: Option<u64>| word.map(|word| format!("{word:#x}"));
        word("MTRRs", on(a.enabled), on(b.enabled));
        word("fixed ranges", on(a.fixed_enabled), on(b.fixed_enabled));
        word("default type", memtype(a.default), memtype(b.default));
        word("PAT", pat(a.pat), pat(b.pat));
        word("SYSCFG", hex(a.syscfg), hex(b.syscfg));
        word("TOP_MEM2", hex(a.top_mem2), hex(b.top_mem2));
    }
    out.extend(others(before, after));
    out
}

/// One line for each other CPU that changed, those alike together.
fn others(before: &Machine, after: &Machine) -> Vec<String> {
    let mut kinds: Vec<(Vec<&'static str>, Vec<u32>)> = Vec::new();
    for (number, new) in after.cpus.iter().skip(1) {
        let Some((_, old)) = before.cpus.iter().find(|(other, _)| other == number) else {
            continue;
        };
        let groups = differs::groups(old, new);
        if groups.is_empty() {
            continue;
        }
        match kinds.iter_mut().find(|(known, _)| *known == groups) {
            Some((_, cpus)) => cpus.push(*number),
            None => kinds.push((groups, vec![*number])),
        }
    }
    kinds
        .into_iter()
        .map(|(groups, cpus)| {
            format!(
                "{} changed in: {}",
                differs::named(after, &cpus),
                groups.join(", ")
            )
        })
        .collect()
}

/// What variable range `index` does: "0xc0000000+256 MiB write-back", or "off".
fn described(machine: &Machine, index: usize) -> String {
    let entry = machine
        .boot_regs()
        .and_then(|regs| regs.variable.get(&(index as u8)));
    let Some(entry) = entry else {
        return "off".into();
    };
    let pair = fill::words_of(entry, machine.bits);
    if !pair.valid() {
        return "off".into();
    }
    let name = pair
        .memtype()
        .map_or_else(|e| e.to_string(), |memtype| memtype.to_string());
    match pair.block(machine.bits) {
        Some((base, size)) => format!("{base:#x}+{} {name}", map::bytes(size)),
        None => format!(
            "base {:#x} mask {:#x} {name}",
            pair.base & !0xfff,
            pair.mask & !0xfff
        ),
    }
}

/// The change in sentences, most telling first.
pub fn lines(change: &Change) -> Vec<String> {
    let memory = change.memory.iter().map(|memory| {
        format!(
            "{:#x}-{:#x} ({}): {}, then {}",
            memory.start,
            memory.end - 1,
            map::bytes(memory.end - memory.start),
            memory.before.memtype,
            memory.after.memtype,
        )
    });
    memory.chain(change.registers.iter().cloned()).collect()
}
