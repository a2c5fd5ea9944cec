"""The signature of an application, and its changes between releases.

- `changes` (`signature_changes`): How much each application's signature differs between two releases.
- `view` (`choose_application`, `Asked`, `view_of`): The signature of a release that a figure shows.
"""
