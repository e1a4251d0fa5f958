"""Build the site: show the answers of `analysis` as pages, charts, files and pictures.

- `pages`: the contents of every page, with a file for each part of the navigation; `templates`
  renders the pages.
- `charts`: a file for each kind of chart, from the rows of its data to its marks; `drawing` draws.
- `dataset`: every figure as one table, its dictionary and its files.
- `tables`, `wording`, `escape`: tables, phrases and escaped text for the other modules.
- `ranking`, `list_prices`: the machines that can do a job, and the price of an hour of each.
- `site` collects pages, charts and files as values, before anything is drawn.
- `plugin`: MkDocs' events. `page_html` puts charts into finished pages, `publishing` decides which
  files are published and replaces the site's folder.

The site needs neither onnxruntime nor a GPU. Every build computes everything again from the specs
and results.
"""
