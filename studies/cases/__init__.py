"""Case studies of Chombo and FLASH-IO on planted runs, compared on one scale: `iosig study cases`.

- `page`: Template variables and figures of the page.
- `planted`: Synthetic runs of the shapes and disturbances in section V of Sigovan et al.
- `running`: The study itself: measures what the paper sees in each pair of runs.
"""

from iosig.studies.study import SEED, Study

STUDY = Study(
    "cases",
    "Case studies of Sigovan et al. on planted runs of Chombo and FLASH-IO.",
    """Compare pairs of planted runs on one scale, as the case studies of Sigovan et al. (IPDPS'13, section V).

    The runs have the paper's numbers of ranks, I/O nodes and servers: Chombo with imbalanced aggregation, small and
    large, and FLASH-IO through PNetCDF and HDF5, where HDF5 makes a storm of metadata requests.
    """,
    (SEED,),
)
