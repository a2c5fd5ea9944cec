"""Show the signature of an application, and its changes between releases.

- `changes` (`signature_changes`): How much each application's signature differs between two releases.
- `stages` (`trace_application`, `build_document`): Intermediate results of IOSI for an application.
- `view` (`choose_application`, `match_applications`, `Query`, `build_view`): Figure data of a signature in a release.
"""
