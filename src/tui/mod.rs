//! The screens: key -> [`Action`] -> [`fn@update`] of the [`State`] -> [`draw`].
//!
//! In: snapshots of a recording, finished or running, and what the user presses. Out: a picture of
//! the state, and [`Effect`]s: what the screen wants done, a [`Query`](crate::model::Query) to be
//! answered above all. The state has no terminal in it and the picture changes nothing, so that tests
//! need neither.

mod bindings;
mod columns;
mod input;
mod output;
mod pace;
mod state;
mod terminal;
mod theme;
mod update;
mod view;

pub use bindings::{Action, BINDINGS, Binding, action};
pub use columns::Column;
pub use input::{Input, Key, input};
pub use output::Output;
pub use state::{Effect, Format, Live, Question, Screen, Snapshot, State};
pub use terminal::{Terminal, stop};
pub use theme::{Palette, Theme};
pub use update::update;
pub use view::draw;
