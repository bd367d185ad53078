"""From a student to a map: what an agency's engineer reads. No trainer is imported here."""
