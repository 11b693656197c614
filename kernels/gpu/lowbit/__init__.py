"""Products with bases of 3 and 4 bits: group codes (`groups`, `group_product`) and look-up tables."""
