//! No sequence of keys, clicks and sizes makes a screen panic.

use lockprof::tui::{BINDINGS, Input, Key};
use proptest::prelude::*;

use crate::shown::Screen;

fn inputs() -> impl Strategy<Value = Input> {
    let keys: Vec<Key> = BINDINGS.iter().flat_map(|binding| binding.keys).copied().collect();
    prop_oneof![
        8 => proptest::sample::select(keys).prop_map(Input::Key),
        2 => any::<char>().prop_map(|c| Input::Key(Key::Char(c))),
        1 => (-9i8..9).prop_map(Input::Wheel),
        2 => (0u16..200, 0u16..80).prop_map(|(x, y)| Input::Click(x, y)),
        1 => (1u16..200, 1u16..80).prop_map(|(x, y)| Input::Resize(x, y)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_pressed_panics(
        inputs in proptest::collection::vec(inputs(), 0..40),
        live in any::<bool>(),
    ) {
        // Ranges of time of a finished recording would read it again and again.
        let marks = |input: &Input| !live && *input == Input::Key(Key::Char('m'));
        let mut screen = if live { Screen::live(80, 24) } else { Screen::new(80, 24) };
        for input in inputs.into_iter().filter(|input| !marks(input)) {
            screen.input(input);
            screen.text();
        }
    }
}
