//! Records made up by tests, as bytes that no decoder can tell from the kernel's.

/// Builds rounds record by record.
#[derive(Debug, Default)]
pub struct Synthetic {}
