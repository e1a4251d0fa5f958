"""Answer questions about results, published figures and prices, as typed rows.

Stored results and published timings become observations. Observations with prices become rows, each
with its kind of evidence. Answers, differences, budgets and rooflines are computed from rows. The
command line, the site, the dataset and the comment on a pull request all use this package. It
contains no page, chart or Markdown.
"""
