//! Tracepoint formats: `events/SYSTEM/NAME/format` of tracefs, and TRACING_DATA of perf.data.
//!
//! ```text
//! name: contention_begin
//! ID: 408
//! format:
//! <tab>field:unsigned short common_type;<tab>offset:0;<tab>size:2;<tab>signed:0;
//! <tab>field:void * lock_addr;<tab>offset:8;<tab>size:8;<tab>signed:0;
//! <tab>field:char comm[16];<tab>offset:12;<tab>size:16;<tab>signed:0;
//! ```

/// Where a field stands in a tracepoint's raw record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, without type and array bounds.
    pub name: String,
    /// Bytes from the start of the raw record.
    pub offset: u16,
    /// Bytes.
    pub size: u16,
    /// Whether the C type is signed.
    pub signed: bool,
}

/// A tracepoint's raw record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Format {
    /// Its name, without the system.
    pub name: String,
    /// `attr.config` of events on it.
    pub id: u64,
    /// Common fields first.
    pub fields: Vec<Field>,
}

impl Format {
    /// Reads a format file. `None` without a name, an ID or any well-formed field.
    pub fn parse(text: &str) -> Option<Format> {
        let value = |prefix| text.lines().find_map(|line| line.strip_prefix(prefix)).map(str::trim);
        let fields: Vec<Field> = text.lines().filter_map(parse_field).collect();
        if fields.is_empty() {
            return None;
        }
        Some(Format { name: value("name:")?.to_owned(), id: value("ID:")?.parse().ok()?, fields })
    }

    /// The field of that name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

fn parse_field(line: &str) -> Option<Field> {
    let declaration = line.trim_start().strip_prefix("field:")?;
    let mut parts = declaration.split(';').map(str::trim);
    let declared = parts.next()?;
    let mut number = |prefix: &str| parts.next()?.strip_prefix(prefix)?.parse::<u16>().ok();
    let (offset, size, signed) = (number("offset:")?, number("size:")?, number("signed:")?);
    let declared = declared.split_once('[').map_or(declared, |(name, _)| name);
    let name = declared.rsplit([' ', '*']).next()?;
    Some(Field { name: name.to_owned(), offset, size, signed: signed != 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "name: sched_waking\nID: 318\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n\
        \tfield:void * lock_addr;\toffset:24;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"comm=%s\", REC->comm\n";

    #[test]
    fn a_format_file_is_read() {
        let format = Format::parse(TEXT).unwrap();
        assert_eq!((format.name.as_str(), format.id), ("sched_waking", 318));
        let field = |name| format.field(name).map(|f| (f.offset, f.size, f.signed));
        assert_eq!(field("common_pid"), Some((4, 4, true)));
        assert_eq!(field("comm"), Some((8, 16, false)));
        assert_eq!(field("lock_addr"), Some((24, 8, false)));
        assert_eq!(field("print"), None);
    }

    #[test]
    fn text_without_an_id_or_fields_is_no_format() {
        assert_eq!(Format::parse("name: x\nformat:\n"), None);
        assert_eq!(Format::parse(&TEXT.replace("ID: 318", "ID: many")), None);
        assert_eq!(Format::parse(""), None);
    }
}
