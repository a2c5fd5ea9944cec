"""Check in a site's first weeks whether its logs suffice: `iosig check-site`.

- `query` (`check_site`): File systems, clusters and applications of a release, by what iosig can tell of them.
- `advice` (`advise`): What to configure or to land next, most urgent first.
- `document` (`build_document`): The JSON document of the command.
"""
