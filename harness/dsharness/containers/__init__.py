"""Containers and the engine that runs them: started, owned, measured room, removed."""
