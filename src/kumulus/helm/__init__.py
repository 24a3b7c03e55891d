"""What `helm.v3.Release` leaves undone: charts looked at beforehand, CRDs upgraded, leftovers repaired."""
