"""What a run leaves: report.json and its schema, plots, JUnit, the index of runs; comparisons and the history page."""
