"""TOML specs: what may stand in them, what is wrong with them, and the catalogue they make.

    loader ─ document    a file's text and table, and where its keys stand
           ─ findings    a table by itself                ─ wording     how a fault reads
           ─ references  a table beside the others
           ─ catalogue   all specs, by kind and id

The schema is ``base``, ``terms`` and a module for each kind: ``hardware``, ``price``, ``model``,
``study``, ``published`` and so on, the small ones in ``reference_data``; ``KINDS`` of ``catalogue``
says which folder holds which. ``prices`` makes specs of price lists that others publish.
"""
