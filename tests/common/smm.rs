//! System management code that interferes.

use mtrr_pat::sim::{At, Fault, Scribble, What};

/// Before instruction `op` of `cpu` some time is lost, then a register is changed; and on entry to
/// each of its first three windows another one, outside the plan: it gives up and leaves E clear.
pub fn tears(cpu: usize, op: u64, picoseconds: u64) -> Vec<Fault> {
    let map = Scribble::custom(|_, registers| registers.fixed[0] ^= 0x06);
    let mut faults = vec![
        Fault::new(cpu, At::Op(op), What::Delay(picoseconds)),
        Fault::new(cpu, At::Op(op + 1), What::Smm(map)),
    ];
    for window in 1..=3 {
        let spoil = Scribble::custom(move |_, registers| {
            registers.variable[window as usize - 1].base ^= 1 << 32;
        });
        faults.push(Fault::new(cpu, At::WindowEntry(window), What::Smm(spoil)));
    }
    faults
}
