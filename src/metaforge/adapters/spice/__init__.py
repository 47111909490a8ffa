"""Circuit simulation with ngspice."""
