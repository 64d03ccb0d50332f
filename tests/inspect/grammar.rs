//! Register files, made up, printed as each kernel and tool prints them, and read back.

use proptest::prelude::*;
use serde_json::Value;

use super::{json, type_at};

/// One variable range: base and mask without type and V, and the type.
#[derive(Clone, Copy, Debug)]
struct Range {
    base: u64,
    mask: u64,
    memtype: u8,
}

impl Range {
    fn size(self) -> u64 {
        self.mask & self.mask.wrapping_neg()
    }
}

/// What one CPU holds.
#[derive(Clone, Debug)]
struct File {
    bits: u32,
    default: u8,
    enabled: bool,
    fixed_enabled: bool,
    /// The 88 fixed ranges.
    fixed: Vec<u8>,
    variable: Vec<Option<Range>>,
}

fn memtype() -> impl Strategy<Value = u8> {
    prop::sample::select(vec![0u8, 1, 4, 5, 6])
}

/// A range of 4 KiB to half of the space, aligned to its size.
fn range(bits: u32) -> impl Strategy<Value = Range> {
    (12..bits, any::<u64>(), memtype()).prop_map(move |(shift, base, memtype)| {
        let end = 1u64 << bits;
        let mask = (end - 1) & !((1u64 << shift) - 1);
        let base = base & mask;
        Range {
            base,
            mask,
            memtype,
        }
    })
}

fn file() -> impl Strategy<Value = File> {
    (32u32..=52).prop_flat_map(|bits| {
        // Processors have an even number of them.
        let count = prop::sample::select(vec![2usize, 4, 6, 8, 10]);
        let variable = count.prop_flat_map(move |count| {
            prop::collection::vec(prop::option::weighted(0.8, range(bits)), count)
        });
        let runs = prop::collection::vec((memtype(), 1usize..30), 1..8);
        (
            Just(bits),
            memtype(),
            any::<bool>(),
            any::<bool>(),
            runs,
            variable,
        )
            .prop_map(|(bits, default, enabled, fixed_enabled, runs, variable)| {
                let mut fixed: Vec<u8> = runs
                    .iter()
                    .flat_map(|(memtype, count)| std::iter::repeat_n(*memtype, *count))
                    .collect();
                fixed.resize(88, *fixed.last().expect("a run"));
                File {
                    bits,
                    default,
                    enabled,
                    fixed_enabled,
                    fixed,
                    variable,
                }
            })
    })
}

fn long(memtype: u8) -> &'static str {
    match memtype {
        0 => "uncachable",
        1 => "write-combining",
        4 => "write-through",
        5 => "write-protect",
        _ => "write-back",
    }
}

fn short(memtype: u8) -> &'static str {
    match memtype {
        0 => "UC",
        1 => "WC",
        4 => "WT",
        5 => "WP",
        _ => "WB",
    }
}

/// First and last byte of each fixed range.
fn fixed_places() -> Vec<(u64, u64)> {
    let blocks = [
        (0u64, 0x1_0000u64, 8u64),
        (0x8_0000, 0x4000, 16),
        (0xc_0000, 0x1000, 64),
    ];
    blocks
        .iter()
        .flat_map(|(base, step, count)| {
            (0..*count).map(move |n| (base + n * step, base + (n + 1) * step - 1))
        })
        .collect()
}

/// Neighbours of one type joined.
fn fixed_runs(file: &File) -> Vec<(u64, u64, u8)> {
    let mut out: Vec<(u64, u64, u8)> = Vec::new();
    for ((first, last), memtype) in fixed_places().into_iter().zip(&file.fixed) {
        match out.last_mut() {
            Some(run) if run.2 == *memtype => run.1 = last,
            _ => out.push((first, last, *memtype)),
        }
    }
    out
}

fn abled(on: bool) -> &'static str {
    if on { "enabled" } else { "disabled" }
}

/// Linux and Xen: `high` digits above the lower eight, as each of them works them out.
fn kernel(file: &File, new: bool, xen: bool) -> String {
    let fixed_on = file.fixed_enabled && (!new || file.enabled);
    let mut out = format!("MTRR default type: {}\n", long(file.default));
    out += &format!("MTRR fixed ranges {}:\n", abled(fixed_on));
    for (first, last, memtype) in fixed_runs(file) {
        out += &if xen {
            format!("  {first:05x}-{last:05x} {}\n", long(memtype))
        } else {
            format!("  {first:05X}-{last:05X} {}\n", long(memtype))
        };
    }
    out += &format!("MTRR variable ranges {}:\n", abled(file.enabled));
    let bits = file.bits as usize;
    let number = |word: u64| {
        let (high, low) = (word >> 32, word >> 12 & 0xf_ffff);
        match (xen, new) {
            (true, _) => format!(
                "{:0width$x}000",
                word >> 12,
                width = (bits - 12).div_ceil(4)
            ),
            (false, true) => format!(
                "{high:0width$X}{low:05X}000",
                width = (bits - 20).div_ceil(4)
            ),
            (false, false) => format!(
                "{high:0width$X}{low:05X}000",
                width = (bits - 32).div_ceil(4)
            ),
        }
    };
    for (index, range) in file.variable.iter().enumerate() {
        out += &match range {
            Some(Range {
                base,
                mask,
                memtype,
            }) => format!(
                "  {index} base {} mask {} {}\n",
                number(*base),
                number(*mask),
                long(*memtype)
            ),
            None => format!("  {index} disabled\n"),
        };
    }
    out + "last_pfn = 0x1000 max_arch_pfn = 0x400000000\n"
}

/// What Linux makes of the registers since 6.5, and prints below them with `mtrr=debug`; from the
/// map that the registers give. What is of the default type is left out, as most of it is there.
fn kernel_map(object: &Value, file: &File) -> Option<String> {
    let number = |value: &Value| {
        let digits = value.as_str().expect("a number").trim_start_matches("0x");
        u64::from_str_radix(digits, 16).expect("hexadecimal")
    };
    let fixed_on = file.fixed_enabled;
    let mut entries: Vec<(u64, u64, u8)> = Vec::new();
    if fixed_on {
        entries.extend(fixed_runs(file));
    }
    let (fixed, floor) = (entries.len(), if fixed_on { 1 << 20 } else { 0 });
    for run in object["map"].as_array().expect("a list") {
        let memtype = [0, 1, 4, 5, 6]
            .into_iter()
            .find(|t| run["type"] == short(*t))?;
        let (start, last) = (number(&run["start"]).max(floor), number(&run["end"]));
        if memtype != file.default && start < last {
            entries.push((start, last, memtype));
        }
    }
    let (all, ranges) = (entries.len(), file.variable.len());
    let mut out = format!(
        "MTRR map: {all} entries ({fixed} fixed + {} variable; max {}), built from {ranges} \
         variable MTRRs\n",
        all - fixed,
        fixed + 2 * ranges
    );
    for (index, (first, last, memtype)) in entries.into_iter().enumerate() {
        out += &format!("{index:>3}: {first:016x}-{last:016x} {}\n", long(memtype));
    }
    Some(out)
}

fn words(file: &File) -> Vec<(u32, u64)> {
    let enables = u64::from(file.enabled) << 11 | u64::from(file.fixed_enabled) << 10;
    let mut out = vec![
        (0xfe, 0x500 | file.variable.len() as u64),
        (0x2ff, u64::from(file.default) | enables),
    ];
    let numbers = [0x250u32, 0x258, 0x259].into_iter().chain(0x268..=0x26f);
    for (msr, bytes) in numbers.zip(file.fixed.chunks(8)) {
        let bytes = bytes.try_into().expect("eight bytes");
        out.push((msr, u64::from_le_bytes(bytes)));
    }
    for (msr, range) in (0x200u32..).step_by(2).zip(&file.variable) {
        let (base, mask) = range.map_or((0, 0), |range| {
            (range.base | u64::from(range.memtype), range.mask | 0x800)
        });
        out.extend([(msr, base), (msr + 1, mask)]);
    }
    out
}

fn windbg(file: &File) -> String {
    let mut out = format!(
        "MTRR:  Var {}, Fixed-support {}, USWC-supported, Default: {}\n",
        file.variable.len(),
        abled(file.fixed_enabled),
        short(file.default)
    );
    for (n, ((first, last), memtype)) in fixed_places().into_iter().zip(&file.fixed).enumerate() {
        let end = if n % 4 == 3 { "\n" } else { "  " };
        out += &format!("{}:{first:05x}-{last:05x}{end}", short(*memtype));
    }
    out += "Variable:                Base               Mask               Length\n";
    let halves = |word: u64| format!("{:08x}:{:08x}", word >> 32, word & 0xffff_ffff);
    for (index, range) in file.variable.iter().enumerate() {
        out += &match range {
            Some(range) => format!(
                "  {index}.   {}: {}  {}  {}\n",
                short(range.memtype),
                halves(range.base),
                halves(range.mask),
                halves(range.size())
            ),
            None => format!("  {index}. \n"),
        };
    }
    out
}

/// /proc/mtrr, new and old: ranges that are on, in bytes.
fn proc_mtrr(file: &File, old: bool) -> String {
    let line = |(index, range): (usize, &Option<Range>)| {
        let range = (*range)?;
        let (count, unit) = match range.size() >> 20 {
            0 => (range.size() >> 10, 'K'),
            many => (many, 'M'),
        };
        let (base, name) = (range.base >> 12, long(range.memtype));
        let mib = range.base >> 20;
        Some(if old {
            format!(
                "reg{index:02}: base=0x{base:05x}000 ({mib:>4}MB), size={count:>4}{unit}B: {name}, count=1\n"
            )
        } else {
            format!(
                "reg{index:02}: base=0x{base:06x}000 ({mib:>5}MB), size={count:>5}{unit}B, count=1: {name}\n"
            )
        })
    };
    file.variable.iter().enumerate().filter_map(line).collect()
}

/// FreeBSD's memcontrol.
fn memcontrol(file: &File) -> String {
    let name = |memtype: u8| match memtype {
        0 => "uncacheable",
        1 => "write-combine",
        other => long(other),
    };
    let places = fixed_places().into_iter().zip(&file.fixed);
    let fixed = places.map(|((first, last), memtype)| {
        let size = last + 1 - first;
        format!(
            "{first:#x}/{size:#x} BIOS {} fixed-base fixed-length set-by-firmware active\n",
            name(*memtype)
        )
    });
    let variable = file.variable.iter().flatten().map(|range| {
        format!(
            "{:#x}/{:#x} BIOS {} set-by-firmware active\n",
            range.base,
            range.size(),
            name(range.memtype)
        )
    });
    fixed.chain(variable).collect()
}

/// Checks the variable ranges that are on, in order.
fn same_ranges(object: &Value, file: &File) -> Result<(), TestCaseError> {
    let seen: Vec<String> = object["variable"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|entry| entry["valid"] == true)
        .map(|entry| format!("{} {} {}", entry["base"], entry["mask"], entry["type"]))
        .collect();
    let want: Vec<String> = file
        .variable
        .iter()
        .flatten()
        .map(|range| {
            format!(
                "\"{:#x}\" \"{:#x}\" \"{}\"",
                range.base,
                range.mask,
                short(range.memtype)
            )
        })
        .collect();
    prop_assert_eq!(seen, want);
    Ok(())
}

/// Checks the fixed ranges, where they are in force.
fn same_fixed(object: &Value, file: &File) -> Result<(), TestCaseError> {
    if file.enabled && file.fixed_enabled {
        for ((first, last), memtype) in fixed_places().into_iter().zip(&file.fixed) {
            prop_assert_eq!(type_at(object, first), short(*memtype));
            prop_assert_eq!(type_at(object, last), short(*memtype));
        }
    }
    Ok(())
}

/// Checks everything that a whole table says.
fn same(text: &str, file: &File, fixed_enabled: bool) -> Result<(), TestCaseError> {
    let object = json(&[], text.as_bytes());
    if file.variable.iter().any(Option::is_some) {
        prop_assert_eq!(&object["phys_bits"], &Value::from(file.bits), "{}", text);
    }
    prop_assert_eq!(&object["default"], short(file.default));
    prop_assert_eq!(&object["fixed_enabled"], fixed_enabled, "{}", text);
    prop_assert_eq!(
        &object["registers"]["total"],
        &Value::from(file.variable.len())
    );
    same_ranges(&object, file)?;
    same_fixed(&object, file)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn what_kernels_print_is_read_back(file in file()) {
        let new_fixed = file.enabled && file.fixed_enabled;
        let old = kernel(&file, false, false);
        same(&old, &file, file.fixed_enabled)?;
        same(&kernel(&file, true, false), &file, new_fixed)?;
        let xen: String = kernel(&file, false, true)
            .lines()
            .map(|line| format!("(XEN) {line}\n"))
            .collect();
        same(&xen, &file, file.fixed_enabled)?;
        same(&(old.clone() + &old), &file, file.fixed_enabled)?;
        let reversed: String = old.lines().rev().map(|line| format!("{line}\n")).collect();
        same(&reversed, &file, file.fixed_enabled)?;
    }

    #[test]
    fn the_kernels_map_stands_in_for_registers_that_are_cut(file in file(), cut in 0..40usize) {
        let file = File { enabled: true, ..file };
        let whole = kernel(&file, true, false);
        let object = json(&[], whole.as_bytes());
        let Some(map) = kernel_map(&object, &file) else { return Ok(()) };
        prop_assume!(map.lines().count() > 1);
        let bits = file.bits.to_string();
        let default = format!("MTRR default type: {}\n", long(file.default));
        // Without the registers, and with the first of them alone.
        let lines: Vec<&str> = whole.lines().collect();
        let some = lines.get(..cut.min(lines.len())).expect("fits").join("\n") + "\n";
        for text in [format!("{default}{map}"), format!("{map}{default}"), some + &default + &map] {
            let listed = json(&["--phys-bits", &bits], text.as_bytes());
            for run in object["map"].as_array().expect("a list") {
                let start = run["start"].as_str().expect("an address").trim_start_matches("0x");
                let start = u64::from_str_radix(start, 16).expect("hexadecimal");
                let seen = type_at(&listed, start);
                prop_assert!(seen == *run["type"].as_str().expect("a type"), "{start:#x} {seen} {text}");
            }
        }
        // The list alone claims nothing else.
        let listed = json(&["--phys-bits", &bits], map.as_bytes());
        for run in object["map"].as_array().expect("a list") {
            let start = run["start"].as_str().expect("an address").trim_start_matches("0x");
            let seen = type_at(&listed, u64::from_str_radix(start, 16).expect("hexadecimal"));
            prop_assert!(seen == "unknown" || seen == *run["type"].as_str().expect("a type"), "{map}");
        }
    }

    #[test]
    fn what_tools_print_is_read_back(file in file()) {
        let list: String = words(&file)
            .iter()
            .map(|(msr, value)| format!("{msr:#x}: {value:#x}\n"))
            .collect();
        same(&list, &file, file.fixed_enabled)?;
        let loops: String = words(&file)
            .iter()
            .map(|(msr, value)| format!("# rdmsr -a {msr:#x}\n{value:x}\n{value:x}\n"))
            .collect();
        same(&loops, &file, file.fixed_enabled)?;
        let enabled = File { enabled: true, ..file.clone() };
        let text = windbg(&enabled);
        same(&text, &enabled, file.fixed_enabled)?;
        let reversed: String = text.lines().rev().map(|line| format!("{line}\n")).collect();
        same(&reversed, &enabled, file.fixed_enabled)?;
    }

    #[test]
    fn what_lists_only_ranges_is_read_back(file in file()) {
        prop_assume!(file.variable.iter().any(Option::is_some));
        // memcontrol does not number its lines: one like the line before is the same line.
        let used: Vec<String> = file.variable.iter().flatten().map(|r| format!("{r:?}")).collect();
        prop_assume!(used.windows(2).all(|pair| pair[0] != pair[1]));
        let file = File { enabled: true, fixed_enabled: true, ..file };
        let bits = file.bits.to_string();
        for text in [proc_mtrr(&file, false), proc_mtrr(&file, true)] {
            same_ranges(&json(&["--phys-bits", &bits], text.as_bytes()), &file)?;
            let twice = text.clone() + &text;
            same_ranges(&json(&["--phys-bits", &bits], twice.as_bytes()), &file)?;
        }
        let object = json(&["--phys-bits", &bits], memcontrol(&file).as_bytes());
        same_ranges(&object, &file)?;
        same_fixed(&object, &file)?;
    }
}
