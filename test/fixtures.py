"""Where the tests find profiles and traffic of real clients. All of it is in ../shared/fixtures, beside a developer's clone; a
sample of it is in test/data/real, in the same layout, for every other clone. SPDX-License-Identifier: MIT"""
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared/fixtures"
REAL_IS_COMPLETE = (SHARED / "real").is_dir()
REAL = SHARED / "real" if REAL_IS_COMPLETE else ROOT / "test/data/real"
CONFORMANCE = SHARED / "pprof-conformance"  # of the pprof project: nothing of it is copied into this repository


def of_real(complete, sample):
    """The figure that a test expects of REAL: the one for COMPLETE fixtures, or the one for the SAMPLE."""
    return complete if REAL_IS_COMPLETE else sample
