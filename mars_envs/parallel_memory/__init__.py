"""PI-Mem: many readers, one merger and one answerer over a very long document."""
