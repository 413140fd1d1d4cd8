"""An LDAP client of its own: it runs in a container next to a server, with nothing but ldap3.

`python3 -m ldap_client SUITE JOB.json` prints one JSON line for each thing that it tries.
It imports nothing of the lab, since the lab is not in that container.
"""
