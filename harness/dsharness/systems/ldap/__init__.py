"""Directory servers: 389-ds however it was made, and what LDAP ones share."""
