"""The report on an analysis as a page, drawn from one value: `model.Report` → HTML (`page`)."""
