"""Build the site: show the answers of `analysis` as pages, charts, files and pictures.

`site` collects the pages of `pages`, the charts of `charts` and the data files. `plugin` connects
it with MkDocs, and `publishing` replaces the site's folder. A build needs neither onnxruntime nor a
GPU.
"""
