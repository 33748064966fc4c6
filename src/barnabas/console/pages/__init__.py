"""The pages of the console, one file each. Every file has ROUTES, and app.py lists them."""
