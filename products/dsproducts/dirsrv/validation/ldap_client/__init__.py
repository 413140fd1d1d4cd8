"""An LDAP client of its own: it runs in a container next to a server, with little but ldap3.

`python3 -m ldap_client SUITE JOB.json` prints one JSON line for each thing that it tries.
Of the lab it imports the one file that makes connections: nothing else of it is in that container.
"""

# Passwords that users change to: the lab looks for them in what the server writes.
FIRST = "First-Kw7-zQ-word-30"
BY_MODIFY, BY_REQUEST = "Changed-by-modify-71", "Changed-by-request-72"
LONG_ENOUGH = "Kw7-zQ-9Rt-xB4-mN"
EARLIER = ("Kw7-zQ-first-31", "Kw7-zQ-second-32", "Kw7-zQ-third-33")
LONG = "Kw7-zQ-" * 15 + "end"  # some ways to hash read 72 characters
REPLICATION = "Replication-Kw7-31"  # not changed by a client, but used just as well
WORDS = (FIRST, BY_MODIFY, BY_REQUEST, LONG_ENOUGH, *EARLIER, LONG, REPLICATION)
