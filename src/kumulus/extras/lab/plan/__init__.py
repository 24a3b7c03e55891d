"""From an experiment file to the objects to create, and when. Pure: the same file and seed give the same objects."""
