"""Tests in a real JupyterLab in a real Chromium. `lab.py` is the harness, `conftest.py` its fixtures."""
