"""What a run looks like: one fold of its events, and the surfaces that are drawn from it. Read `fold` first."""
