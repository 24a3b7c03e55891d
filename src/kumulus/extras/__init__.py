"""The products outside the core. The core never imports them; each says in `extra.py` what it brings.

Each has one error for what its user can mend: LabError, Refused (capture), JournalError, and ProviderError of the core;
SpecError for a mistake in a file, ApiError and Unreachable for a cluster (:mod:`kumulus.kube`), OSError for a file that
cannot be read or written. Whatever does these things may raise them: docstrings name them where that is what a function
is for.
"""
