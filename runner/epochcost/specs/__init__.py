"""TOML specs: their schema, the faults of their files, and the catalogue of all specs.

    loader ─ document    a file's text, its parsed table, and the positions of its keys
           ─ findings    faults of a table                ─ wording     texts of faults
           ─ references  faults between tables
           ─ catalogue   all specs, by kind and id
    csv_rows             rows of CSV files

The schema is ``base``, ``terms`` and the modules of the kinds: ``hardware``, ``price``, ``model``,
``study``, ``published``, ``reference_data`` and ``replay``; ``KINDS`` of ``catalogue`` maps folders
to kinds. ``prices`` converts published price lists to specs.
"""
