//! symbolize
use std::path::Path;
/// The build id of the ELF file at `path`.
pub fn build_id(path: &Path) -> Option<Vec<u8>> {
    use object::Object;
    let file = std::fs::File::open(path).ok()?;
    let cache = object::ReadCache::new(file);
    let elf = object::File::parse(&cache).ok()?;
    elf.build_id().ok()?.map(<[u8]>::to_vec)
}
