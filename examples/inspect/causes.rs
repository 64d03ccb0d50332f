//! One cause, one finding: what the library says of each register, said once for all alike.

use std::mem::discriminant;

use mtrr_pat::diagnose::{Finding, Kind, Place, Removal};

use super::lacks::spans;
use super::map;

/// Most places that are listed.
const MOST: usize = 4;

/// `findings` in groups of one cause, in the order of the first of each.
pub fn grouped(findings: Vec<Finding>) -> Vec<Vec<Finding>> {
    let mut groups: Vec<Vec<Finding>> = Vec::new();
    for finding in findings {
        let joins =
            |group: &&mut Vec<Finding>| group.first().is_some_and(|first| alike(first, &finding));
        match groups.iter_mut().find(joins) {
            Some(group) => group.push(finding),
            None => groups.push(vec![finding]),
        }
    }
    groups
}

/// Whether two findings say the same of different registers.
fn alike(one: &Finding, other: &Finding) -> bool {
    let same =
        discriminant(&one.kind) == discriminant(&other.kind) && one.severity == other.severity;
    same && match (one.kind, other.kind) {
        (
            Kind::MaskWidth {
                mask_bits, width, ..
            },
            Kind::MaskWidth {
                mask_bits: bits,
                width: also,
                ..
            },
        ) => mask_bits == bits && width == also,
        (Kind::Redundant { removal, .. }, Kind::Redundant { removal: also, .. }) => removal == also,
        (
            Kind::NoEffect {
                winner, removal, ..
            },
            Kind::NoEffect {
                winner: other,
                removal: also,
                ..
            },
        ) => winner == other && removal == also,
        (Kind::ReservedType { place, .. }, Kind::ReservedType { place: also, .. }) => {
            discriminant(&place) == discriminant(&also)
        }
        (kind, _) => matches!(
            kind,
            Kind::MaskHoles { .. }
                | Kind::BaseUnderMask { .. }
                | Kind::ReservedBits { .. }
                | Kind::UndefinedOverlap { .. }
                | Kind::FixedDramReserved { .. }
                | Kind::CpuDiffers { .. }
                | Kind::RoutingDiffers { .. }
        ),
    }
}

/// What a group says together, when it is one of variable ranges or of registers; `None` for the
/// rest, of which the first is said and the others are counted.
pub fn together(group: &[Finding]) -> Option<String> {
    let first = group.first()?;
    let pairs: Vec<u8> = group.iter().filter_map(pair).collect();
    let which = format!("variable ranges {}", spans(&pairs));
    let said = match first.kind {
        Kind::MaskWidth {
            mask_bits, width, ..
        } => format!(
            "the masks of {which} are made for {mask_bits} bits of address, but {width} are decoded"
        ),
        Kind::MaskHoles { .. } => {
            format!("the masks of {which} have holes: each matches many separate blocks")
        }
        Kind::BaseUnderMask { .. } => {
            format!("the bases of {which} have bits that their masks leave out; they are ignored")
        }
        Kind::Redundant { removal, .. } => {
            let each = match removal {
                Removal::Together => "the map is the same without them",
                Removal::Alone => "the map is the same without any one of them",
            };
            format!("{which} are redundant: {each}")
        }
        Kind::NoEffect {
            winner: Some(winner),
            ..
        } => format!("{which} have no effect: {winner} wins wherever they match"),
        Kind::NoEffect { winner: None, .. } => {
            format!("{which} have no effect: the fixed ranges decide wherever they match")
        }
        Kind::ReservedBits { .. } => {
            let all = group.iter().filter_map(|finding| match finding.kind {
                Kind::ReservedBits { msr, .. } => Some(msr.to_string()),
                _ => None,
            });
            format!("reserved bits are set in {}", listed(all))
        }
        Kind::UndefinedOverlap { .. } => {
            let all = group.iter().filter_map(|finding| match finding.kind {
                Kind::UndefinedOverlap { pairs: [a, b] } => Some(format!("{a} and {b}")),
                _ => None,
            });
            format!(
                "variable ranges overlap in types that have no defined result: {}",
                listed(all)
            )
        }
        Kind::ReservedType {
            place: Place::Variable(_),
            found,
        } => format!("{which} have types that do not exist, the first {found}"),
        _ => return None,
    };
    let places = group.iter().filter_map(|finding| finding.extent);
    let places: Vec<String> = places.map(|extent| extent.to_string()).collect();
    Some(match places.is_empty() {
        true => said,
        false => format!("{said}: {}", listed(places.into_iter())),
    })
}

/// The first few, and how many more.
fn listed(all: impl Iterator<Item = String>) -> String {
    let all: Vec<String> = all.collect();
    let shown = all
        .iter()
        .take(MOST)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match all.len().checked_sub(MOST) {
        Some(more) if more > 0 => format!("{shown}, and {more} more"),
        _ => shown,
    }
}

/// The variable range a finding is about.
fn pair(finding: &Finding) -> Option<u8> {
    match finding.kind {
        Kind::MaskWidth { pair, .. }
        | Kind::MaskHoles { pair, .. }
        | Kind::BaseUnderMask { pair, .. }
        | Kind::Redundant { pair, .. }
        | Kind::NoEffect { pair, .. }
        | Kind::ReservedType {
            place: Place::Variable(pair),
            ..
        } => Some(pair),
        _ => None,
    }
}

/// First and last byte, and bytes, of all in a group.
pub fn extent(group: &[Finding]) -> (Option<(u64, u64)>, u64) {
    let all = || group.iter().filter_map(|finding| finding.extent);
    let start = all().map(|extent| extent.start).min();
    let last = all().map(|extent| extent.end - 1).max();
    let bytes = all().fold(0u64, |sum, extent| sum.saturating_add(extent.bytes));
    (start.zip(last), bytes)
}

/// Drops what follows from something else that is said: RAM is uncachable because all memory is.
pub fn without_consequences(findings: &mut Vec<Finding>) {
    let off = findings
        .iter()
        .any(|finding| matches!(finding.kind, Kind::OffProgrammed | Kind::OffBlank));
    let uncachable = mtrr_pat::memtype::MemType::Uncachable.into();
    findings.retain(|finding| {
        !(off
            && finding.kind
                == Kind::RamNotWriteBack {
                    memtype: uncachable,
                })
    });
}

/// `RAM is uncachable: ..` with what the kernel said of it.
pub fn with_kernels_word(text: &str, lost: u64, line: u64) -> String {
    format!(
        "{text}; the kernel leaves {} of RAM out (line {line})",
        map::bytes(lost)
    )
}
