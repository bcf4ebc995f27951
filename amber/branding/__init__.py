"""An installation's own looks: its logo, and the colours of its pages."""
