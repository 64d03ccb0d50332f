//! Which type an address has, and how a page gets one.

use mtrr_pat::combine::{Effective, PageType};
use mtrr_pat::error::Error;
use mtrr_pat::lookup::MtrrMap;
use mtrr_pat::memtype::PatType;
use mtrr_pat::pat::{Pat, Slot};

use crate::SYNC;
use crate::code::mtrr_pat_code::{
    self, MTRR_PAT_BAD_ARGUMENT, MTRR_PAT_NO_PAT, MTRR_PAT_NO_SLOT, MTRR_PAT_NOT_INITIALISED,
    MTRR_PAT_OK,
};

/// Uncachable.
pub const MTRR_PAT_UC: u32 = 0;
/// Write-combining.
pub const MTRR_PAT_WC: u32 = 1;
/// Write-through.
pub const MTRR_PAT_WT: u32 = 4;
/// Write-protected.
pub const MTRR_PAT_WP: u32 = 5;
/// Write-back.
pub const MTRR_PAT_WB: u32 = 6;
/// Uncachable unless the MTRR says write-combining: of pages only.
pub const MTRR_PAT_UC_MINUS: u32 = 7;
/// AMD's CD, an answer of `mtrr_pat_effective` only: not cached, but caches are probed.
pub const MTRR_PAT_CD: u32 = 8;

/// Without a PAT, PCD and PWT alone choose: what the power-on values say of the lower half.
fn pat() -> Result<(Pat, bool), Error> {
    let (_, target) = SYNC.target()?;
    Ok(target.pat.map_or((Pat::POWER_ON, false), |pat| (pat, true)))
}

/// The page-table bits that give a page a type, in the PAT all CPUs have.
///
/// CPU: any. Interrupts: as they are. `type`: one of MTRR_PAT_UC to MTRR_PAT_UC_MINUS. `large`: for an
/// entry that maps 2 MiB or 1 GiB, whose PAT bit is another. `*bits`: what to OR into the entry, whose
/// bits 3, 4 and 7 (12 in a large one) are clear. `*granted`: the type it will be, the same or one that
/// caches less and may stand in.
///
/// Returns OK; NO_SLOT; NO_PAT: there is none, and the type cannot be had by PCD and PWT;
/// NOT_INITIALISED; BAD_ARGUMENT.
///
/// # Safety
/// `bits` and `granted` may be written to, or are NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_page_bits(
    r#type: u32,
    large: bool,
    bits: Option<&mut u64>,
    granted: Option<&mut u32>,
) -> mtrr_pat_code {
    let Ok(Ok(wanted)) = u8::try_from(r#type).map(PatType::from_field) else {
        return MTRR_PAT_BAD_ARGUMENT;
    };
    let (pat, present) = match pat() {
        Ok(found) => found,
        Err(error) => return error.into(),
    };
    let Ok(choice) = pat.choose(wanted) else {
        return MTRR_PAT_NO_SLOT;
    };
    if !present && (!choice.is_exact() || choice.slot.index() > 3) {
        return MTRR_PAT_NO_PAT;
    }
    if let Some(bits) = bits {
        *bits = if large {
            choice.slot.bits_large()
        } else {
            choice.slot.bits_4k()
        };
    }
    if let Some(granted) = granted {
        *granted = u32::from(choice.granted.raw());
    }
    MTRR_PAT_OK
}

/// The type that memory really has: the MTRRs' of a physical address, together with the PAT's of the
/// entry that maps it, by this processor's table.
///
/// CPU: any. Interrupts: as they are. `entry`: the leaf's page-table entry; `large`: it maps 2 MiB or
/// 1 GiB. `*effective`: MTRR_PAT_UC, WC, WT, WP, WB or CD; `*mtrr`: what the MTRRs alone say. What the
/// manuals leave undefined is UC.
///
/// Returns OK; NOT_INITIALISED; TARGET_BUSY: again; BAD_ARGUMENT: the entry's slot holds no type.
///
/// # Safety
/// `effective` and `mtrr` may be written to, or are NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtrr_pat_effective(
    address: u64,
    entry: u64,
    large: bool,
    effective: Option<&mut u32>,
    mtrr: Option<&mut u32>,
) -> mtrr_pat_code {
    let (target, platform) = match (SYNC.target(), SYNC.platform()) {
        (Ok((_, target)), Some(platform)) => (target, platform),
        (Err(error), _) => return error.into(),
        (_, None) => return MTRR_PAT_NOT_INITIALISED,
    };
    let slot = if large {
        Slot::of_large(entry)
    } else {
        Slot::of_4k(entry)
    };
    let pat = target.pat.unwrap_or(Pat::POWER_ON);
    let Ok(page) = pat.slot(slot.index()) else {
        return MTRR_PAT_BAD_ARGUMENT;
    };
    let found = MtrrMap::new(&target).memtype_at(address);
    let combined = match target.cap {
        Some(_) => Effective::combine(found, page, platform.rule),
        None => Effective::of_pat(page),
    };
    if let Some(effective) = effective {
        *effective = match combined.page {
            PageType::Uncachable => MTRR_PAT_UC,
            PageType::CacheDisabled => MTRR_PAT_CD,
            PageType::WriteCombining => MTRR_PAT_WC,
            PageType::WriteThrough => MTRR_PAT_WT,
            PageType::WriteProtected => MTRR_PAT_WP,
            PageType::WriteBack => MTRR_PAT_WB,
        };
    }
    if let Some(mtrr) = mtrr {
        *mtrr = u32::from(found.forced().raw());
    }
    MTRR_PAT_OK
}
