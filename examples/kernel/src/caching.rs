//! How this kernel uses `mtrr-pat`: everything it asks of the crate is in this file.

use crate::options::{self, Hold, Order};
use crate::percpu::{self, MAX_CPUS, SLOTS};
use crate::racy::Racy;
use crate::regs::RegFile;
use crate::{apic, scribble, stacks};
use mtrr_pat::combine::CombineRule;
use mtrr_pat::cpu::native::NativeCpu;
use mtrr_pat::error::Error;
use mtrr_pat::memtype::MemType;
use mtrr_pat::pat::Pat;
use mtrr_pat::policy::{PatChoice, Policy, Resync};
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::VariableMtrr;
use mtrr_pat::report::{CpuReport, Outcome, Report};
use mtrr_pat::reserve::WriteCombining;
use mtrr_pat::snapshot::Snapshot;
use mtrr_pat::sync::{CacheSync, Saved, Summary};
use mtrr_pat::topology::{self, Place};

/// The machine's memory-type state.
static SYNC: CacheSync<MAX_CPUS> = CacheSync::new();

/// What every CPU has to hold, as the boot CPU read it itself. For the verdict, and for `scribble`.
static WANTED: Racy<RegFile> = Racy::new(RegFile::EMPTY);

/// Number of the boot CPU.
pub const BOOT: usize = 0;

fn this_cpu() -> NativeCpu {
    // SAFETY: 1. kernel code in 64-bit mode, which never migrates. 2. `scribble` writes these registers too, but is done before its
    // CPU claims. 3. everything is mapped one to one by tables that do not change, write-back (devices: uncached), which no target
    // of this kernel contradicts. 4. NMI and machine-check handlers call nothing. 5. the targets are the firmware's map, with other
    // types only where there is nothing or, on the command line's order, for a frame buffer. 6. `n` is what `percpu` says.
    unsafe { NativeCpu::claim_catching() }
}

/// Boot CPU, before any AP is started.
pub fn boot(policy: Policy) -> Result<Outcome, Error> {
    // SAFETY: the APs wait for their start-up IPI; no page table of this kernel uses a slot of the PAT but 0 and 3.
    let outcome = stacks::noted(|| unsafe { SYNC.boot_init(&mut this_cpu(), BOOT, policy) })?;
    remember_wanted();
    Ok(outcome)
}

/// Calls `each` with every AP, in the order to start them: first threads of all cores before second ones, so that hardly any CPU
/// has to be held.
pub fn start_order(each: impl FnMut(usize)) {
    if options::get().order == Order::Listed {
        return (1..percpu::count()).for_each(each);
    }
    let places = core::array::from_fn::<_, MAX_CPUS, _>(|n| Place::Apic(percpu::apic_id(n)));
    let order = topology::bringup_order(&places[..percpu::count()], smt_shift());
    order.filter(|&n| n != BOOT).for_each(each);
}

/// Core and thread of CPU `n`, if the machine says.
pub fn place(n: usize) -> Option<(u32, u32)> {
    Place::Apic(percpu::apic_id(n)).split(smt_shift())
}

fn smt_shift() -> Option<u8> {
    SYNC.platform().and_then(|platform| platform.smt_shift)
}

/// Boot CPU, before the start-up IPI of CPU `n`.
pub fn starting(n: usize) -> Result<(), Error> {
    // SAFETY: the id is the one the start-up IPI goes to; the AP's trampoline gives it the number that belongs to it.
    unsafe { SYNC.starting(&mut this_cpu(), n, Place::Apic(percpu::apic_id(n))) }
}

/// Boot CPU, in every wait while APs come up: a sibling may need it to stand still.
pub fn hold_point() -> Result<(), Error> {
    SYNC.hold_point(&mut this_cpu(), BOOT)
}

/// AP `n`, as the first thing it does once it may go on.
pub fn ap_online(n: usize) {
    let slot = &SLOTS[n];
    // SAFETY: belongs to CPU `n` until it is online.
    let before = unsafe { &mut *slot.before.get() };
    // SAFETY: likewise.
    let error = unsafe { &mut *slot.error.get() };
    scribble::apply(options::get().scribble, n, wanted());
    before.read_into();
    let kick = match options::get().hold {
        Hold::Kick => apic::kick,
        Hold::Silent => |_| (),
    };
    *error = SYNC.ap_online(&mut this_cpu(), n, kick).err();
}

/// CPU `n`, in the kick's handler.
pub fn attend(n: usize) {
    if let Err(error) = SYNC.attend(&mut this_cpu(), n) {
        // SAFETY: this CPU's own; the boot CPU reads it after asking this CPU for its registers.
        unsafe { *SLOTS[n].error.get() = Some(error) };
    }
}

/// Boot CPU, when the last AP is online: everybody meets, if the policy is to do it all together or if some AP had to be left for
/// later. None when there is nothing to do.
pub fn meet_if_needed() -> Result<Option<Summary>, Error> {
    let deferred = SYNC
        .policy()
        .is_some_and(|policy| policy.resync == Resync::Deferred);
    if !deferred && SYNC.report().out_of_sync().next().is_none() {
        return Ok(None);
    }
    stacks::noted(|| SYNC.resync(&mut this_cpu(), BOOT, apic::kick)).map(Some)
}

/// Boot CPU: every CPU gets another map while all of them run. A write-combining range, elsewhere in each round, and the next of two
/// PAT layouts, neither of them the power-on one.
pub fn change(round: u32) -> Result<Summary, Error> {
    let mut target = target()?;
    if let Some((pair, range)) = wc_range(&target, round) {
        target.variable[pair] = range;
    }
    if target.pat.is_some()
        && SYNC
            .policy()
            .is_some_and(|policy| policy.pat != PatChoice::Keep)
    {
        target.pat = Some(if round.is_multiple_of(2) {
            Pat::LOW_HALF_UNTOUCHED
        } else {
            Pat::LINUX
        });
    }
    change_to(&target)
}

/// Boot CPU: every CPU gets this map, while all of them run.
pub fn change_to(target: &Snapshot) -> Result<Summary, Error> {
    // SAFETY: no RAM that Rust code uses, and no slot of the PAT that a page table uses, gets another type.
    let changed =
        stacks::noted(|| unsafe { SYNC.change(&mut this_cpu(), BOOT, target, apic::kick) });
    let summary = changed?;
    summary.ok()?;
    remember_wanted();
    Ok(summary)
}

/// What every CPU is to have.
pub fn target() -> Result<Snapshot, Error> {
    Ok(SYNC.target()?.1)
}

/// A 16 MiB write-combining block in the upper half of the physical address space, where this kernel has nothing, and the pair for
/// it: the one that holds it already, else the first that is not in use.
fn wc_range(target: &Snapshot, round: u32) -> Option<(usize, VariableMtrr)> {
    const SIZE: u64 = 16 << 20;
    let ours = |bits: PhysBits, round: u32| {
        VariableMtrr::from_block(
            bits.end() / 2 + SIZE * u64::from(round),
            SIZE,
            MemType::WriteCombining,
            bits,
        )
    };
    let pairs = target.variable_ranges();
    let last = round
        .checked_sub(1)
        .and_then(|last| ours(target.phys_bits, last));
    let pair = pairs
        .iter()
        .position(|pair| Some(*pair) == last)
        .or_else(|| pairs.iter().position(|pair| !pair.valid()))?;
    Some((pair, ours(target.phys_bits, round)?))
}

/// Width of a physical address here.
pub fn phys_bits() -> u32 {
    SYNC.platform()
        .map_or(36, |platform| platform.phys_bits.get().into())
}

/// Whose table of MTRR and PAT types holds here.
pub fn rule() -> CombineRule {
    SYNC.platform()
        .map_or(CombineRule::Intel, |platform| platform.rule)
}

/// Whether write-combining may be had: the command line may say `nowc`.
pub fn write_combining() -> WriteCombining {
    SYNC.policy()
        .map_or(WriteCombining::Allowed, |policy| policy.write_combining)
}

/// Boot CPU: CPU `n` has been sent INIT.
pub fn gone(n: usize) -> Result<(), Error> {
    // SAFETY: so it executes nothing.
    unsafe { SYNC.offline(n) }
}

/// Boot CPU: CPU `n` has stopped for good.
pub fn parked(n: usize) -> Result<(), Error> {
    // SAFETY: it has said that it halts with interrupts off, and nothing restarts it but `start`.
    unsafe { SYNC.parked(n) }
}

/// Boot CPU, just before the machine sleeps.
pub fn suspend() -> Result<Saved, Error> {
    stacks::noted(|| SYNC.suspend(&mut this_cpu(), BOOT))
}

/// Boot CPU, first thing after the wake.
pub fn resume() -> Result<Outcome, Error> {
    // SAFETY: the machine has just been woken: firmware's APs wait for a start-up IPI.
    stacks::noted(|| unsafe { SYNC.boot_resume(&mut this_cpu(), BOOT) })
}

pub fn report() -> Report<'static> {
    SYNC.report()
}

/// The crate's line about CPU `n`.
pub fn report_of(n: usize) -> Option<CpuReport> {
    SYNC.report().cpus().find(|line| line.cpu == n)
}

/// What every CPU has to hold now.
pub fn wanted() -> &'static RegFile {
    // SAFETY: replaced by the boot CPU only, while no AP comes up.
    unsafe { &*WANTED.get() }
}

fn remember_wanted() {
    // SAFETY: as for `wanted`.
    unsafe { (*WANTED.get()).read_into() };
}
