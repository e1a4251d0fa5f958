"""Questions asked of results, published figures and prices, and their answers as typed rows.

One join: stored results and published timings become observations, observations with prices become
rows, each with its kind of evidence; answers, differences, budgets and rooflines are asked of
them. Knows no page, chart or Markdown: the command line, the site, the dataset and the
comment on a pull request all ask here.
"""
