//! Outputs kept as files under `tests/goldens`.
//!
//! `LOCKPROF_BLESS=1 cargo test` writes them anew; look at the diff before it is committed.

use std::fs;
use std::path::PathBuf;

/// Compares with `tests/goldens/NAME`, or writes it when `LOCKPROF_BLESS` is set.
pub(crate) fn assert_golden(name: &str, got: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/goldens").join(name);
    if std::env::var_os("LOCKPROF_BLESS").is_some() {
        let folder = path.parent().expect("goldens lie in a folder");
        fs::create_dir_all(folder).expect("folders can be made");
        fs::write(&path, got).expect("goldens can be written");
        return;
    }
    let want = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        want == got,
        "{} differs; LOCKPROF_BLESS=1 writes it anew.\n--- golden\n{want}\n--- now\n{got}",
        path.display()
    );
}
