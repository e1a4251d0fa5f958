"""Build the site: show the answers of `analysis` as pages, charts, files and pictures.

- `pages`: the contents of every page, with a module for each section of the navigation.
  `templates` renders the pages.
- `charts`: the data and marks of each kind of chart. `drawing` draws the charts.
- `dataset`: all results as one table, with its dictionary of columns and its files.
- `tables`, `wording`, `escape`: tables, phrases and escaped text for the other modules.
- `ranking`, `list_prices`: the machines that can do a job, and the price of an hour of each.
- `site` collects pages, charts and files as values, before anything is drawn.
- `plugin` handles MkDocs' events. `page_html` puts charts into finished pages. `publishing` decides
  which files are published and replaces the site's folder.

A build needs neither onnxruntime nor a GPU. It computes everything again from the specs and
results.
"""
