//! perf_compat
