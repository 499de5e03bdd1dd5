"""Problems over cells: the finite form of a problem, its incumbent and its reduction."""
