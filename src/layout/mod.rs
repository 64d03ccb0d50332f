//! From a wanted memory map to the fewest variable MTRRs, exactly.
