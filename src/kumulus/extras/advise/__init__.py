"""The cheapest fleet for a workload: an integer programme over machines, its lower bound, and a check by placing."""
