"""One module for each kind of reason; ``dsresults.reasons.explanation`` puts them in order."""
