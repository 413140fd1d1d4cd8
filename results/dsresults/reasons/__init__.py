"""One module for each kind of reason; ``dsresults.explaining`` puts them in order."""
