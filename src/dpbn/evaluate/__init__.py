"""How good is a learned network: metrics, baselines, experiments."""
