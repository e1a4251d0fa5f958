"""What a build of the site keeps for the next one, each part by all that it follows from."""
