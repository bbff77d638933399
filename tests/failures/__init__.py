"""What people met in systems like this one, each brought about here in a real kernel: see FAILURES.md."""
