"""What the model can call: variables, scratch code, cells, files, the shell, questions. Tools know ports, not hosts."""
