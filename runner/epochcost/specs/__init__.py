"""TOML specs: what may stand in them, what is wrong with them, and the catalogue they make.

    loader ─ tree        which files there are
           ─ document    a file's text and table        ─ positions   where a key stands
           ─ findings    a table by itself              ─ wording     how a fault reads
           ─ references  a table beside the others
           ─ catalogue   all specs, by kind and id

The schema is ``base``, ``billing`` and a module for each kind: ``hardware``, ``price``, ``model``,
``study``, ``published``; ``kinds`` says which folder holds which.
"""
