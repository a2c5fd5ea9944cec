"""The night's steps: plain functions, each of which leaves its results as files and can be run again.

What a step has built lies in the plan's own folder, one Parquet file per table and day. A step that finds
its mark there has nothing to do, so a run that was killed goes on where it stopped and ends in the same
release.
"""
