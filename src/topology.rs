//! Which CPUs are threads of one core, and the order to bring them up in.
