//! What a dump lacks, in words.

use super::dump::Dump;
use super::gaps::{Gaps, stated_length};
use super::regs::{Regs, Variable};

impl Gaps {
    /// What is missing, in a few words: "variable ranges 0-2".
    pub fn named(&self) -> String {
        if self.none_shown {
            return "the variable ranges".into();
        }
        let mut parts = Vec::new();
        if !self.missing.is_empty() {
            let word = match self.missing.as_slice() {
                [_] => "variable range",
                _ => "variable ranges",
            };
            parts.push(format!("{word} {}", spans(&self.missing)));
        }
        if let Some(next) = self.breaks_off {
            parts.push(format!(
                "what comes after variable range {}",
                next.saturating_sub(1)
            ));
        }
        parts.join(" and ")
    }

    /// What is seen to be missing, in sentences.
    pub fn lacks(&self, dump: &Dump) -> Vec<String> {
        let mut out = Vec::new();
        if self.variable() {
            let one = self.missing.len() + usize::from(self.breaks_off.is_some()) == 1;
            let verb = if one && !self.none_shown { "is" } else { "are" };
            let hint = match dump.listing.used_only {
                true => " (off, or the line is missing)",
                false => "",
            };
            out.push(format!("{} {verb} not in the input{hint}", self.named()));
        }
        if self.top_mem2 {
            out.push(
                "an AMD processor, and SYSCFG is not in the input: TOP_MEM2 may make memory above \
                 4 GiB write-back (Linux prints a TOM2 line then)"
                    .into(),
            );
        }
        out
    }

    /// What is missing or may be, and what follows from that, in sentences.
    pub fn sentences(&self, regs: &Regs, dump: &Dump) -> Vec<String> {
        let mut out = self.lacks(dump);
        let list_ends_input =
            dump.listing.last_record > 0 && dump.records <= dump.listing.last_record;
        if !self.variable() && self.count.is_none() && list_ends_input {
            let last = regs.variable.keys().next_back().copied().unwrap_or(0);
            out.push(format!(
                "the input ends with variable range {last}: all that follows holds if none is cut off"
            ));
        }
        let listing = &dump.listing;
        let silent = !listing.every && !listing.used_only;
        let firmware = (silent || listing.open_ended) && regs.cap.is_none();
        if !self.variable() && firmware && !list_ends_input && stated_length(regs, dump) == 0 {
            out.push(
                "the table does not say how many variable ranges there are: all that follows holds \
                 if none is cut off"
                    .into(),
            );
        }
        if !self.beyond.is_empty() {
            out.push(format!(
                "MTRRCAP says that {} variable ranges exist: {} in the input do not count",
                self.count.unwrap_or(0),
                spans(&self.beyond)
            ));
        }
        let on = regs
            .variable
            .values()
            .any(|e| matches!(e, Variable::Range { .. }));
        if regs.enabled.is_none() && !on {
            out.push("assumed: the MTRRs are on (the input does not say)".into());
        }
        out
    }
}

/// `0-2, 5`
pub fn spans(numbers: &[u8]) -> String {
    let mut out: Vec<(u8, u8)> = Vec::new();
    for number in numbers {
        match out.last_mut() {
            Some(last) if last.1 + 1 == *number => last.1 = *number,
            _ => out.push((*number, *number)),
        }
    }
    let parts: Vec<String> = out
        .into_iter()
        .map(|(a, b)| {
            if a == b {
                a.to_string()
            } else {
                format!("{a}-{b}")
            }
        })
        .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_joined_to_spans() {
        assert_eq!(spans(&[0, 1, 2, 5]), "0-2, 5");
        assert_eq!(spans(&[7]), "7");
    }
}
