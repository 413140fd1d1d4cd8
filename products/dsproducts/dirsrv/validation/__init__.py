"""The server under validation: the part of the gates that knows which product it is."""
