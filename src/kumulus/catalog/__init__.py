"""The catalogs that ship with Kumulus: instance types and GPU products of the clouds, and kinds of fault.

Data in YAML files, and what reads them; anybody above may ask.
"""
