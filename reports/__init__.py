"""Pictures and pages, drawn from published tables or from one input.

- `advice` (`AdviceView`, `DrawnFilesystem`, `draw`): The picture of advice: what each file system is expected to
  move, with the application on top, now and delayed.
- `panels` (`write`, `headings`, `inch_axes`, `Columns`): What panels of any picture are made of: one style for
  everybody, columns of pixels, headings that fit, the file.
- `signatures` (`draw`, `DrawnSample`, `DrawnSignature`, `SignatureView`): The picture of one application's
  signature: its runs as storage saw them, and below what is common to them.
- `texts` (`plain`, `duration_text`, `volume_text`, `counted`, `unit_for`): What stands on a picture: sizes in a unit
  that fits them, and texts from the input as they are.
- `networks/`: Networks as a picture and as a page that one can ask.
- `periods/`: One signal's search for a period, as a picture.
- `predictions/`: One run's predictions and its automaton, as pictures.
"""
