//! What the machine can do, decided once on the boot CPU.
