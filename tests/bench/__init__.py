"""The kit beside what a user would pick instead: ``make bench``. No test, and no part of ``make test``."""
