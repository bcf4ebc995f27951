"""Make the admin's page of one assistant: its forms, and the tabs that they lie in."""
