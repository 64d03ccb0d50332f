//! This CPU: in sync, PAT only, or the full caches-off window.
