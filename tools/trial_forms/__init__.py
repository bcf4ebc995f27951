"""Make forms of functions' JSON schemas, for whoever tries a function by hand."""
