"""Build the site: show the answers of `analysis` as pages, charts, files and pictures.

- `pages`: the contents of the pages, which `templates` renders.
- `charts`: data and marks, which `drawing` draws.
- `dataset`: all results as one table.
- `site`: collects pages, charts and files.
- `plugin`: handles MkDocs' events.
- `publishing`: replaces the site's folder.

A build needs neither onnxruntime nor a GPU.
"""
