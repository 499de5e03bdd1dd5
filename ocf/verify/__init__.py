"""The independent check of answers; it shares nothing with what it checks."""
