"""The search protocol and its Bayesian implementation. Pure: nothing here touches the world."""
