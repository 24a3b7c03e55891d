"""The ways to get a control plane: one file per runtime behind the small interface of ``runtimes.base``."""
