"""The pages of the report: each module lists its pages and their contents.

A page is a template of site_templates/pages and a context; templates compute nothing. To add one,
write its template and a module here with a function ``pages(report)``, and name it in `site.PAGES`.
"""
