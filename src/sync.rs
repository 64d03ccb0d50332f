//! The public life cycle: boot CPU, APs, suspend, resume, run-time change.
