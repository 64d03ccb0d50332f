//! Edits of a running machine, judged page by page.

use mtrr_pat::layout::{
    DefaultType, Edit, Flaw, LayoutError, Plan, Priority, Region, Scratch, Solution, scratch_len,
};
use mtrr_pat::memtype::MemType;
use mtrr_pat::overlap::MtrrType;
use mtrr_pat::ranges::PhysBits;
use mtrr_pat::regs::{MtrrCap, MtrrDefType, SysCfg, VariableMtrr};
use mtrr_pat::snapshot::Snapshot;

use super::check::{any_region, any_type};
use super::naive::PAGE;
use crate::oracle::{Rng, page_type};

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
use MemType::{
    Uncachable as UC, WriteBack as WB, WriteCombining as WC, WriteProtected as WP,
    WriteThrough as WT,
};

/// A machine with MTRRs on, fixed ranges on and all WB.
fn machine(width: u8, vcnt: u64, default: MemType, blocks: &[(u64, u64, MemType)]) -> Snapshot {
    let bits = PhysBits::new(width).expect("a width");
    let mut snapshot = Snapshot::empty(bits);
    snapshot.cap = Some(MtrrCap::from_raw(vcnt | 1 << 8 | 1 << 10));
    snapshot.def_type = MtrrDefType::from_raw(0xc00 | u64::from(default.raw()));
    snapshot.fixed = [0x0606_0606_0606_0606; 11];
    for (slot, (start, size, memtype)) in snapshot.variable.iter_mut().zip(blocks) {
        *slot = VariableMtrr::from_block(*start, *size, *memtype, bits).expect("a block");
    }
    snapshot
}

fn exact(outcome: Result<Solution, LayoutError>) -> Plan {
    match outcome {
        Ok(Solution::Exact(plan)) => plan,
        other => panic!("{other:?}"),
    }
}

fn at(snapshot: &Snapshot, addr: u64) -> MemType {
    page_type(snapshot, addr).defined().expect("a defined type")
}

/// Registers two states differ in, as writes that a CPU pays for.
fn writes(a: &Snapshot, b: &Snapshot) -> usize {
    let words = a.variable.iter().zip(&b.variable);
    let words = words.map(|(a, b)| usize::from(a.base != b.base) + usize::from(a.mask != b.mask));
    words.sum::<usize>() + usize::from(a.def_type != b.def_type)
}

#[test]
fn half_a_fixed_register() {
    let boot = machine(36, 8, UC, &[(0, GIB, WB)]);
    let mut edit = Edit::of(&boot).expect("on");
    edit.set(Region::ram(0xf_0000, 0xf_4000, WP))
        .expect("on steps");
    let target = edit.target(&exact(edit.plan())).unwrap();
    let mut want = boot;
    want.fixed[9] = 0x0606_0606_0505_0505;
    assert_eq!(target, want);
}

#[test]
fn fixed_boundaries_must_fall_on_steps() {
    let boot = machine(36, 8, UC, &[(0, GIB, WB)]);
    let mut edit = Edit::of(&boot).expect("on");
    let off = |addr, step| Err(LayoutError::FixedStep { addr, step });
    assert_eq!(
        edit.set(Region::ram(0x1000, 0x1_0000, UC)),
        off(0x1000, 0x1_0000)
    );
    assert_eq!(
        edit.set(Region::ram(0, 0x8_2000, UC)),
        off(0x8_2000, 0x4000)
    );
    assert_eq!(
        edit.set(Region::ram(0xa_1000, 2 * MIB, UC)),
        off(0xa_1000, 0x4000)
    );
    let flaw = |flaw| Err(LayoutError::Region { index: 0, flaw });
    assert_eq!(
        edit.set(Region::ram(0xf_0800, 0xf_1000, UC)),
        flaw(Flaw::Unaligned)
    );
    assert_eq!(
        edit.set(Region::ram(0xf_0000, 0xf_0000, UC)),
        flaw(Flaw::Empty)
    );
    assert_eq!(edit.set(Region::ram(GIB, MIB, UC)), flaw(Flaw::Empty));
    assert_eq!(
        edit.set(Region::ram(0, (1 << 36) + PAGE, UC)),
        flaw(Flaw::OutOfSpace)
    );
    assert_eq!(edit.target(&exact(edit.plan())).unwrap(), boot);
}

#[test]
fn dram_bits_stay() {
    let mut boot = machine(48, 8, UC, &[(0, GIB, WB)]);
    boot.fixed = [0x1e1e_1e1e_1e1e_1e1e; 11];
    boot.syscfg = Some(SysCfg::MTRR_FIX_DRAM_MOD_EN | SysCfg::MTRR_FIX_DRAM_EN);
    let mut edit = Edit::of(&boot).expect("on");
    let refused = edit.set(Region::ram(0xc_0000, 0xc_2000, WP));
    assert_eq!(refused, Err(LayoutError::DramBits { addr: 0xc_0000 }));
    edit.set(Region::mmio(0xa_0000, 0xc_0000, UC))
        .expect("UC goes with both");
    let target = edit.target(&exact(edit.plan())).unwrap();
    assert_eq!(target.fixed[2], 0x1818_1818_1818_1818);
    assert_eq!(target.fixed[3], boot.fixed[3]);
}

#[test]
fn across_one_mib() {
    let boot = machine(36, 8, UC, &[(0, GIB, WB)]);
    let mut edit = Edit::of(&boot).expect("on");
    edit.set(Region::ram(0xe_0000, 3 * MIB, UC))
        .expect("on steps");
    let target = edit.target(&exact(edit.plan())).unwrap();
    assert_eq!([7, 8, 9, 10].map(|word| target.fixed[word]), [0; 4]);
    assert_eq!(target.fixed[6], boot.fixed[6]);
    assert_eq!(
        [MIB, 3 * MIB - PAGE, 3 * MIB].map(|addr| at(&target, addr)),
        [UC, UC, WB]
    );
}

#[test]
fn below_one_mib_without_fixed_ranges() {
    let mut boot = machine(36, 8, UC, &[(0, GIB, WB)]);
    boot.def_type = MtrrDefType::from_raw(0x800);
    let mut edit = Edit::of(&boot).expect("on");
    edit.set(Region::mmio(0x3000, 0x5000, UC))
        .expect("any page");
    let target = edit.target(&exact(edit.plan())).unwrap();
    let types = [0x2000, 0x3000, 0x4000, 0x5000].map(|addr| at(&target, addr));
    assert_eq!(types, [WB, UC, UC, WB]);
    assert_eq!(target.fixed, boot.fixed);
}

#[test]
fn no_map_to_edit() {
    let off = Some(LayoutError::MtrrsOff);
    assert_eq!(Edit::of(&Snapshot::empty(PhysBits::MIN)).err(), off);
    let mut boot = machine(36, 8, UC, &[]);
    boot.def_type = MtrrDefType::from_raw(0x400);
    assert_eq!(Edit::of(&boot).err(), off);
}

#[test]
fn a_framebuffer_takes_one_free_slot_and_leaves_the_rest() {
    let mut boot = machine(39, 10, UC, &[(0, 2 * GIB, WB), (4 * GIB, 4 * GIB, WB)]);
    // Junk in a slot that is not in use stays, too.
    boot.variable[3] = VariableMtrr {
        base: 0x1234_5006,
        mask: 0,
    };
    let mut edit = Edit::of(&boot).expect("on");
    edit.set(Region::mmio(0xd000_0000, 0xe000_0000, WC))
        .expect("sound");
    let target = edit.target(&exact(edit.plan())).unwrap();
    assert_eq!(writes(&boot, &target), 2);
    assert_eq!(at(&target, 0xd800_0000), WC);
    assert_eq!(at(&target, 0xe000_0000), UC);
    // Taken out again, all is as it was but for the words of the slot.
    let mut undo = Edit::of(&target).expect("on");
    undo.remove(0xd000_0000..0xe000_0000, WC)
        .expect("it is there");
    let undone = undo.target(&exact(undo.plan())).unwrap();
    assert_eq!(writes(&target, &undone), 1);
    assert_eq!(at(&undone, 0xd800_0000), UC);
}

/// Default WB, all ten registers UC, most of them mergeable: nothing is free for a framebuffer
/// inside the UC space until the map is planned anew.
#[test]
fn room_is_made_where_the_firmware_was_wasteful() {
    let blocks = [
        (0x8000_0000, 0x4000_0000, UC),
        (0xc000_0000, 0x2000_0000, UC),
        (0xe000_0000, 0x1000_0000, UC),
        (0xf000_0000, 0x800_0000, UC),
        (0xf800_0000, 0x400_0000, UC),
        (0xfc00_0000, 0x200_0000, UC),
        (0xfe00_0000, 0x100_0000, UC),
        (0xff00_0000, 0x80_0000, UC),
        (0xff80_0000, 0x40_0000, UC),
        (0xffc0_0000, 0x40_0000, UC),
    ];
    let boot = machine(39, 10, WB, &blocks);
    let mut edit = Edit::of(&boot).expect("on");
    assert_eq!(exact(edit.replan()).registers().len(), 1);
    edit.set(Region::mmio(0xd000_0000, 0xe000_0000, WC))
        .expect("sound");
    let plan = exact(edit.keep_free(2).plan());
    assert!(plan.registers().len() <= 8);
    let target = edit.target(&plan).unwrap();
    for (addr, want) in [
        (0x7fff_f000, WB),
        (0x8000_0000, UC),
        (0xcfff_f000, UC),
        (0xd000_0000, WC),
        (0xdfff_f000, WC),
        (0xe000_0000, UC),
        (0xffff_f000, UC),
        (0x1_0000_0000, WB),
    ] {
        assert_eq!(at(&target, addr), want, "{addr:#x}");
    }
}

/// A target with a part of the plan would be another map.
#[test]
fn a_plan_for_another_machine_is_refused() {
    let blocks = [(0, GIB, WB), (2 * GIB, GIB, WB)];
    let boot = machine(36, 8, UC, &blocks);
    let mut edit = Edit::of(&boot).expect("on");
    edit.set(Region::mmio(0xd000_0000, 0xe000_0000, WC))
        .expect("sound");
    let plan = exact(edit.plan());
    let planned = plan.registers().len();
    for exist in [planned - 1, 0] {
        let other = machine(36, exist as u64, UC, &blocks[..exist.min(2)]);
        let refused = Err(LayoutError::DoesNotFit { planned, exist });
        assert_eq!(plan.target(&other), refused);
    }
    let enough = machine(36, planned as u64, UC, &blocks);
    assert!(plan.target(&enough).is_ok());
    let wider = machine(46, 8, UC, &blocks);
    let refused = Err(LayoutError::OtherWidth {
        planned: boot.phys_bits,
        exist: wider.phys_bits,
    });
    assert_eq!(plan.target(&wider), refused);
}

#[test]
fn too_few_registers_even_so() {
    let boot = machine(36, 2, UC, &[(0, GIB, WB), (2 * GIB, GIB, WB)]);
    let mut edit = Edit::of(&boot).expect("on");
    let framebuffer = Region::mmio(0xd000_0000, 0xe000_0000, WC).priority(Priority::Low);
    edit.default_type(DefaultType::Given(UC))
        .set(framebuffer)
        .expect("sound");
    assert_eq!(edit.plan(), Ok(Solution::Impossible { need: 3, have: 2 }));
    let mut scratch = [Scratch::EMPTY; scratch_len(2, PhysBits::MAX)];
    match edit.replan_least_damage(&mut scratch) {
        Ok(Solution::Relaxed { plan, lost }) => {
            assert_eq!((lost.high, lost.normal, lost.low), (0, 0, 0x1000_0000));
            let losses: Vec<_> = edit.losses(&plan).collect();
            assert_eq!(losses.len(), 1);
            assert_eq!((losses[0].start, losses[0].end), (0xd000_0000, 0xe000_0000));
            assert_eq!((losses[0].wanted, losses[0].got), (WC, UC));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn ranges_taken_out() {
    let boot = machine(
        36,
        8,
        UC,
        &[(0, 4 * GIB, WB), (GIB, GIB, UC), (GIB, 16 * MIB, WC)],
    );
    let mut edit = Edit::of(&boot).expect("on");
    assert_eq!(edit.remove(0..4 * GIB, WT), Err(LayoutError::NoSuchRange));
    assert_eq!(edit.remove(0..2 * GIB, WB), Err(LayoutError::NoSuchRange));
    // UC hides an overlap of WC and WB that would come to light.
    assert_eq!(
        edit.remove(GIB..2 * GIB, UC),
        Err(LayoutError::Undefined { addr: GIB })
    );
    edit.remove(GIB..2 * GIB, WC).expect("it is there");
    edit.remove(GIB..2 * GIB, UC).expect("it is there");
    let target = edit.target(&exact(edit.plan())).unwrap();
    assert_eq!(at(&target, GIB), WB);
    assert_eq!(writes(&boot, &target), 2);
}

/// Registers that hold anything, as firmware or a fuzzer leaves them.
fn any_machine(rng: &mut Rng, junk: bool) -> Snapshot {
    let width = 32 + rng.below(21) as u8;
    let mut snapshot = machine(width, rng.below(13), any_type(rng), &[]);
    if rng.one_in(2) {
        snapshot.def_type = MtrrDefType::from_raw(0x800 | u64::from(any_type(rng).raw()));
    }
    if rng.one_in(3) {
        snapshot.syscfg = Some(SysCfg::MTRR_TOM2_EN | SysCfg::TOM2_FORCE_WB);
        snapshot.top_mem2 = rng.below(1 << 13) << 23;
    }
    for slot in &mut snapshot.variable {
        let order = 12 + rng.below(u64::from(width) - 11);
        let base = rng.next() & ((1 << width) - 1) & !((1 << order) - 1);
        let bits = snapshot.phys_bits;
        if rng.one_in(2) {
            let block = VariableMtrr::from_block(base, 1 << order, any_type(rng), bits);
            *slot = block.expect("an aligned block");
        }
        if junk && rng.one_in(8) {
            *slot = VariableMtrr {
                base: rng.next(),
                mask: rng.next(),
            };
        }
    }
    snapshot
}

/// What an address is expected to be after edits of a machine, in order.
fn expected(boot: &Snapshot, edits: &[Region], addr: u64) -> Option<MemType> {
    let last = edits
        .iter()
        .rev()
        .find(|r| (r.start..r.end).contains(&addr));
    match last.map(|region| region.want) {
        Some(mtrr_pat::layout::Want::Type(memtype)) => Some(memtype),
        Some(mtrr_pat::layout::Want::DontCare) => None,
        None => Some(page_type(boot, addr).forced()),
    }
}

#[test]
fn random_edits_change_what_was_asked_and_nothing_else() {
    let mut rng = Rng(20);
    let mut solved = 0;
    for _ in 0..3000 {
        let boot = any_machine(&mut rng, false);
        let mut edit = Edit::of(&boot).expect("contiguous masks");
        let fixed_end = if boot.fixed_in_force() { MIB } else { 0 };
        let mut edits = Vec::new();
        for _ in 0..rng.below(4) {
            let mut region = any_region(&mut rng, boot.phys_bits.get());
            region.start = region.start.max(fixed_end);
            match edit.set_over_ram(region) {
                Ok(()) => edits.push(region),
                Err(error) => assert!(region.end <= region.start, "{error}"),
            }
        }
        let outcome = if rng.one_in(2) {
            edit.plan()
        } else {
            edit.replan()
        };
        let plan = match outcome.expect("a sound map") {
            Solution::Exact(plan) => plan,
            Solution::Impossible { need, have } => {
                assert!(need > have);
                continue;
            }
            Solution::Relaxed { .. } => panic!("not asked for"),
        };
        solved += 1;
        let target = edit.target(&plan).unwrap();
        let mut points = vec![0, fixed_end, 1 << 32, boot.phys_bits.end()];
        points.extend(edits.iter().flat_map(|region| [region.start, region.end]));
        for range in boot.variable.iter().chain(&target.variable) {
            let (start, size) = range.block(boot.phys_bits).expect("contiguous masks");
            points.extend([start, start + size]);
        }
        points.push(boot.top_mem2 & !0x7f_ffff);
        for addr in points
            .into_iter()
            .filter(|addr| *addr < boot.phys_bits.end())
        {
            if let Some(want) = expected(&boot, &edits, addr) {
                assert_eq!(
                    page_type(&target, addr),
                    MtrrType::Defined(want),
                    "{addr:#x}"
                );
            }
        }
        assert_eq!((target.fixed, target.pat), (boot.fixed, boot.pat));
    }
    assert!(solved > 1000, "{solved}");
}

#[test]
fn any_register_content_has_an_answer() {
    let mut rng = Rng(21);
    let mut scratch = vec![Scratch::EMPTY; scratch_len(12, PhysBits::MAX)];
    let mut full = 0;
    for _ in 0..1000 {
        let mut boot = any_machine(&mut rng, true);
        if rng.one_in(8) {
            boot.def_type = MtrrDefType::from_raw(rng.next());
        }
        boot.fixed = boot.fixed.map(|_| rng.next());
        let mut edit = match Edit::of(&boot) {
            Ok(edit) => edit,
            Err(LayoutError::MapFull { .. }) => {
                full += 1;
                continue;
            }
            Err(error) => {
                assert_eq!(error, LayoutError::MtrrsOff);
                continue;
            }
        };
        let region = any_region(&mut rng, boot.phys_bits.get());
        let _ = edit.set(region);
        let _ = edit.remove(region.start..region.end, any_type(&mut rng));
        for outcome in [
            edit.plan(),
            edit.replan(),
            edit.replan_least_damage(&mut scratch),
        ] {
            match outcome.expect("a sound map") {
                Solution::Exact(plan) => assert!(plan.registers().len() <= boot.variable_count()),
                Solution::Relaxed { lost, .. } => assert!(lost.total() > 0),
                Solution::Impossible { need, have } => assert!(need > have),
            }
        }
    }
    assert!(full < 700, "{full}");
}
