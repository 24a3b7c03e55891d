"""The products beside the core. The core never imports them; each says in `extra.py` what it brings."""
