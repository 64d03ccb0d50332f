//! A plan after a sibling's window: kept if no group of its registers was written, else made anew.
//! Also where threads share one group of registers and not another, which no simulated core does.

use super::{Need, Plan};
use crate::delta::Changes;
use crate::platform::Platform;
use crate::policy::Policy;
use crate::program::Arrival;
use crate::regs::MtrrDefType;
use crate::sim::{Config, Machine, SimCpu, firmware_map};
use crate::snapshot::Snapshot;

/// Differs from the target in one register of each group, and in the PAT.
fn before() -> Snapshot {
    let mut have = firmware_map();
    have.fixed[3] = 0;
    have.variable[1].base ^= 0x1_0000_0000;
    have.def_type = MtrrDefType::from_raw(have.def_type.raw() ^ 6);
    have
}

/// Makes a plan on a CPU that holds `have`, lets a sibling leave `then`, and renews it: the plan,
/// and how many registers were read for that.
fn renewed(have: Snapshot, then: &Snapshot) -> (Plan, u64) {
    let mut config = Config::new(1, 1);
    config.boot = have;
    let machine = Machine::new(config);
    let want = firmware_map();
    let renew = |cpu: &mut SimCpu<'_>| {
        let platform = Platform::detect(cpu);
        let policy = Policy::DEFAULT;
        let mut plan = Plan::examine(cpu, &want, &platform, &policy, Arrival::Again).unwrap();
        machine.set_registers(0, then);
        machine.clear_log();
        plan.renew(cpu, &want, &platform, &policy);
        plan
    };
    let plan = machine.run(renew, |_| {}, |_| {});
    let reads = machine.counters(0).rdmsr;
    (plan, reads)
}

#[test]
fn one_look_per_group_when_nothing_was_written() {
    let (plan, reads) = renewed(before(), &before());
    let groups = Changes::FIXED | Changes::VARIABLE | Changes::DEFAULT;
    assert_eq!((plan.changes(), reads), (groups, 3));
    let mut off = firmware_map();
    off.def_type = off.def_type.disabled();
    let (plan, reads) = renewed(off, &off);
    assert_eq!((plan.changes(), reads), (Changes::DEFAULT, 1));
}

#[test]
fn a_group_that_was_written_is_seen() {
    let want = firmware_map();
    let (fixed, variable, default) = (Changes::FIXED, Changes::VARIABLE, Changes::DEFAULT);
    for (shared, left) in [
        (fixed, variable | default),
        (variable, fixed | default),
        (default, fixed | variable),
        (fixed | variable | default, Changes::empty()),
    ] {
        let mut then = before();
        if shared.contains(fixed) {
            then.fixed = want.fixed;
        }
        if shared.contains(variable) {
            then.variable = want.variable;
        }
        if shared.contains(default) {
            then.def_type = want.def_type;
        }
        let (plan, _) = renewed(before(), &then);
        assert_eq!(plan.changes(), left, "{shared} was shared");
    }
}

/// A sibling that shares the registers and could not put them back leaves E clear.
#[test]
fn a_plan_without_a_window_is_always_made_anew() {
    let want = firmware_map();
    let mut torn = want;
    torn.def_type = torn.def_type.disabled();
    let mut unused = want;
    unused.variable[9].base = 6;
    for have in [want, unused] {
        let (plan, _) = renewed(have, &torn);
        assert_eq!(plan.need(), Need::Window);
    }
}
