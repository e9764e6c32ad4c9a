"""Products of arrays of NumPy by tessera_multiply_matrices of tessera.h: the arrays stay where they are, stored row
after row or column after column."""
from __future__ import annotations

import ctypes
from typing import Any, Callable

import numpy as np

from . import _library as lib
from ._layouts import Distributed, Layout, by_rows, layout_of, on_rank_0

_TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "complex64": "c64",
          "complex128": "c128"}
_NAMES = {**{name: name for name in _TYPES}, **{short: name for name, short in _TYPES.items()}}


def in_memory(*operands: Any) -> bool:
    """Whether all of them are arrays of two dimensions at most, or missing."""
    return all(x is None or isinstance(x, Distributed) or isinstance(x, np.ndarray) and x.ndim in (1, 2)
               for x in operands)


# ---- one array -------------------------------------------------------------------------------------


def _native(name: str, array: np.ndarray) -> np.ndarray:
    """With elements that tessera.h has; integers become float64."""
    kind = array.dtype
    if kind.kind in "biu":
        return array.astype(np.float64)
    if kind.name not in _TYPES:
        raise TypeError(f"{name} holds {kind.name}: cast it to one of {', '.join(_TYPES)}")
    return array if kind.isnative else array.astype(kind.newbyteorder("="))


def _step(array: np.ndarray, turned: bool) -> int | None:
    """Elements from row to row, or from column to column where `turned`; None where they do not lie so."""
    view = array.T if turned else array
    rows, cols = view.shape
    if view.size == 0:
        return max(1, cols)
    if not view.flags.aligned or cols > 1 and view.strides[1] != view.itemsize:
        return None
    step, rest = divmod(view.strides[0], view.itemsize)
    if rows == 1:
        return cols
    return None if rest or step < cols else step


def _computed_in(kinds: list[np.dtype], complex_too: bool) -> np.dtype:
    wide = any(kind.name in ("float64", "complex128") for kind in kinds)
    if complex_too or any(kind.kind == "c" for kind in kinds):
        return np.dtype(np.complex128 if wide else np.complex64)
    return np.dtype(np.float64 if wide else np.float32)


def _real(kind: np.dtype) -> np.dtype:
    return np.dtype({"complex64": np.float32, "complex128": np.float64}.get(kind.name, kind))


class _Operand:
    """A matrix as this rank has it, and after agree() as all ranks do."""

    layout: Layout | None = None
    dtype: np.dtype
    turned = False  # column after column on every rank
    lies = True  # every rank's array is taken where it lies

    def __init__(self, comm: Any, name: str, x: np.ndarray | Distributed, as_column: bool = False) -> None:
        self.comm, self.name, self.distributed = comm, name, isinstance(x, Distributed)
        array = x.array if isinstance(x, Distributed) else x
        array = None if array is None else np.asarray(array)
        self.vector = array is not None and array.ndim == 1 and not self.distributed
        if self.vector:
            array = array.reshape((-1, 1) if as_column else (1, -1))
        if array is not None and array.ndim != 2:
            raise ValueError(f"{name} has {array.ndim} dimensions: a matrix has two")
        self.given, self.array = array, array if array is None or name == "out" else _native(name, array)
        if isinstance(x, Distributed) and x.shape is not None:
            self.layout = layout_of(x, comm.size)

    def tell(self) -> tuple:
        """What the other ranks have to know."""
        if self.array is None:
            return self.distributed, self.vector, self.layout, None, (0, 0), True, True
        lies = [_step(self.array, turned) is not None for turned in (False, True)]
        return self.distributed, self.vector, self.layout, self.array.dtype, self.array.shape, *lies

    def agree(self, told: list[tuple]) -> None:
        """One layout, type and order. Of an array that is not distributed rank 0's counts."""
        if not self.distributed:
            told = told[:1]
            self.vector, self.layout = told[0][1], on_rank_0(told[0][4])
            if self.comm.rank > 0:
                self.array = None
        kinds = {t[3].name: t[3] for t in told if t[3] is not None}
        if len(kinds) != 1 or len({t[0] for t in told}) != 1:
            raise ValueError(f"{self.name} is of {len(kinds)} types on the ranks, {', '.join(kinds)}: give one")
        self.dtype = next(iter(kinds.values()))
        if self.distributed:
            self._agree_on_parts(told)
        self.turned = not all(t[5] for t in told) and all(t[6] for t in told)
        self.lies = self.turned or all(t[5] for t in told)

    def _agree_on_parts(self, told: list[tuple]) -> None:
        for rank, t in enumerate(told):
            if t[2] != told[0][2]:
                raise ValueError(f"{self.name} is dealt out in another way on rank {rank} than on rank 0")
        if self.layout is None:
            self.layout = by_rows((sum(t[4][0] for t in told), max(t[4][1] for t in told)), len(told))
        for rank, t in enumerate(told):
            wanted = self.layout.local(rank)
            if t[4] != wanted and (all(t[4]) or all(wanted)):
                raise ValueError(f"{self.name} is {t[4][0]} x {t[4][1]} on rank {rank}, and that rank's part of "
                                 f"{self.layout.shape[0]} x {self.layout.shape[1]} is {wanted[0]} x {wanted[1]}")

    def stand(self, shape: tuple[int, int]) -> None:
        """A vector is a row or a column, whichever the product has."""
        if self.vector and self.layout.shape[::-1] == shape:
            self.layout, self.turned = on_rank_0(shape), not self.turned
            self.array = None if self.array is None else self.array.T

    def struct(self, turned: bool) -> lib.Matrix:
        """As tessera.h has it; its transpose where it is stored the other way round than `turned`."""
        x = self.layout if turned == self.turned else self.layout.transposed()
        m = lib.Matrix(size=ctypes.sizeof(lib.Matrix), type=_TYPES[self.dtype.name].encode(), shared=x.shared,
                       ranks_by_columns=x.by_columns)
        m.rows, m.cols = x.shape
        m.block_rows, m.block_cols = x.block
        m.grid_rows, m.grid_cols = x.grid
        m.first_row, m.first_col = x.first
        if self.array is not None and self.array.size > 0:
            if _step(self.array, self.turned) is None:
                self.array = np.array(self.array, order="C")
            m.data, m.ld = self.array.ctypes.data, _step(self.array, self.turned)
        return m


def _agree(comm: Any, make: Callable[[], list[_Operand]]) -> list[_Operand]:
    """What `make` makes, the same on every rank; what one rank finds wrong every rank raises."""
    made: list[_Operand] = []
    mine: Any
    try:
        made = make()
        mine = [operand.tell() for operand in made]
    except (TypeError, ValueError) as error:
        mine = error
    everything = comm.allgather(mine)
    for told in everything:
        if isinstance(told, Exception):
            raise told
    for i, operand in enumerate(made):
        operand.agree([told[i] for told in everything])
    return made


# ---- a product -------------------------------------------------------------------------------------


class Product:
    """C = alpha op(A) op(B) + beta C0 of arrays: `matrices` and `options` for the library, and what C's array is."""

    def __init__(self, comm: Any, a: Any, b: Any, out: Any, options: dict[str, Any]) -> None:
        self.options = dict(options)
        add = self.options.pop("add", None)
        for name in ("order", "gram", "triangle"):
            if self.options.pop(name, None):
                raise TypeError(f"{name} is an option of products of files: arrays have their order, and a transpose")
        if b is None:
            raise TypeError("b is missing: two matrices are multiplied")
        if self.options.get("beta") is None:
            self.options.pop("beta", None)
            self.options.update({} if add is None else {"beta": 1})
        elif add is None and out is None:
            raise ValueError("beta scales what C holds: give that as add or out")
        if add is out:
            add = None
        self.comm = comm
        operands = {name: x for name, x in (("a", a), ("b", b), ("out", out), ("add", add)) if x is not None}
        made = _agree(comm, lambda: self._look(operands))
        self.of = dict(zip(operands, made))
        self.left, self.right = made[:2]
        self.said = [f"{x.name} holds {x.given.dtype.name}: a copy as float64 is multiplied, which is exact up to 2^53"
                     for x in made if x.given is not None and x.given.dtype.kind in "biu"]
        self.transposed = [bool(self.options.get("transpose_" + x.name)) and not x.vector for x in made[:2]]
        self.shape = self._find_shape()
        if out is None:
            self._make_target()
        else:
            self._take_target(out)
        if add is not None:
            self._take_c0()
        self._hand_over()

    def _look(self, operands: dict[str, Any]) -> list[_Operand]:
        """Local: the operands as this rank has them."""
        made = [_Operand(self.comm, name, x, as_column=name == "b") for name, x in operands.items()]
        for out in (x for x in made if x.name == "out" and x.array is not None):
            if not out.array.flags.writeable:
                raise ValueError("out is read-only: the product is written there")
            if out.array.dtype.name not in _TYPES or not out.array.dtype.isnative:
                raise TypeError(f"out holds {out.array.dtype}: an array of C has one of {', '.join(_TYPES)}")
            for other in made[:2]:
                if other.array is not None and np.shares_memory(other.array, out.array):
                    raise ValueError(f"out and {other.name} share memory: the product needs memory of its own")
        return made

    def _find_shape(self) -> tuple[int, int]:
        ops = (self.left, self.right)
        sides = [x.layout.shape[::-1] if turned else x.layout.shape for x, turned in zip(ops, self.transposed)]
        if sides[0][1] != sides[1][0]:
            texts = [f"{x.name} ({x.layout.shape[0]} x {x.layout.shape[1]}{', transposed' if turned else ''})"
                     for x, turned in zip(ops, self.transposed)]
            raise lib.Error(lib.ERR_SHAPE, f"{texts[0]} and {texts[1]}: the columns of the first, {sides[0][1]}, must "
                                           f"be the rows of the second, {sides[1][0]}")
        return sides[0][0], sides[1][1]

    def _find_type(self) -> np.dtype:
        """Of C where it is made here: the one asked for, or that in which the product is computed."""
        named = self.options.pop("type", None)
        if named is not None and str(named) not in _NAMES:
            raise TypeError(f"type {named}: an array of C has one of {', '.join(_TYPES.values())}")
        if named is not None:
            return np.dtype(_NAMES[str(named)])
        scaled = any(complex(self.options.get(name) or 0).imag for name in ("alpha", "beta"))
        kind = _computed_in([x.dtype for name, x in self.of.items() if name != "out"], scaled)
        return _real(kind) if self.options.get("real_part") else kind

    def _make_target(self) -> None:
        """As C0 lies, as rows of each rank, or on rank 0."""
        c0, comm = self.of.get("add"), self.comm
        if c0:
            c0.stand(self.shape)
        distributed = c0.distributed if c0 else self.left.distributed or self.right.distributed
        layout = c0.layout if c0 else by_rows(self.shape, comm.size) if distributed else on_rank_0(self.shape)
        if layout.shape != self.shape:
            raise lib.Error(lib.ERR_SHAPE, f"add is {layout.shape[0]} x {layout.shape[1]}, and the product "
                                           f"{self.shape[0]} x {self.shape[1]}")
        if layout.shared:
            raise ValueError("C would be shared as add is: give the array that the ranks share for it as out")
        self.target = target = _Operand(comm, "out", np.empty(layout.local(comm.rank), self._find_type()))
        target.dtype, target.layout = target.array.dtype, layout
        sides = [side for side, x in zip(self.shape, (self.left, self.right)) if not x.vector]
        self.shown = target.array if distributed else target.array.reshape(sides) if comm.rank == 0 else None

    def _take_target(self, out: Any) -> None:
        self.target = target = self.of["out"]
        self.shown = out.array if isinstance(out, Distributed) else out
        target.stand(self.shape)
        if target.layout.shape != self.shape:
            raise lib.Error(lib.ERR_SHAPE, f"out is {target.layout.shape[0]} x {target.layout.shape[1]}, and the "
                                           f"product {self.shape[0]} x {self.shape[1]}")
        if "type" in self.options and self._find_type() != target.dtype:
            raise TypeError(f"out holds {target.dtype.name}, which is C's type: leave out type")
        if not target.lies:
            raise ValueError("out has gaps within its rows and columns: one of them must follow each other in memory")

    def _take_c0(self) -> None:
        c0, target = self.of["add"], self.target
        c0.stand(self.shape)
        if c0.layout != target.layout:
            raise ValueError("add lies in another way than out: both are the same ranks' parts of one shape")
        if target.array is not None and c0.array is not None:
            target.array[...] = c0.array

    def _hand_over(self) -> None:
        """Arrays that are stored in another order than C's are their transposes, which the product undoes."""
        turned = self.target.turned
        for x, transposed in zip((self.left, self.right), self.transposed):
            self.options["transpose_" + x.name] = transposed != (x.turned != turned)
        self.options["order"] = "col" if turned else "row"
        self.matrices = [x.struct(turned) for x in (self.left, self.right, self.target)]
