"""The documentation as something to test: its pages, links and anchors, and its blocks of commands, run as printed."""
