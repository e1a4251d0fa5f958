"""The site: what `analysis` finds, as pages, charts, files and pictures.

- `pages`: what every page is given, a file for each part of the navigation; `templates` renders it.
- `charts`: a file for each kind of chart, from the rows of its data to its marks; `drawing` draws.
- `dataset`: every figure as one table, its dictionary and its files.
- `tables`, `wording`, `escape`: tables, phrases and harmless text, which the others share.
- `ranking`, `list_prices`: the machines of a job, and what an hour of each costs.
- `site` gathers all of this as values; nothing is drawn yet.
- `plugin`: MkDocs' events, with what they call: `page_html` puts charts into finished pages,
  `publishing` says what is published and replaces the site's folder.

Needs neither onnxruntime nor a GPU; all but the result files is computed again at every build.
"""
