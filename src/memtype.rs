//! Memory types: their encodings in MTRRs and in the PAT, and the names people know them by.

use core::fmt;

/// A memory type an MTRR can hold.
///
/// Source: Intel SDM 3A, "Memory Types That Can Be Encoded in MTRRs"; AMD APM 2, "Memory Types".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum MemType {
    /// UC, encoding 0.
    Uncachable = 0,
    /// WC, encoding 1.
    WriteCombining = 1,
    /// WT, encoding 4.
    WriteThrough = 4,
    /// WP, encoding 5.
    WriteProtected = 5,
    /// WB, encoding 6.
    WriteBack = 6,
}

/// An encoding the manuals reserve: 2, 3 and, in an MTRR, 7; anything above 7.
///
/// WRMSR raises #GP for it on hardware; emulators and firmware dumps do show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReservedType(pub u8);

impl fmt::Display for ReservedType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "reserved memory type {:#x}", self.0)
    }
}

impl core::error::Error for ReservedType {}

impl MemType {
    /// Every type, in ascending encoding.
    pub const ALL: [Self; 5] = [
        Self::Uncachable,
        Self::WriteCombining,
        Self::WriteThrough,
        Self::WriteProtected,
        Self::WriteBack,
    ];

    /// Decodes the type byte of an MTRR.
    ///
    /// # Errors
    /// [`ReservedType`] when the manuals reserve the encoding.
    pub const fn from_field(byte: u8) -> Result<Self, ReservedType> {
        match byte {
            0 => Ok(Self::Uncachable),
            1 => Ok(Self::WriteCombining),
            4 => Ok(Self::WriteThrough),
            5 => Ok(Self::WriteProtected),
            6 => Ok(Self::WriteBack),
            other => Err(ReservedType(other)),
        }
    }

    /// The encoding, as an MTRR type byte.
    #[must_use]
    pub const fn raw(self) -> u8 {
        self as u8
    }

    /// The manuals' two-letter name: `UC`, `WC`, `WT`, `WP`, `WB`.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::Uncachable => "UC",
            Self::WriteCombining => "WC",
            Self::WriteThrough => "WT",
            Self::WriteProtected => "WP",
            Self::WriteBack => "WB",
        }
    }
}

impl fmt::Display for MemType {
    /// Writes the name used in `/proc/mtrr`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Uncachable => "uncachable",
            Self::WriteCombining => "write-combining",
            Self::WriteThrough => "write-through",
            Self::WriteProtected => "write-protect",
            Self::WriteBack => "write-back",
        })
    }
}

/// A memory type a PAT entry can hold: the five of [`MemType`] and UC-.
///
/// Source: Intel SDM 3A, "Memory Types That Can Be Encoded With PAT".
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PatType {
    /// UC, encoding 0: "strong" uncachable, wins over any MTRR.
    Uncachable = 0,
    /// WC, encoding 1.
    WriteCombining = 1,
    /// WT, encoding 4.
    WriteThrough = 4,
    /// WP, encoding 5.
    WriteProtected = 5,
    /// WB, encoding 6.
    WriteBack = 6,
    /// UC-, encoding 7: uncachable unless the MTRR says WC.
    UncachedMinus = 7,
}

impl PatType {
    /// Every type, in ascending encoding.
    pub const ALL: [Self; 6] = [
        Self::Uncachable,
        Self::WriteCombining,
        Self::WriteThrough,
        Self::WriteProtected,
        Self::WriteBack,
        Self::UncachedMinus,
    ];

    /// Decodes one byte of the PAT.
    ///
    /// # Errors
    /// [`ReservedType`] when the manuals reserve the encoding.
    pub const fn from_field(byte: u8) -> Result<Self, ReservedType> {
        match byte {
            0 => Ok(Self::Uncachable),
            1 => Ok(Self::WriteCombining),
            4 => Ok(Self::WriteThrough),
            5 => Ok(Self::WriteProtected),
            6 => Ok(Self::WriteBack),
            7 => Ok(Self::UncachedMinus),
            other => Err(ReservedType(other)),
        }
    }

    /// The encoding, as a PAT byte.
    #[must_use]
    pub const fn raw(self) -> u8 {
        self as u8
    }

    /// The manuals' short name: `UC`, `WC`, `WT`, `WP`, `WB`, `UC-`.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::Uncachable => "UC",
            Self::WriteCombining => "WC",
            Self::WriteThrough => "WT",
            Self::WriteProtected => "WP",
            Self::WriteBack => "WB",
            Self::UncachedMinus => "UC-",
        }
    }

    /// Whether memory of this type may be held in a cache: WB, WT and WP.
    #[must_use]
    pub const fn is_cacheable(self) -> bool {
        matches!(
            self,
            Self::WriteThrough | Self::WriteProtected | Self::WriteBack
        )
    }
}

impl fmt::Display for PatType {
    /// Writes the name used in kernel logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Uncachable => "uncachable",
            Self::WriteCombining => "write-combining",
            Self::WriteThrough => "write-through",
            Self::WriteProtected => "write-protect",
            Self::WriteBack => "write-back",
            Self::UncachedMinus => "uncached-minus",
        })
    }
}

impl From<MemType> for PatType {
    fn from(memtype: MemType) -> Self {
        match memtype {
            MemType::Uncachable => Self::Uncachable,
            MemType::WriteCombining => Self::WriteCombining,
            MemType::WriteThrough => Self::WriteThrough,
            MemType::WriteProtected => Self::WriteProtected,
            MemType::WriteBack => Self::WriteBack,
        }
    }
}

// Every encoding decodes to itself, and only the manuals' holes do not decode.
const _: () = {
    let mut byte: u8 = 0;
    loop {
        match MemType::from_field(byte) {
            Ok(memtype) => assert!(memtype.raw() == byte),
            Err(_) => assert!(byte == 2 || byte == 3 || byte >= 7),
        }
        match PatType::from_field(byte) {
            Ok(memtype) => assert!(memtype.raw() == byte),
            Err(_) => assert!(byte == 2 || byte == 3 || byte >= 8),
        }
        if byte == u8::MAX {
            break;
        }
        byte += 1;
    }
};
