"""Which rank has which part of a matrix in memory, as tessera_matrix of tessera.h says it."""
from __future__ import annotations

from typing import NamedTuple, Sequence

import numpy as np


class Distributed:
    """A matrix, or a stack of matrices, of which each rank has a part: every rank hands over its own.

    array       this rank's part; None where it has nothing
    shape       rows and columns of the whole matrix; None: each rank has a block of its rows, one below the other, as
                many as tessera.rows_of says. Of a stack each rank has so many along its first dimension
    block       sides of the blocks that go round the ranks, as ScaLAPACK deals them; None: one block for each rank
    grid        ranks along the rows and the columns of blocks; None: all ranks below one another
    first       place in the grid that has the first block
    by_columns  ranks are counted along the columns of the grid
    shared      each rank reaches all of the matrix, as in a window of MPI on one node
    """

    def __init__(self, array: np.ndarray | None, shape: Sequence[int] | None = None, *,
                 block: Sequence[int] | None = None, grid: Sequence[int] | None = None,
                 first: Sequence[int] = (0, 0), by_columns: bool = False, shared: bool = False) -> None:
        if shape is None and (block or grid or shared):
            raise ValueError("block, grid and shared need the shape of the whole matrix: give it")
        self.array, self.shape, self.shared = array, shape, shared
        self.block, self.grid, self.first, self.by_columns = block, grid, first, by_columns


def rows_of(rows: int, rank: int, ranks: int) -> range:
    """The rows that a rank has of a matrix whose rows the ranks share: as many each, the last ranks fewer or none.

    >>> [list(rows_of(5, rank, 3)) for rank in range(3)]
    [[0, 1], [2, 3], [4]]
    """
    block = max(1, -(-rows // ranks))
    return range(min(rank * block, rows), min((rank + 1) * block, rows))


def _pair(values: Sequence[int]) -> tuple[int, int]:
    first, second = values
    return int(first), int(second)


def _dealt(length: int, block: int, parts: int, place: int) -> int:
    """Elements of a side that a part has, `place` parts after the one with the first block."""
    blocks, rest = divmod(length, block)
    return blocks // parts * block + (block if place < blocks % parts else rest if place == blocks % parts else 0)


class Layout(NamedTuple):
    shape: tuple[int, int]
    block: tuple[int, int]
    grid: tuple[int, int]
    first: tuple[int, int] = (0, 0)
    by_columns: bool = False
    shared: bool = False

    def transposed(self) -> Layout:
        return Layout(self.shape[::-1], self.block[::-1], self.grid[::-1], self.first[::-1], not self.by_columns,
                      self.shared)

    def local(self, rank: int) -> tuple[int, int]:
        """Sides of a rank's array; 0, 0 for one that has nothing."""
        rows, cols = self.grid
        if self.shared:
            return self.shape
        if rank >= rows * cols:
            return 0, 0
        row, col = (rank % rows, rank // rows) if self.by_columns else divmod(rank, cols)
        return (_dealt(self.shape[0], self.block[0], rows, (row - self.first[0]) % rows),
                _dealt(self.shape[1], self.block[1], cols, (col - self.first[1]) % cols))


def on_rank_0(shape: tuple[int, int]) -> Layout:
    return Layout(shape, (max(1, shape[0]), max(1, shape[1])), (1, 1))


def by_rows(shape: tuple[int, int], ranks: int) -> Layout:
    return Layout(shape, (max(1, -(-shape[0] // ranks)), max(1, shape[1])), (ranks, 1))


def layout_of(x: Distributed, ranks: int) -> Layout:
    """What the caller said of a matrix whose shape is given."""
    shape, first = _pair(x.shape), _pair(x.first)
    grid = _pair(x.grid or ((1, 1) if x.shared else (ranks, 1)))
    if min(grid) < 1 or grid[0] * grid[1] > ranks:
        raise ValueError(f"a grid of {grid[0]} x {grid[1]} ranks, and there are {ranks}")
    if x.shared and grid != (1, 1):
        raise ValueError("a shared matrix is not dealt out to a grid: leave out one of them")
    block = _pair(x.block or [max(1, -(-length // parts)) for length, parts in zip(shape, grid)])
    if min(block) < 1 or min(shape) < 0:
        raise ValueError(f"a matrix of {shape[0]} x {shape[1]} in blocks of {block[0]} x {block[1]} is none")
    if not all(0 <= place < parts for place, parts in zip(first, grid)):
        raise ValueError(f"the first block at {first} in a grid of {grid[0]} x {grid[1]}: there is no such place")
    return Layout(shape, block, grid, first, bool(x.by_columns), bool(x.shared))
