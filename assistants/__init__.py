"""Assistants as people configure them: prompt, model, tools, library, scenes."""
