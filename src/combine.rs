//! What MTRR type and PAT type make of a page together.

use core::fmt;

use crate::memtype::{MemType, PatType};
use crate::overlap::MtrrType;

/// Whose table holds on this processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CombineRule {
    /// Intel, and those who follow its table (Zhaoxin, Centaur).
    Intel,
    /// AMD, and those who follow its table (Hygon).
    Amd,
}

/// The type that holds for accesses through a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageType {
    /// UC.
    Uncachable,
    /// CD, AMD only: not cached, but caches are probed, as if CR0.CD were set.
    CacheDisabled,
    /// WC.
    WriteCombining,
    /// WT.
    WriteThrough,
    /// WP.
    WriteProtected,
    /// WB.
    WriteBack,
}

impl PageType {
    /// The manuals' short name: `UC`, `CD`, `WC`, `WT`, `WP`, `WB`.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::Uncachable => "UC",
            Self::CacheDisabled => "CD",
            Self::WriteCombining => "WC",
            Self::WriteThrough => "WT",
            Self::WriteProtected => "WP",
            Self::WriteBack => "WB",
        }
    }

    /// Whether such memory may be held in a cache: WB, WT and WP.
    #[must_use]
    pub const fn is_cacheable(self) -> bool {
        matches!(
            self,
            Self::WriteThrough | Self::WriteProtected | Self::WriteBack
        )
    }
}

impl From<MemType> for PageType {
    fn from(memtype: MemType) -> Self {
        of_memtype(memtype)
    }
}

impl fmt::Display for PageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Uncachable => "uncachable",
            Self::CacheDisabled => "cache-disabled",
            Self::WriteCombining => "write-combining",
            Self::WriteThrough => "write-through",
            Self::WriteProtected => "write-protect",
            Self::WriteBack => "write-back",
        })
    }
}

/// How far the manuals stand behind an [`Effective`] type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Standing {
    /// They define it.
    Defined,
    /// Older editions called the combination undefined; newer ones give the type and say that
    /// every processor behaves so. Better avoided.
    NotRecommended,
    /// The MTRR type is undefined here, so the combination is: the type is a safe guess.
    Undefined,
}

/// The effective type of a page, and how sure it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Effective {
    /// The type.
    pub page: PageType,
    /// Whether to rely on it.
    pub standing: Standing,
}

impl Effective {
    /// Combines the MTRR type of some memory with the PAT type of a mapping of it.
    ///
    /// Caching is taken to be on (CR0.CD and CR0.NW clear). The mapping must not cross memory of
    /// different MTRR types: a large page that does has no defined type.
    ///
    /// Source: Intel SDM 3A, "Effective Page-Level Memory Types for Pentium III and More Recent
    /// Processor Families"; AMD APM 2, "Combined Effect of MTRRs and PAT".
    #[must_use]
    pub const fn combine(mtrr: MtrrType, pat: PatType, rule: CombineRule) -> Self {
        let memtype = mtrr.forced();
        let page = match rule {
            CombineRule::Intel => intel(memtype, pat),
            CombineRule::Amd => amd(memtype, pat),
        };
        let standing = match (mtrr, rule) {
            (MtrrType::Undefined(_), _) => Standing::Undefined,
            (_, CombineRule::Intel) if not_recommended(memtype, pat) => Standing::NotRecommended,
            _ => Standing::Defined,
        };
        Self { page, standing }
    }

    /// The type of a mapping where there are no MTRRs: the PAT decides alone.
    ///
    /// For TDX and SNP guests and processors without the feature. UC- is UC there, for there is
    /// no MTRR that could say WC.
    #[must_use]
    pub const fn of_pat(pat: PatType) -> Self {
        Self {
            page: intel(MemType::WriteBack, pat),
            standing: Standing::Defined,
        }
    }
}

impl fmt::Display for Effective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.standing {
            Standing::Defined => self.page.fmt(f),
            Standing::NotRecommended => write!(f, "{} (not recommended)", self.page),
            Standing::Undefined => write!(f, "{} (undefined)", self.page),
        }
    }
}

const fn of_memtype(memtype: MemType) -> PageType {
    match memtype {
        MemType::Uncachable => PageType::Uncachable,
        MemType::WriteCombining => PageType::WriteCombining,
        MemType::WriteThrough => PageType::WriteThrough,
        MemType::WriteProtected => PageType::WriteProtected,
        MemType::WriteBack => PageType::WriteBack,
    }
}

const fn intel(mtrr: MemType, pat: PatType) -> PageType {
    use MemType as M;
    use PatType as P;
    match (mtrr, pat) {
        (_, P::WriteCombining) => PageType::WriteCombining,
        (M::Uncachable, _) | (_, P::Uncachable) => PageType::Uncachable,
        (mtrr, P::WriteBack) => of_memtype(mtrr),
        (M::WriteCombining | M::WriteProtected, P::UncachedMinus) => PageType::WriteCombining,
        (_, P::UncachedMinus) => PageType::Uncachable,
        (M::WriteCombining, P::WriteThrough | P::WriteProtected) => PageType::Uncachable,
        (_, P::WriteThrough) => PageType::WriteThrough,
        (_, P::WriteProtected) => PageType::WriteProtected,
    }
}

/// Note 3 of Intel's table: combinations that older editions left undefined.
const fn not_recommended(mtrr: MemType, pat: PatType) -> bool {
    use MemType as M;
    use PatType as P;
    matches!(
        (mtrr, pat),
        (M::WriteCombining, P::WriteThrough | P::WriteProtected)
            | (M::WriteThrough, P::WriteProtected)
            | (M::WriteProtected, P::UncachedMinus | P::WriteThrough)
    )
}

const fn amd(mtrr: MemType, pat: PatType) -> PageType {
    use MemType as M;
    use PatType as P;
    match (mtrr, pat) {
        (_, P::WriteCombining) => PageType::WriteCombining,
        (M::Uncachable, _) => PageType::Uncachable,
        (_, P::Uncachable) => PageType::CacheDisabled,
        (mtrr, P::WriteBack) => of_memtype(mtrr),
        (M::WriteCombining, P::UncachedMinus) => PageType::WriteCombining,
        (M::WriteProtected | M::WriteBack, P::WriteProtected) => PageType::WriteProtected,
        (M::WriteThrough | M::WriteBack, P::WriteThrough) => PageType::WriteThrough,
        _ => PageType::CacheDisabled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [PatType; 6] = [
        PatType::Uncachable,
        PatType::WriteCombining,
        PatType::WriteThrough,
        PatType::WriteProtected,
        PatType::WriteBack,
        PatType::UncachedMinus,
    ];

    fn check(rule: CombineRule, table: [(MemType, &str); 5]) {
        for (mtrr, row) in table {
            for (pat, cell) in COLUMNS.into_iter().zip(row.split_whitespace()) {
                let got = Effective::combine(mtrr.into(), pat, rule);
                let marked = got.standing == Standing::NotRecommended;
                let shown = format!("{}{}", got.page.short(), if marked { "*" } else { "" });
                assert_eq!(shown, cell, "{rule:?}: MTRR {mtrr}, PAT {pat}");
            }
            assert_eq!(row.split_whitespace().count(), COLUMNS.len());
        }
    }

    /// Every cell as printed; `*` where Intel's note 3 stands.
    #[test]
    fn intel_table() {
        check(
            CombineRule::Intel,
            [
                (MemType::Uncachable, "UC WC UC UC UC UC"),
                (MemType::WriteCombining, "UC WC UC* UC* WC WC"),
                (MemType::WriteThrough, "UC WC WT WP* WT UC"),
                (MemType::WriteProtected, "UC WC WT* WP WP WC*"),
                (MemType::WriteBack, "UC WC WT WP WB UC"),
            ],
        );
    }

    #[test]
    fn amd_table() {
        check(
            CombineRule::Amd,
            [
                (MemType::Uncachable, "UC WC UC UC UC UC"),
                (MemType::WriteCombining, "CD WC CD CD WC WC"),
                (MemType::WriteThrough, "CD WC WT CD WT CD"),
                (MemType::WriteProtected, "CD WC CD WP WP CD"),
                (MemType::WriteBack, "CD WC WT WP WB CD"),
            ],
        );
    }

    #[test]
    fn undefined_mtrr_type_is_never_cached() {
        let mix = MtrrType::Undefined(crate::overlap::Undefined::Mix);
        for rule in [CombineRule::Intel, CombineRule::Amd] {
            for pat in COLUMNS {
                let got = Effective::combine(mix, pat, rule);
                assert_eq!(got.standing, Standing::Undefined);
                assert!(!got.page.is_cacheable());
            }
        }
    }

    #[test]
    fn without_mtrrs_the_pat_decides() {
        let shown: Vec<_> = COLUMNS
            .into_iter()
            .map(|pat| Effective::of_pat(pat).page.short())
            .collect();
        assert_eq!(shown, ["UC", "WC", "WT", "WP", "WB", "UC"]);
    }
}
