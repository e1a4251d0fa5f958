"""Answer questions about results, published figures and prices, as typed rows.

Stored results, published timings and predictions become observations. Observations with prices
become rows, marked as measured, published or predicted. Answers, budget verdicts and differences
between revisions are computed from rows. This package contains no page, chart or Markdown.
"""
