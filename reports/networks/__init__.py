"""Networks as a picture and as a page that one can ask.

- `colors`: The colours of a network's edges: one map per pair of layers, from few transfers to many.
- `edges`: Edges between rings as pixels: each one a 1-D heat map along its way.
- `labels`: The names of nodes on their rings: as many as there is room for.
- `legend` (`pixel_axes`): What stands beside the circle: colours of counts, what places on an edge mean.
- `matrix` (`draw_matrices`): A small network as matrices, one a hop.
- `page` (`write_page`): A network as one HTML file that one can ask: metric, time range, nodes and edges.
- `page_data`: A network's numbers as the interactive page holds them: whole numbers in few bytes, deflated.
- `picture` (`draw`, `draw_disc`): The picture of a network: rings of nodes, edges as heat maps between them.
- `scales`: The scale on which a network's edges show a metric.
- `texts` (`value_text`): What is said of a network in words: its metrics, values with their units, what was found.
- `timeline`: The values of a network over time: their mean as a line that fades towards the least and the most.
- `view` (`NetworkView`): What any picture of a network is drawn from.
"""
