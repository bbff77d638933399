"""Tests of what is shipped: the wheel, the README, binder/."""
