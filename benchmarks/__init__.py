"""Programs that measure Kumulus against something else in the same run; `make bench` runs them all."""
