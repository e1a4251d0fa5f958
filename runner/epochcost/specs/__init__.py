"""TOML specs: their schema, the faults of their files, and the catalogue of all specs.

``loader`` reads all files of a project. It uses these modules:

    document    a file's text, its parsed table, and the positions of its keys
    findings    faults of one file's table; ``wording`` has their texts
    references  faults of references from one spec to another
    catalogue   all specs, by kind and id
    csv_rows    rows of CSV files

``KINDS`` of ``catalogue`` maps each folder of specs to a class, which is the schema of its files.
``prices`` converts published price lists to specs.
"""
