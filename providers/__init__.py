"""Model providers as rows: what each model can do, what it costs, what it was used for."""
