"""Work that takes more than one turn of the event loop, and how long the loop was held."""
