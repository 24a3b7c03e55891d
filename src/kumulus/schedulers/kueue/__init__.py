"""Kueue: Jobs queued by quota before the cluster's own scheduler places their pods."""
