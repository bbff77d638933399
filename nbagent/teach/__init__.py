"""Material for learning: scripts that play the model, so that the loop can be seen without a key."""
