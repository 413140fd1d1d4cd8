"""How untrusted code is built, and how what it made is taken back."""
