//! A snapshot as a few lines for a log.

use core::fmt;

use super::Snapshot;

impl fmt::Display for Snapshot {
    /// What is in force, then a line per variable range in use: its number, first and last byte (base
    /// and mask, where the mask has holes) and type. No newline at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.cap {
            None => f.write_str("no MTRRs")?,
            Some(_) => {
                let on = |on| if on { "on" } else { "off" };
                write!(f, "MTRRs {}, fixed ", on(self.def_type.enabled()))?;
                f.write_str(if self.has_fixed() {
                    on(self.def_type.fixed_enabled())
                } else {
                    "none"
                })?;
                match self.def_type.memtype() {
                    Ok(memtype) => write!(f, ", default {}", memtype.short())?,
                    Err(reserved) => write!(f, ", default {reserved}")?,
                }
            }
        }
        match self.pat {
            Some(pat) => write!(f, ", PAT {pat}")?,
            None => f.write_str(", no PAT")?,
        }
        for (n, range) in self.variable_ranges().iter().enumerate() {
            if !range.valid() {
                continue;
            }
            write!(f, "\n{n:3}  ")?;
            match range.block(self.phys_bits) {
                Some((base, size)) => write!(f, "{base:#x}-{:#x}", base + (size - 1))?,
                None => write!(f, "base {:#x} mask {:#x}", range.base, range.mask)?,
            }
            match range.memtype() {
                Ok(memtype) => write!(f, "  {}", memtype.short())?,
                Err(reserved) => write!(f, "  {reserved}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memtype::MemType;
    use crate::ranges::PhysBits;
    use crate::regs::{MtrrCap, MtrrDefType, VariableMtrr};
    use std::string::ToString;

    #[test]
    fn a_map_is_printed_as_it_is() {
        let bits = PhysBits::new(36).unwrap();
        let mut map = Snapshot::empty(bits);
        assert_eq!(map.to_string(), "no MTRRs, no PAT");
        map.cap = Some(MtrrCap::from_raw(8));
        map.def_type = MtrrDefType::from_raw(0x800);
        map.variable[1] = VariableMtrr::from_block(0, 1 << 31, MemType::WriteBack, bits).unwrap();
        map.variable[2] = VariableMtrr {
            base: 2,
            mask: 0xf_ff0f_f800,
        };
        let said = "MTRRs on, fixed none, default UC, no PAT\n  1  0x0-0x7fffffff  WB\n  2  base 0x2 mask 0xfff0ff800";
        assert!(map.to_string().starts_with(said), "{map}");
        map.variable[7] = VariableMtrr {
            base: u64::MAX,
            mask: u64::MAX,
        };
        map.def_type = MtrrDefType::from_raw(u64::MAX);
        let _ = map.to_string();
    }
}
