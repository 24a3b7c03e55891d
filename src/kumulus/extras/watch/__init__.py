"""Live views of a fleet: what watches report, its history, the pages, the terminal, the dashboards."""
