"""TOML specs: their schema, the faults of their files, and the catalogue of all specs.

``loader`` reads all files of a project. ``KINDS`` of ``catalogue`` maps each folder of specs to the
class that is the schema of its files. ``prices`` converts published price lists to specs.
"""
