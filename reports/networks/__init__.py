"""Draw networks as static figures and as an interactive page.

- `colors`: Color maps of a network's edges: one map per pair of layers, from few transfers to many.
- `comparison` (`draw_comparison`): Several networks side by side on one scale.
- `edges`: Rasterization of edges as one-dimensional heat maps.
- `labels`: Node names on the rings.
- `legend` (`pixel_axes`): The panel next to the circle: color scales, value scales and patterns.
- `matrix` (`draw_matrices`): A small network as matrices, one per hop.
- `page` (`write_page`, `write_comparison`): Interactive HTML files: metric, time range, nodes and edges.
- `page_data`: Compact encoding of a network's numbers for the interactive page.
- `picture` (`draw`, `draw_disc`): The figure of a network: rings of nodes, edges as heat maps between them.
- `scales`: The value scale of a metric on a network's edges.
- `texts` (`value_text`): Metrics, values with units, and findings as text.
- `timeline`: The values of a network over time: the mean as a line that fades toward minimum and maximum.
- `view` (`NetworkView`, `share_scales`): The data behind every figure of a network.
"""
