"""The study: data, members, student, maps, evaluation, each computed once and found again by content."""
