//! Sound machines to plant faults in.
