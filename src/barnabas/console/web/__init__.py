"""The console as a web server: routes, the guard before all of them, sessions, pages and formats."""
