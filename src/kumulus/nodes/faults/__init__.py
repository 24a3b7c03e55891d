"""Faults in a live cluster: active ones are recorded there, applied to the nodes, and removed again.

Used by the plugin's resource Fault and by `kumulus fault`; it knows the model, KWOK's stages and the API client.
"""
