"""Declares the cluster that the stack's file describes, and exports its outputs."""

from kumulus import program

program.run()
