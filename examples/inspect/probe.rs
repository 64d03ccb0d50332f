//! `--type ADDR`: the type of one address, and why.

use std::fmt::Write as _;

use mtrr_pat::combine::{CombineRule, Effective, Standing};
use mtrr_pat::lookup::{MtrrMap, Source};
use mtrr_pat::memtype::PatType;
use mtrr_pat::pat::Pat;
use mtrr_pat::ranges::FIXED_END;

use super::dump::Vendor;
use super::machine::Machine;
use super::map;

/// The answer, in lines.
pub fn answer(machine: &Machine, addr: u64, pat: Option<PatType>) -> String {
    let Some(snapshot) = machine.boot() else {
        return "the dump shows no registers\n".into();
    };
    let map = MtrrMap::new(snapshot);
    let doubt = machine.doubt();
    let found = map.at(addr);
    let mut out = String::new();
    if addr >= map.end() {
        let _ = writeln!(
            out,
            "{addr:#x} is above the {} physical address bits",
            machine.bits.get()
        );
        return out;
    }
    let why = match found.source {
        Source::Variable { .. } | Source::TopMem2 if machine.is_listed() => {
            "the kernel's map".to_string()
        }
        Source::Default if machine.is_listed() => "not in the kernel's map: default type".into(),
        Source::NoMtrr => "no MTRRs in the dump".to_string(),
        Source::Disabled => "the MTRRs are off: everything is uncachable".into(),
        Source::Fixed(slot) => format!("fixed range {:#x}-{:#x}", slot.start, slot.end - 1),
        Source::Variable { pairs } => format!("variable {}", pair_list(pairs)),
        Source::TopMem2 => "AMD TOP_MEM2: write-back below it".into(),
        Source::Default => "no range matches: default type".into(),
        Source::BeyondWidth => "above the address width".into(),
    };
    let name = map::short(found.memtype);
    if doubt.touches(addr, addr + 1) {
        let fixed = addr < FIXED_END && !machine.fixed_known;
        let lack = match (fixed, machine.gaps.variable()) {
            (true, _) => "the fixed ranges".into(),
            _ if machine.is_listed() && machine.default_known => {
                "the rest of the kernel's map".into()
            }
            _ if machine.is_listed() => "the default type".into(),
            (false, true) => machine.gaps.named(),
            (false, false) => "AMD's TOP_MEM2 and SYSCFG".into(),
        };
        let _ = writeln!(
            out,
            "{addr:#x}: unknown without {lack}; as far as the input goes {name} {} ({why})",
            found.memtype
        );
        return out;
    }
    let _ = writeln!(out, "{addr:#x}: {name} {} ({why})", found.memtype);
    let page = map.largest_page(addr);
    let run = map.runs_in(addr..map.end()).next();
    if let Some(run) = run {
        let _ = writeln!(
            out,
            "  same type up to {:#x}; largest page of one type here: {}",
            run.end - 1,
            map::bytes(page.bytes())
        );
    }
    let rules: &[(CombineRule, &str)] = match machine.dump.vendor {
        Vendor::Amd => &[(CombineRule::Amd, "AMD")],
        Vendor::Intel => &[(CombineRule::Intel, "Intel")],
        Vendor::Unknown => &[(CombineRule::Intel, "Intel"), (CombineRule::Amd, "AMD")],
    };
    let pages = match (pat, snapshot.pat) {
        (Some(pat), _) => vec![(format!("page with PAT type {}", pat.short()), pat)],
        (None, Some(word)) => slots(word),
        (None, None) => Vec::new(),
    };
    for (name, pat) in pages {
        let answers: Vec<String> = rules
            .iter()
            .map(|(rule, vendor)| {
                let effective = Effective::combine(found.memtype, pat, *rule);
                let doubt = match effective.standing {
                    Standing::Defined => "",
                    Standing::NotRecommended => ", not recommended",
                    Standing::Undefined => ", undefined",
                };
                format!("{} ({vendor}{doubt})", effective.page.short())
            })
            .collect();
        let _ = writeln!(out, "  {name}: {}", joined(&answers));
    }
    out
}

/// `WB (Intel), WB (AMD)` or one of them when there is only one.
fn joined(answers: &[String]) -> String {
    answers.join(", ")
}

/// The different types of the PAT, with the slots that hold them.
fn slots(word: Pat) -> Vec<(String, PatType)> {
    let mut out: Vec<(String, PatType)> = Vec::new();
    for index in 0..8 {
        let Ok(memtype) = word.slot(index) else {
            continue;
        };
        match out.iter_mut().find(|(_, known)| *known == memtype) {
            Some((name, _)) => {
                let _ = write!(name, " {index}");
            }
            None => out.push((
                format!("page with {} (PAT slot {index}", memtype.short()),
                memtype,
            )),
        }
    }
    for (name, _) in &mut out {
        name.push(')');
    }
    out
}

/// `range 0` or `ranges 0 2`.
fn pair_list(pairs: u64) -> String {
    let list: Vec<String> = (0..64)
        .filter(|bit| pairs >> bit & 1 == 1)
        .map(|bit| bit.to_string())
        .collect();
    let word = if list.len() == 1 { "range" } else { "ranges" };
    format!("{word} {}", list.join(" "))
}
