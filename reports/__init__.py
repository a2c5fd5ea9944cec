"""Draw figures and pages from published tables or from a single input.

- `advice` (`AdviceView`, `DrawnFilesystem`, `draw`): Recommended file systems and start times.
- `answer_tables` (`render_table`): Results of queries as HTML tables for notebooks.
- `attribution` (`AttributionView`, `DrawnTraffic`, `draw`): Attribution of a file system's traffic.
- `findings` (`fill_template`, `HeatView`, `draw`): Findings of a traced run as sentences, and its heat map.
- `forecast` (`ForecastView`, `DrawnCollision`, `draw`): Load forecast of a file system.
- `population` (`PopulationView`, `draw`): I/O behavior of all runs of a site.
- `inline_svg` (`render_svg`, `page_rules`): Figures as inline SVG for light and dark themes.
- `iosi` (`draw`, `IosiView`): The intermediate results of IOSI for one application.
- `job` (`job_page`, `sample_svg`): A run as a page of one file.
- `layers` (`sum_by_color`, `fill_layers`, `draw_legend_above`): Stacked rates of applications, and their legend.
- `panels` (`Picture`, `picture`, `headings`, `inch_axes`, `Columns`): Figures and the elements of their panels.
- `slowdowns` (`format_slowed_bursts`, `top_interferer`): Slowed bursts in words.
- `style` (`Style`, `LIGHT`, `DARK`, `drawn_in`): Shared colors and font sizes of all figures.
- `signatures` (`draw`, `DrawnSample`, `DrawnSignature`, `SignatureView`): The signature of one application.
- `reviews/`: The page on which reviewers verify classes and periods by hand.
- `templates` (`environment`, `content_policy`, `script_json`): The Jinja environment of all pages.
- `texts` (`plain`, `duration_text`, `volume_text`, `format_count`, `choose_unit`): Text and numbers in figures.
- `networks/`: Networks as a static figure and as an interactive page.
- `site/`: The report site: static pages of a release.
- `periods/`: The period search of one signal.
- `predictions/`: One run's predictions and its automaton.
- `wall/`: Overview figures for storage operators, readable from a distance.
"""
