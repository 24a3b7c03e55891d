"""The live state of a cluster's nodes and pods, kept up to date by watches, with sums.

It decides what the live views show, not how: it imports model and kube, and both views import it.
"""
