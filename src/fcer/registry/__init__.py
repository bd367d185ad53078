"""Which student is champion, and how another becomes it."""
