//! `lockprof tui ...` and `lockprof top ...` as typed.

use clap::{Args, ValueEnum};

use super::{By, InputArgs, RecordArgs, SeenArgs};
use crate::model::{GroupBy, Nanos, Query};

/// `tui`.
#[derive(Args, Debug)]
#[command(after_help = "\
Keys: ? shows them all; q quits.

Examples:
  lockprof tui                   look at the last recording
  lockprof tui perf.data         look at a recording of perf")]
pub struct TuiArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub input: InputArgs,
}

/// The shortest interval: making a report costs some milliseconds.
const SHORTEST: Nanos = Nanos(100_000_000);

/// `top`.
#[derive(Args, Debug)]
#[command(after_help = "\
Keys: ? shows them all; q quits.

Examples:
  lockprof top                                   the screen
  lockprof top --plain -i 5                      a table every 5 seconds
  lockprof top --plain -n 1 --by site            one second, by call site
  lockprof top --plain --format json > log       a JSON document a line")]
pub struct TopArgs {
    /// Print a block of text an interval, as where there is no terminal
    #[arg(long)]
    pub plain: bool,
    /// Time between two blocks: 500ms, 5s
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = interval)]
    pub interval: Nanos,
    /// Blocks to print, then end
    #[arg(short = 'n', long, value_name = "COUNT",
          value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// What a row stands for
    #[arg(long, value_enum, default_value = "lock", value_parser = of_waits())]
    pub by: By,
    /// Rows to show; 0 shows all
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top: usize,
    /// Form of the output
    #[arg(long, value_enum, default_value_t)]
    pub format: TopFormat,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub seen: SeenArgs,
}

impl TopArgs {
    /// What is to be recorded.
    pub fn record(&self) -> RecordArgs {
        RecordArgs { all: true, seen: self.seen.clone(), ..RecordArgs::of_defaults() }
    }

    /// The question of each block.
    pub fn query(&self) -> Query {
        let by = match self.by {
            By::Lock => GroupBy::Lock,
            By::Task => GroupBy::Task,
            By::Cgroup => GroupBy::Cgroup,
            By::Releaser => GroupBy::Releaser,
            By::Site | By::Path => GroupBy::Site,
        };
        Query { by, top: self.top, ..Query::default() }
    }
}

/// Forms of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum TopFormat {
    /// For people
    #[default]
    Table,
    /// A document a line, as `report --format json`
    Json,
}

/// All that rows can be by, except the path of CPU samples.
fn of_waits() -> impl clap::builder::TypedValueParser<Value = By> {
    use clap::builder::{PossibleValuesParser, TypedValueParser};
    PossibleValuesParser::new(["site", "lock", "task", "cgroup", "releaser"])
        .try_map(|name| By::from_str(&name, false))
}

fn interval(text: &str) -> Result<Nanos, String> {
    let interval: Nanos = text.parse()?;
    if interval < SHORTEST {
        return Err("an interval takes 100ms at least".into());
    }
    Ok(interval)
}
