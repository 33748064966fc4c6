"""What tools draw on a terminal: the screen of `barnabas top`, and the keys that it reads."""
