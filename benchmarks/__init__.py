"""Every figure this project shows is made here, by `make bench`."""
