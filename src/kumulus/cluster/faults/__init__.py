"""Faults in a live cluster: what holds is recorded there, laid over the nodes, and taken away again.

Used by the plugin's resource Fault and by `kumulus fault`; it knows the model, KWOK's stages and the API client.
"""
