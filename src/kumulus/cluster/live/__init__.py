"""The live state of a cluster's nodes and pods, kept by watches, and what it comes to.

What the live views show and never how: it imports model and kube, and both views import it.
"""
