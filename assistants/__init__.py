"""Store assistants as people configure them: prompt, model, tools, library and scenes."""
