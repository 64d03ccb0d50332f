//! What the kernel asks for: early or deferred, PAT layout, flushes, bounds.
