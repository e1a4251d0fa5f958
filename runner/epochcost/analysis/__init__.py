"""Answer questions about results, published figures and prices, as typed rows.

Stored results, published timings and predictions become observations. Observations with prices
become rows, each marked as measured, published or predicted. Answers, budget verdicts and
differences between revisions are computed from rows, and rooflines from observations. The command
line, the site, the dataset and the comment on a pull request all use this package, which contains
no page, chart or Markdown.
"""
