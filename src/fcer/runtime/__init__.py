"""Files, processes and pieces of work: nothing of the field."""
