"""Times that nobody here has measured: what others observed, and what follows for other machines.

A rate that others published is a ratio between machines under their software. From such ratios, the
facts of devices and what graphs ask for follows a rate on another machine with an interval, or the
reason why none can be given. Prices and pages belong to ``cost``, ``analysis`` and ``report``.
"""
