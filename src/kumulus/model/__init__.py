"""What a fleet is: pools, nodes, quantities, names, topology, devices, faults, tenants, and what follows from them.

Plain Python, cheap to import, shared by everybody: no I/O, no Pulumi, no pydantic (kept by an import contract).
"""
