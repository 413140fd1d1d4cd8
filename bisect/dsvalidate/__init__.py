"""Whether a patch may be shipped: gates with evidence, a verdict, and a signed statement of it."""
