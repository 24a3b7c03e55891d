"""What `helm.v3.Release` does not do: check charts beforehand, upgrade CRDs, repair leftovers."""
