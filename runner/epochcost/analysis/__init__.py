"""Answer questions about results, published figures and prices, as typed rows.

Results, published timings and predictions become observations. Observations with prices become
rows, from which answers follow. This package contains no page, chart or Markdown.
"""
