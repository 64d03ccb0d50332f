//! System management code that interferes.

use mtrr_pat::sim::{At, Fault, Scribble, What};

/// Before instruction `op` of `cpu` some time is lost, then a register is changed; in the window this
/// leads to E cannot be set, neither over the new register nor, when that is put back, over the old
/// one: it stays clear.
pub fn tears(cpu: usize, op: u64, picoseconds: u64) -> Vec<Fault> {
    let map = Scribble::custom(|_, registers| registers.fixed[0] ^= 0x06);
    vec![
        Fault::new(cpu, At::Op(op), What::Delay(picoseconds)),
        Fault::new(cpu, At::Op(op + 1), What::Smm(map)),
        // E off, the register, E on; E off, the register, E on.
        Fault::new(cpu, At::Wrmsr(3), What::Gp),
        Fault::new(cpu, At::Wrmsr(6), What::Gp),
    ]
}
