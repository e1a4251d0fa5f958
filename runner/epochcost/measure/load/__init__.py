"""Inference under MLPerf's LoadGen: its scenarios, what answers it, and how its log is read.

``scenario.run_scenario`` is the entry; steps that a trial takes by itself are left to ``sampling``.
"""
