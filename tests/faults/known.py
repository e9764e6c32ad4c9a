"""What went wrong before, and what still does."""
import re

# (scene, function, number of the call, 0 for all) that once ended badly: they are run beside every sample, on one rank.
MENDED = [
    ("refuse a log over data", "open", 1),  # a file that could not be looked into was replaced by the log
    ("refuse a log over data", "pread", 1),
    ("refuse to replace A", "stat", 7),  # A, which could not be looked at, was replaced
    ("refuse to replace A", "stat", 8),
    ("verify contiguous", "pread", 1),  # half of a signature: "is not an HDF5 file"
    ("multiply --verify contiguous", "open", 10),  # from then on: the log went on saying that the run is under way
    ("generate --force", "stat", 0),  # an earlier C that could not be looked at counted as changed by another program
    ("multiply --force contiguous", "stat", 10),  # "would replace A" of a file that could not be looked at
    ("multiply --force contiguous", "stat", 15),
    ("info contiguous", "pread", 9),  # a read that failed: "the file is damaged", exit code 0
    ("info chunked", "pread", 9),
    ("info chunked", "malloc", 0),  # "(no memory): 1 matrix"
    ("info contiguous", "mpi", 1),  # MPI, which did not run, was asked what the error means, and ended the process
    ("info contiguous", "mpi", 2),
    ("generate", "mpi", 38),  # the log went on saying that the run is under way
    ("generate", "mpi", 40),  # the temporary file was left
    ("generate", "mpi", 47),  # a failure after all is in place did not say so
]
# The same on each of two ranks: the other one waited for ever.
MENDED_TOGETHER = [
    ("generate", "mpi", 13),  # shared memory was refused to one rank alone
    ("multiply --verify chunked", "mpi", 246),  # whether inputs changed was to be agreed on after that
    ("generate", "mpi", 30),  # ranks were to agree on what MPI failed at
    ("generate", "mpi", 55),  # MPI's end
    ("refuse to replace C", "mpi", 56),  # MPI failed at rank 0 as it told others why C was refused
    ("multiply shared k --resume", "mpi", 224),  # a rank that failed when C was in place did not say so
]
# Besides, on each of two: what ranks that share k hand on first, the words and the sums.
HANDED_ON = [("multiply shared k", "mpi_pair", 1), ("multiply shared k --resume", "mpi_pair", 1),
             ("multiply shared k --resume", "mpi_pair", 2)]

# On the last of three: what rank 0 made at that moment stayed.
MENDED_OF_THREE = [
    ("generate", "mpi", 38),  # the log went on saying that the run is under way
    ("multiply --force contiguous", "mpi", 39),  # the log's temporary file was left
    ("multiply --force chunked", "mpi", 135),  # C's was
]

# What ends badly and is not mended yet, as patterns of what the tests print: docs/reliability.md, section "Known". It
# is shown and counted; whatever else ends badly fails the test.
KNOWN = []


def is_always_run(case):
    cases = {1: MENDED, 2: MENDED_TOGETHER + HANDED_ON, 3: MENDED_OF_THREE}.get(case.placement.ranks, [])
    return any((case.scene.name, case.fault.family, call) in cases for call in (case.call, 0))


def is_known(text):
    return any(re.search(pattern, text) for pattern in KNOWN)
