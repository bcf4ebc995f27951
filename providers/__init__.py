"""Store model providers: what each model can do, what it costs and what it was used for."""
