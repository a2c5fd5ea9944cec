"""Render the page on which reviewers verify classes and periods by hand (PEARC'18, section 5).

- `page` (`ReviewView`, `render_page`): One file with all drawn runs; it loads nothing, and saves the reviews as CSV.
"""
