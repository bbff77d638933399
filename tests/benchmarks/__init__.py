"""Figures that are measured by hand, side by side in one run, and printed as a table: no test waits for a clock."""
