"""The catalogs that ship with Kumulus: instance types and GPU products of the clouds, and kinds of fault.

YAML data files and the code that reads them; any higher layer may import it.
"""
