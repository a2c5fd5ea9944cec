"""Pictures and pages, drawn from published tables or from one input.

- `advice` (`AdviceView`, `DrawnFilesystem`, `draw`): The picture of advice.
- `attribution` (`AttributionView`, `DrawnTraffic`, `draw`): The picture of who moved a file system's bytes.
- `findings` (`filled`, `HeatView`, `draw`): What is found in a traced run, in sentences; its heat map.
- `forecast` (`ForecastView`, `DrawnCollision`, `draw`): The picture of the load to come.
- `population` (`PopulationView`, `draw`): The picture of how a site's runs do their I/O.
- `inline_svg` (`svg_of`, `page_rules`): A picture as an SVG element of a page: both grounds in one.
- `job` (`job_page`, `sample_svg`): A run as a page of one file.
- `layers` (`coloured`, `fill_layers`, `draw_legend_above`): What applications move, one on another.
- `panels` (`Picture`, `picture`, `headings`, `inch_axes`, `Columns`): Pictures, and what their panels are made of.
- `slowdowns` (`slowed_text`, `most_there`): Bursts that were slowed, in words.
- `style` (`Style`, `LIGHT`, `DARK`, `drawn_in`): One look of all pictures.
- `signatures` (`draw`, `DrawnSample`, `DrawnSignature`, `SignatureView`): The picture of one application's signature.
- `templates` (`environment`): The Jinja environment of all pages.
- `texts` (`plain`, `duration_text`, `volume_text`, `counted`, `unit_for`): What stands on a picture.
- `networks/`: Networks as a picture and as a page that one can ask.
- `site/`: The report site: static pages of a release.
- `periods/`: One signal's search for a period, as a picture.
- `predictions/`: One run's predictions and its automaton, as pictures.
- `wall/`: The figures for the wall: what a storage lead sees from the door.
"""
