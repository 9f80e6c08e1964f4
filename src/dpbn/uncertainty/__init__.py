"""Know before, know after: forecasts without data, and error bars on every answer. Post-processing only."""
