"""The published report: results, prices and published figures become rows, charts, pages, a site.

A pure library (`epochcost.report.site.build`) with a thin MkDocs plugin around it. Needs neither
onnxruntime nor a GPU; everything after the result files is recomputed at every build.
"""
