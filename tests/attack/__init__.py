"""Attacks on a broker beside a well-behaved client: `python -m tests.attack`, or `make attack`.

One file per attack, with `async def attack(bootstrap)`: a generator that yields once. What stands before the yield prepares (builds frames,
creates topics); what stands after it is the attack, and is measured. `table` names them all.
"""
