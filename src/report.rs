//! The outcome of each CPU, and the table the boot CPU prints.
