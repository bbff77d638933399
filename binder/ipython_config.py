# Every notebook starts with nbagent loaded: %%agent works without %load_ext.
c.InteractiveShellApp.extensions = ["nbagent"]
