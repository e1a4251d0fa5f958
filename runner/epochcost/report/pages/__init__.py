"""The pages of the report: each module lists its pages and computes their contents.

A page is a template of site_templates/pages with its values; templates compute nothing. To add a
page, write its template and a module here with a function ``pages(report)``, and name the
module in `site.PAGES`.
"""
