"""One file per resource. :data:`RESOURCES` is the registry the protocol adapter dispatches by."""
