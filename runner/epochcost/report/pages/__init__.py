"""The pages of the report; each module has a function ``pages(report)``.

A new page needs a template in site_templates/pages, a module, and its entry in `site.PAGES`.
"""
