"""The live notebook as a host: magics, the page bridge, the kernel's own main thread, approvals by click or by typing."""
