//! All CPUs: gather, commit, release.
