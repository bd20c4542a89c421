"""The speculative core: rounds, lanes, transactions, the schedule and the table."""
