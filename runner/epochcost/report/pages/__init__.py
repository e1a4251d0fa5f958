"""The pages of the report: each module says which pages there are and what each one shows.

A page is a template of site_templates/pages and a context; it computes nothing itself. To add one:
write its template, a module here with a function ``pages(report)``, and name it in `site.PAGES`.
"""
