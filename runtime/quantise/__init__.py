"""How decoder linears become few bits: one method a file."""
