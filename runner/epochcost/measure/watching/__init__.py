"""What surrounds a trial while it runs: load of others, steal, throttling, memory, energy.

``watch.Watch`` is the entry; what a machine is, run or not, is left to ``environment``.
"""
