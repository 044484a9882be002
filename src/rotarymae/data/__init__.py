"""One file per data set: read, split and normalise as its protocol says."""
