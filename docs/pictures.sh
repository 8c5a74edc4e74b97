#!/bin/bash
# Makes screen.svg and detail.svg, the pictures of the screens in the README: `lockprof record` over its own
# hammer in tmux, captured with its colours.
#
#   docs/pictures.sh
#
# Needs root, tmux and cargo. LOCKPROF: the program to show (default: target/release/lockprof here).
set -euo pipefail
cd "$(dirname "$0")"
LOCKPROF=$(realpath "${LOCKPROF:-../target/release/lockprof}")
SERVER=lockprof-pictures
COLUMNS_SHOWN=110 SECONDS_RECORDED=15
work=$(mktemp -d)
trap 'in_tmux kill-server; rm -rf "$work"' EXIT

in_tmux() {
    tmux -L "$SERVER" -f /dev/null "$@"
}

# until_shown TEXT: waits for it to be on the screen.
until_shown() {
    for _ in {1..300}; do
        if in_tmux capture-pane -p | grep -qF -- "$1"; then return; fi
        sleep 0.1
    done
    echo "never shown: $1" >&2
    exit 1
}

# picture LINES FILE: what is on the screen, its first LINES.
picture() {
    in_tmux capture-pane -p -e -N | cargo run --quiet --example picture -- "$COLUMNS_SHOWN" "$1" >"$2"
}

in_tmux new-session -d -x "$COLUMNS_SHOWN" -y 24 -c "$work" \
    env -u NO_COLOR -u COLORTERM TERM=xterm-256color \
    "$LOCKPROF" record -- "$LOCKPROF" hammer mmap-sem --seconds 120s
until_shown mmap_lock
sleep "$SECONDS_RECORDED"
picture 24 screen.svg
in_tmux resize-window -y 40
in_tmux send-keys Enter
until_shown 'where waiters came from'
sleep 1
picture 40 detail.svg
in_tmux send-keys q s
