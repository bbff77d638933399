"""The bridge to the page, in pieces with doubles and whole in real kernels."""
