"""All cases; importing this fills the table."""

from tests.integration.transactions.cases import describing, ending, fencing, initializing, marking, offsets, partitions, producing
from tests.integration.transactions.cases.case import CASES

__all__ = ["CASES", "describing", "ending", "fencing", "initializing", "marking", "offsets", "partitions", "producing"]
