//! The object code of the kernel, as `objdump` prints it: what can be reached from a function.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Every function: its name and its instructions, by address.
pub struct Object {
    functions: BTreeMap<u64, (String, Vec<String>)>,
}

impl Object {
    /// Disassembles a statically linked executable.
    pub fn of(kernel: &Path) -> Self {
        let output = Command::new("objdump")
            .args(["-d", "--no-show-raw-insn", "-C"])
            .arg(kernel)
            .output()
            .expect("objdump comes with the linker");
        assert!(output.status.success());
        let mut functions: BTreeMap<u64, (String, Vec<String>)> = BTreeMap::new();
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            if let Some((start, name)) = header(line) {
                functions.insert(start, (name.into(), Vec::new()));
            } else if let (Some((_, instruction)), Some(mut last)) =
                (line.split_once(":\t"), functions.last_entry())
            {
                last.get_mut().1.push(instruction.trim().into());
            }
        }
        Self { functions }
    }

    /// Every instruction of every function.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        let functions = self.functions.values();
        functions.flat_map(|(_, code)| code.iter().map(String::as_str))
    }

    /// The instructions of the functions that can be reached from this one by calls and jumps, and by
    /// pointers to functions that are taken on the way; with the function each is in. Not followed:
    /// what a panic does.
    pub fn reached_from(&self, root: &str) -> Vec<(&str, &str)> {
        let named = |(start, (name, _)): (&u64, &(String, _))| (name == root).then_some(*start);
        let mut ahead = vec![self.functions.iter().find_map(named).expect("it is there")];
        let mut seen = BTreeSet::new();
        let mut reached = Vec::new();
        while let Some(start) = ahead.pop() {
            let (name, code) = &self.functions[&start];
            if name.contains("panic") || !seen.insert(start) {
                continue;
            }
            for instruction in code {
                reached.push((name.as_str(), instruction.as_str()));
                ahead.extend(self.leads_to(instruction));
            }
        }
        reached
    }

    fn leads_to(&self, instruction: &str) -> Vec<u64> {
        let (operation, operands) = instruction.split_once(' ').unwrap_or((instruction, ""));
        let operands = operands.trim();
        if operation.starts_with('j') || operation == "call" {
            let digits = operands.split(' ').next().unwrap_or("");
            let target = u64::from_str_radix(digits, 16).ok();
            let function = target.and_then(|at| self.functions.range(..=at).next_back());
            return function.map(|(start, _)| *start).into_iter().collect();
        }
        // The kernel is linked to fixed addresses below 4 GiB: a pointer is an immediate operand.
        let immediates = operands.split("$0x").skip(1);
        let values = immediates.filter_map(|text| {
            let end = text.find(|c: char| !c.is_ascii_hexdigit());
            u64::from_str_radix(&text[..end.unwrap_or(text.len())], 16).ok()
        });
        values
            .filter(|at| self.functions.contains_key(at))
            .collect()
    }
}

/// `0000000002016ee0 <name>:`
fn header(line: &str) -> Option<(u64, &str)> {
    let (address, name) = line.strip_suffix(">:")?.split_once(" <")?;
    Some((u64::from_str_radix(address, 16).ok()?, name))
}

/// Whether an instruction locks the bus where its operand is not cached: by prefix, or XCHG with memory.
pub fn is_locked(instruction: &str) -> bool {
    instruction.starts_with("lock") || instruction.starts_with("xchg") && instruction.contains('(')
}
