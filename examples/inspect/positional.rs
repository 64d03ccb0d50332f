//! Values whose place alone says which CPU they are of: when a line is lost, all that follow move.

use std::collections::BTreeMap;

use super::dump::Dump;
use super::msr_word;
use super::regs::Regs;

/// How many values each register had.
#[derive(Debug, Default)]
pub struct Positional {
    counts: BTreeMap<u32, u32>,
}

impl Positional {
    /// Notes a value of register `msr`, the one for CPU `cpu`.
    pub fn saw(&mut self, msr: u32, cpu: u32) {
        let count = self.counts.entry(msr).or_default();
        *count = (*count).max(cpu.saturating_add(1));
    }

    /// How many CPUs most registers show.
    fn usual(&self) -> u32 {
        let mut of_length: BTreeMap<u32, u32> = BTreeMap::new();
        for count in self.counts.values() {
            *of_length.entry(*count).or_default() += 1;
        }
        let most = of_length
            .iter()
            .max_by_key(|(length, many)| (**many, **length));
        most.map_or(0, |(length, _)| *length)
    }

    /// Takes out of `dump` what is not certain: lists longer than usual are cut, and shorter ones
    /// dropped unless all of their values are alike.
    pub fn settle(&self, dump: &mut Dump) {
        let usual = self.usual();
        for (msr, count) in self.counts.iter().filter(|(_, count)| **count != usual) {
            let name = mtrr_pat::regs::MsrAddr(*msr);
            let why = format!("{count} values of {name}, {usual} of most others: a line is lost");
            dump.complain(dump.lines, why);
            let alike = same_everywhere(dump, *msr, *count);
            let keep = match *count > usual {
                true => usual,
                false if alike => *count,
                false => 0,
            };
            for cpu in keep..*count {
                if let Some(regs) = dump.cpus.get_mut(&cpu) {
                    msr_word::forget(regs, *msr);
                }
            }
        }
        dump.cpus
            .retain(|cpu, regs| *cpu < usual || *regs != Regs::default());
    }
}

/// Whether register `msr` is the same on CPUs 0 to `count`.
fn same_everywhere(dump: &Dump, msr: u32, count: u32) -> bool {
    let of = |cpu: u32| {
        dump.cpus
            .get(&cpu)
            .and_then(|regs| msr_word::word(regs, msr))
    };
    let first = of(0);
    (1..count).all(|cpu| of(cpu) == first)
}
