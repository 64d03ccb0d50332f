//! What drivers, X servers and tests say about memory types, by text, and what each line is about.

use super::subject::Subject;

/// Texts in lines, most telling first where a line has several; `%` stands for anything.
pub const KNOWN: &[(&str, Subject)] = &[
    // NVIDIA's, with a kernel without PAT or with another.
    ("NVRM: AGPGART: unable to set MTRR", Subject::DriverWithout),
    ("NVRM: %MTRR", Subject::NvidiaTypes),
    ("NVRM: PAT ", Subject::NvidiaTypes),
    ("NVRM: %due to PAT", Subject::NvidiaTypes),
    ("NVRM: VM: cache type ", Subject::NvidiaTypes),
    ("NVRM: VM: memory type ", Subject::NvidiaTypes),
    // The kernel's help for drivers that may do without PAT: FreeBSD gives the error's number.
    ("Failed to add WC MTRR%]: -", Subject::BsdWithout),
    ("Failed to add WC MTRR", Subject::DriverWithoutPat),
    ("Successfully added WC MTRR", Subject::DriverWith),
    // DragonFly's, and X servers on the BSDs.
    ("mtrr_add FAILED for offset", Subject::BsdWithout),
    ("mtrr_add SUCCESS for offset", Subject::DriverWith),
    ("failed to set mtrr:", Subject::BsdWithout),
    ("memcontrol: can't %range", Subject::BsdTool),
    ("memconfig: can't %range", Subject::BsdTool),
    ("memcontrol: couldn't clear range", Subject::BsdTool),
    ("memconfig: couldn't clear range", Subject::BsdTool),
    // Intel's and others through DRM, ATI's, i810fb, intelfb, sm501, ivtv, i2o, X servers.
    ("MTRR allocation failed", Subject::DriverWithout),
    ("mtrr allocation failed", Subject::DriverWithout),
    ("unable to set MTRR", Subject::DriverWithout),
    (
        "mtrr_add() failed to add write combining",
        Subject::DriverWithout,
    ),
    // PowerVR's and others.
    ("mtrr_add failed (", Subject::DriverWithout),
    ("Removed MMIO write-combining range", Subject::TakenAway),
    (
        "Failed to remove MMIO write-combining range",
        Subject::TakenAway,
    ),
    (
        "Failed to set up write-combining range",
        Subject::DriverWithout,
    ),
    ("could not enable write combining", Subject::DriverWithout),
    // matroxfb, tdfxfb, nvidiafb.
    ("MTRR's turned on", Subject::DriverWith),
    ("MTRR set to ON", Subject::DriverWith),
    // uvesafb.
    ("mtrr should be set to 0 or 3", Subject::BadOption),
    // ipath and qib, mlx4 and mlx5.
    ("mtrr_add()  WC for PIO bufs failed", Subject::SendBuffers),
    ("no WC mtrr", Subject::SendBuffers),
    ("Write combining not enabled", Subject::SendBuffers),
    ("Write combining is not supported", Subject::SendBuffers),
    ("Failed to map blue flame area", Subject::SendBuffers),
    // amdgpu.
    ("Unable to set WC memtype", Subject::Aperture),
    // TTM, for RAM that a graphics card reads.
    ("Failed to set %pages to wc", Subject::PageType),
    ("Failed to set %pages to uc", Subject::PageType),
    ("ioremap on RAM at ", Subject::MappedRam),
    // fwts.
    ("Memory range 0x%has incorrect attribute", Subject::Tested),
    ("Memory range 0x%is lacking attribute", Subject::Tested),
    ("NVRM: ", Subject::Nvidia),
    ("NVRM ", Subject::Nvidia),
];
