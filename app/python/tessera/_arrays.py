"""Products of arrays of NumPy by tessera_multiply_matrices of tessera.h: the arrays stay where they are, stored row
after row or column after column."""
from __future__ import annotations

import ctypes
import math
import os
import sys
from typing import Any, Callable, Sequence

import numpy as np

from . import _library as lib
from ._layouts import Distributed, Layout, by_rows, layout_of, on_rank_0, rows_of

_TYPES = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64", "complex64": "c64",
          "complex128": "c128"}
_WHOLE = {"bool": "bool", **{f"int{bits}": f"i{bits}" for bits in (8, 16, 32, 64)},
          **{f"uint{bits}": f"u{bits}" for bits in (8, 16, 32, 64)}}
_NAMES = {**{name: name for name in _TYPES}, **{short: name for name, short in _TYPES.items()}}

Shape = tuple  # of int
Dropped = tuple[bool, bool]  # C lacks the row, or the column, that a vector does not make
Described = Callable[[Any, Any, Any, "dict[str, Any]"], "tuple[Shape, str, int]"]  # sides, type and dimensions of C


def is_array(x: Any) -> bool:
    return isinstance(x, (np.ndarray, Distributed))


def _text(shape: Sequence[int]) -> str:
    return " x ".join(str(side) for side in shape) or "a number"


# ---- one operand -----------------------------------------------------------------------------------


def _is_little(kind: np.dtype) -> bool:
    return kind.byteorder == "<" or kind.byteorder in "=|" and sys.byteorder == "little"


def _type_of(kind: np.dtype) -> bytes:
    """As tessera_matrix has it, with the order of its bytes."""
    name = _TYPES.get(kind.name) or _WHOLE[kind.name]
    return (name if kind.isnative else ("<" if _is_little(kind) else ">") + name).encode()


def _step(array: np.ndarray, turned: bool) -> int | None:
    """Elements from row to row of its matrices, or from column to column where `turned`, as far as these and the
    matrices of a stack follow each other; else None."""
    view = array.swapaxes(-1, -2) if turned else array
    cols = view.shape[-1]
    if view.size == 0:
        return max(1, cols)
    if not view.flags.aligned or cols > 1 and view.strides[-1] != view.itemsize:
        return None
    outer = [(size, stride) for size, stride in zip(view.shape[:-1], view.strides[:-1]) if size > 1]
    if any(stride != inner * size for (_, stride), (size, inner) in zip(outer, outer[1:])):
        return None
    step, rest = divmod(outer[-1][1], view.itemsize) if outer else (cols, 0)
    return None if rest or step < cols else step


def _computed_in(kinds: list[np.dtype], complex_too: bool) -> np.dtype:
    wide = any(kind.name in ("float64", "complex128") or kind.kind in "biu" for kind in kinds)
    if complex_too or any(kind.kind == "c" for kind in kinds):
        return np.dtype(np.complex128 if wide else np.complex64)
    return np.dtype(np.float64 if wide else np.float32)


def _real(kind: np.dtype) -> np.dtype:
    return np.dtype({"complex64": np.float32, "complex128": np.float64}.get(kind.name, kind))


class _Operand:
    """A matrix, or a stack of them, as this rank has it; after agree() as all ranks do."""

    dtype: np.dtype
    shape: Shape = ()  # of all ranks: the stack's, rows and columns
    layout: Layout | None = None  # of one matrix
    turned = False  # matrices are stored column after column on every rank
    lies = True  # every rank's array is taken where it lies

    def __init__(self, comm: Any, name: str, x: np.ndarray | Distributed, as_column: bool = False) -> None:
        self.comm, self.name, self.distributed = comm, name, isinstance(x, Distributed)
        array = x.array if isinstance(x, Distributed) else x
        self.array = array = None if array is None else np.asarray(array)
        self.vector = array is not None and array.ndim == 1 and not self.distributed
        if self.vector:
            self.array = array.reshape((-1, 1) if as_column else (1, -1))
        elif array is not None and array.ndim < 2 and (self.distributed or name in ("a", "b")):
            raise ValueError(f"{name} has {array.ndim} dimensions: a matrix has two")
        if array is not None and name != "out" and array.dtype.name not in {**_TYPES, **_WHOLE}:
            raise TypeError(f"{name} holds {array.dtype.name}: cast it to one of {', '.join(_TYPES)}")
        self.given = array
        if isinstance(x, Distributed) and x.shape is not None:
            self._take_shape(x)

    def _take_shape(self, x: Distributed) -> None:
        if len(x.shape) == 2:
            self.layout = layout_of(x, self.comm.size)
        elif x.block or x.grid or x.shared:
            raise ValueError(f"{self.name} is a stack: each rank has matrices of it, without block, grid or shared")
        self.shape = tuple(int(side) for side in x.shape)

    def expand(self, dropped: Dropped) -> None:
        """Of C: with the dimensions that vectors take from the product."""
        if self.array is None:
            return
        self.vector, self.array = False, self.given
        row, col = dropped
        if col:
            self.array = self.array[..., None]
        if row and self.array.ndim > 0:
            self.array = self.array[..., None, :]

    def tell(self) -> tuple:
        """What the other ranks have to know."""
        if self.array is None:
            return self.distributed, self.vector, (self.layout, self.shape), None, (), True, True
        lies = [self.array.ndim > 1 and _step(self.array, turned) is not None for turned in (False, True)]
        return (self.distributed, self.vector, (self.layout, self.shape), self.array.dtype, self.array.shape, *lies)

    def agree(self, told: list[tuple]) -> None:
        """One layout, type and order. Of an array that is not distributed rank 0's counts."""
        if not self.distributed:
            told = told[:1]
            self.vector, self.shape = told[0][1], told[0][4]
            if self.comm.rank > 0:
                self.array = None
        kinds = {t[3].str: t[3] for t in told if t[3] is not None}
        if len(kinds) != 1 or len({t[0] for t in told}) != 1:
            raise ValueError(f"{self.name} is of {len(kinds)} types on the ranks, "
                             f"{', '.join(kind.name for kind in kinds.values())}: give one")
        self.dtype = next(iter(kinds.values()))
        if self.distributed:
            self._agree_on_parts(told)
        self.turned = not all(t[5] for t in told) and all(t[6] for t in told)
        self.lies = self.turned or all(t[5] for t in told)

    def _agree_on_parts(self, told: list[tuple]) -> None:
        for rank, t in enumerate(told):
            if t[2] != told[0][2]:
                raise ValueError(f"{self.name} is dealt out in another way on rank {rank} than on rank 0")
        shapes = [t[4] for t in told if t[4]]
        if not self.shape:
            most = max(shapes, key=math.prod)
            if len({len(shape) for shape in shapes}) > 1:
                raise ValueError(f"{self.name} has {len(shapes[0])} dimensions on one rank, and others elsewhere")
            self.shape = (sum(shape[0] for shape in shapes), *most[1:])
        if self.layout is None and len(self.shape) == 2:
            self.layout = by_rows(self.shape, len(told))
        for rank, t in enumerate(told):
            wanted = self.part(rank, len(told))
            if t[4] != wanted and (math.prod(t[4] or (0,)) or math.prod(wanted)):
                raise ValueError(f"{self.name} is {_text(t[4] or (0, 0))} on rank {rank}, and that rank's part of "
                                 f"{_text(self.shape)} is {_text(wanted)}")

    def part(self, rank: int, ranks: int) -> Shape:
        """The shape of a rank's array."""
        if self.layout:
            return self.layout.local(rank)
        return (len(rows_of(self.shape[0], rank, ranks)), *self.shape[1:])

    def _stored(self) -> Layout:
        """Of all that is stored, the matrices of a stack one below the other."""
        if self.layout:
            return self.layout.transposed() if self.turned else self.layout
        *stack, rows, cols = self.shape
        rows, cols = (cols, rows) if self.turned else (rows, cols)
        each = rows * math.prod(stack)
        if not self.distributed:
            return on_rank_0((each, cols))
        block = -(-stack[0] // self.comm.size) * rows * math.prod(stack[1:])
        return Layout((each, cols), (max(1, block), max(1, cols)), (self.comm.size, 1))

    def struct(self, turned: bool) -> lib.Matrix:
        """As tessera.h has it; its transpose where it is stored the other way round than `turned`."""
        x = self._stored().transposed() if turned else self._stored()
        m = lib.Matrix(size=ctypes.sizeof(lib.Matrix), type=_type_of(self.dtype), shared=x.shared,
                       ranks_by_columns=x.by_columns)
        *stack, rows, cols = self.shape
        m.rows, m.cols = (rows, cols) if turned == self.turned else (cols, rows)
        m.block_rows, m.block_cols = x.block
        m.grid_rows, m.grid_cols = x.grid
        m.first_row, m.first_col = x.first
        m.stack_dimensions, m.stack = len(stack), (ctypes.c_int64 * len(stack))(*stack)
        if self.array is not None and self.array.size > 0:
            if _step(self.array, self.turned) is None:
                self.array = np.array(self.array, order="C")
            m.data, m.ld = self.array.ctypes.data, _step(self.array, self.turned)
        return m


class _Named:
    """A matrix in a file; the library finds out what it is."""

    shape: Shape | None = None
    distributed = vector = turned = False

    def __init__(self, name: bytes) -> None:
        self.file = name

    def struct(self, _: bool) -> lib.Matrix:
        return lib.Matrix(size=ctypes.sizeof(lib.Matrix), name=self.file)


def named(x: Any, which: str) -> bytes:
    """The name of a matrix in a file: what was given, or that of a dataset of h5py."""
    if isinstance(x, (str, os.PathLike)):
        return os.fsencode(os.fspath(x))
    file = getattr(x, "file", None)
    if file is not None and hasattr(x, "name") and hasattr(file, "filename"):
        if file.mode != "r":
            raise ValueError(f"'{file.filename}' is open for writing: close it, or open it with mode 'r'")
        return os.fsencode(f"{file.filename}:{x.name}")
    raise TypeError(f"{which} is a {type(x).__name__}: give the name of a matrix, a dataset or an array")


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
    """C = alpha op(A) op(B) + beta C0, of which one at least is an array: `given` and `options` for the library, and
    what C's array is. `describe` asks the library what C will be, where a file has to say it."""

    shape: Shape | None = None  # of C, with both dimensions of its matrices; None: nobody has to know
    dropped: Dropped = (False, False)
    type: str | None = None  # of C, without C0, where the library said it
    shown: Any = None
    apart: np.ndarray | None = None  # out, where C was written elsewhere
    c0: lib.Matrix | None = None  # for the library, beside a C in a file

    def __init__(self, comm: Any, a: Any, b: Any, out: Any, options: dict[str, Any], describe: Described) -> None:
        self.comm, self.options, self.describe = comm, dict(options), describe
        add = self.options.pop("add", None)
        self.gram = bool(self.options.get("gram"))
        if self.options.pop("order", None):
            raise TypeError("order is an option of products of files: arrays have their order, and a transpose")
        if b is None and not self.gram:
            raise TypeError("b is missing: two matrices are multiplied, or one by its own transpose with gram=True")
        self._take_beta(add, out)
        if add is out:
            add = None
        if add is not None and not is_array(add):
            self.options["add"], add = os.fsdecode(named(add, "add")), None
        self._take(a, b, out, add)
        if out is None:
            self._make_target()
        elif is_array(out):
            self._take_target(out)
        if "add" in self.of:
            self._take_c0()
        self._hand_over()

    def _take_beta(self, add: Any, out: Any) -> None:
        if self.options.get("beta") is None:
            self.options.pop("beta", None)
            self.options.update({} if add is None else {"beta": 1})
        elif add is None and (out is None or not is_array(out)):
            raise ValueError("beta scales what C holds: give that as add or out")

    def _take(self, a: Any, b: Any, out: Any, add: Any) -> None:
        """The operands, agreed on by all ranks, and the shape of C where that matters."""
        factors = {name: x for name, x in (("a", a), ("b", b)) if x is not None}
        results = {name: x for name, x in (("out", out), ("add", add)) if x is not None}
        files = not all(map(is_array, factors.values()))
        asks = files and any(map(is_array, results.values())) or out is None and (files or "add" in self.options)
        self.of: dict[str, Any] = {}
        self._agree_on(factors if asks else {**factors, **results})
        self.left, self.right = self.of["a"], self.of.get("b")
        ops = [x for x in (self.left, self.right) if x]
        self.transposed = [bool(self.options.get("transpose_" + name)) and not x.vector for name, x in zip("ab", ops)]
        if asks:
            self._ask()
            self._agree_on(results)
        elif all(x.shape is not None for x in ops):
            self.shape, self.dropped = self._find_shape(), (ops[0].vector, ops[-1].vector and self.right is not None)
        self.said = [f"{name} holds {x.dtype.name}: the product is made in float64, which is exact up to 2^53"
                     for name, x in self.of.items() if not isinstance(x, _Named) and x.dtype.kind in "biu"]

    def _agree_on(self, given: dict[str, Any]) -> None:
        arrays = {name: x for name, x in given.items() if is_array(x)}
        made = dict(zip(arrays, _agree(self.comm, lambda: self._look(arrays)))) if arrays else {}
        self.of.update({name: made.get(name) or _Named(named(x, name)) for name, x in given.items()})

    def _look(self, operands: dict[str, Any]) -> list[_Operand]:
        """Local: the operands as this rank has them."""
        made = [_Operand(self.comm, name, x, as_column=name == "b") for name, x in operands.items()]
        factors = {**self.of, **{x.name: x for x in made if x.name in ("a", "b")}}
        dropped = self.dropped if self.of else tuple(name in factors and factors[name].vector for name in "ab")
        for x in made:
            if x.name in ("out", "add") and not x.distributed:
                x.expand(dropped)
        for out in (x for x in made if x.name == "out" and x.array is not None):
            if not out.array.flags.writeable:
                raise ValueError("out is read-only: the product is written there")
            if out.array.dtype.name not in _TYPES or not out.array.dtype.isnative:
                raise TypeError(f"out holds {out.array.dtype}: an array of C has one of {', '.join(_TYPES)}")
            for other in (x for x in factors.values() if not isinstance(x, _Named) and x.array is not None):
                if np.shares_memory(other.array, out.array):
                    raise ValueError(f"out and {other.name} share memory: the product needs memory of its own")
        return made

    def _ask(self) -> None:
        """Of the library: the shape of C, and its type without C0's."""
        options = {name: x for name, x in self.options.items() if name not in ("add", "beta")}
        if "add" in self.options:  # in a file
            options.update(add=self.options["add"], beta=self.options["beta"])
        given = [None if x is None else ctypes.byref(x) for x in self._factors(False, options)]
        self.shape, self.type, dimensions = self.describe(self.comm, *given, options)
        missing = len(self.shape) - dimensions
        row = missing == 2 or missing == 1 and self.shape[-2] == 1
        self.dropped = row, missing == 2 or missing == 1 and not row

    def _find_shape(self) -> Shape:
        """As numpy.matmul finds it, with both dimensions of a matrix."""
        ops = [self.left, self.right or self.left]
        turned = [self.transposed[0], self.transposed[1] if self.right else not self.transposed[0]]
        sides = [x.shape[-2:][::-1] if t else x.shape[-2:] for x, t in zip(ops, turned)]
        texts = [f"{x.name} ({_text(x.shape)}{', transposed' if t else ''})" for x, t in zip(ops, turned)]
        if sides[0][1] != sides[1][0]:
            raise lib.Error(lib.ERR_SHAPE, f"{texts[0]} and {texts[1]}: the columns of the first, {sides[0][1]}, must "
                                           f"be the rows of the second, {sides[1][0]}")
        try:
            stack = np.broadcast_shapes(ops[0].shape[:-2], ops[1].shape[:-2])
        except ValueError:
            raise lib.Error(lib.ERR_SHAPE, f"{texts[0]} and {texts[1]}: along each dimension of a stack there are as "
                                           "many matrices of both, or 1") from None
        return (*stack, sides[0][0], sides[1][1])

    def _find_type(self) -> np.dtype:
        """Of C where it is made here: the one asked for, or that in which the product is computed."""
        wanted = self.options.pop("type", None)
        if wanted is not None and str(wanted) not in _NAMES:
            raise TypeError(f"type {wanted}: an array of C has one of {', '.join(_TYPES.values())}")
        if wanted is not None:
            return np.dtype(_NAMES[str(wanted)])
        if self.type is not None and "add" not in self.of:
            return np.dtype(_NAMES[self.type])
        scaled = any(complex(self.options.get(name) or 0).imag for name in ("alpha", "beta"))
        kinds = [x.dtype for name, x in self.of.items() if name != "out" and not isinstance(x, _Named)]
        kind = _computed_in([*kinds, *([np.dtype(_NAMES[self.type])] if self.type else [])], scaled)
        return _real(kind) if self.options.get("real_part") else kind

    def _check_shape(self, x: _Operand) -> None:
        if len(x.shape) < 2:
            raise ValueError(f"{x.name} has {len(x.shape)} dimensions, and the product two or more")
        if self.shape is not None and x.shape != self.shape:
            raise lib.Error(lib.ERR_SHAPE, f"{x.name} is {_text(x.shape)}, and the product {_text(self.shape)}")

    def _make_target(self) -> None:
        """As C0 lies, or as each rank's rows or matrices, or on rank 0."""
        c0, comm = self.of.get("add"), self.comm
        if c0:
            self._check_shape(c0)
        distributed = c0.distributed if c0 else self.left.distributed or bool(self.right and self.right.distributed)
        if c0 and c0.layout and c0.layout.shared:
            raise ValueError("C would be shared as add is: give the array that the ranks share for it as out")
        self.of["out"] = self.target = target = _Operand(comm, "out", Distributed(None))
        target.shape, target.distributed, target.dtype = self.shape, distributed, self._find_type()
        if c0:
            target.layout = c0.layout
        elif distributed and len(self.shape) == 2:
            target.layout = by_rows(self.shape, comm.size)
        part = target.part(comm.rank, comm.size) if distributed else self.shape
        target.array = np.empty(part, target.dtype) if distributed or comm.rank == 0 else None
        self.shown = target.array
        if target.array is not None and not distributed:
            sides = [side for side, dropped in zip(self.shape[-2:], self.dropped) if not dropped]
            self.shown = target.array.reshape((*self.shape[:-2], *sides))

    def _take_target(self, out: Any) -> None:
        self.target = target = self.of["out"]
        self.shown = out.array if isinstance(out, Distributed) else out
        self._check_shape(target)
        if "type" in self.options and self._find_type() != target.dtype:
            raise TypeError(f"out holds {target.dtype.name}, which is C's type: leave out type")
        if not target.lies:
            raise ValueError("out has gaps within its rows and columns: one of them must follow each other in memory")
        if target.turned and self._has_files():
            self._write_apart(target)

    def _write_apart(self, target: _Operand) -> None:
        """Files are seen row after row, and C with them: it goes through an array of that order."""
        target.turned, self.apart = False, target.array
        if target.array is not None:
            target.array = np.array(target.array, order="C")

    def finish(self) -> None:
        """After the call."""
        if self.apart is not None:
            self.apart[...] = self.target.array

    def _take_c0(self) -> None:
        """Into C's array, or beside a C in a file, whose rows follow each other."""
        c0, target = self.of["add"], self.of["out"]
        self._check_shape(c0)
        if isinstance(target, _Named):
            c0.turned = False
            self.c0 = c0.struct(False)
            return
        if (c0.layout, c0.distributed, c0.shape) != (target.layout, target.distributed, target.shape):
            raise ValueError("add lies in another way than out: both are the same ranks' parts of one shape")
        if target.array is not None and c0.array is not None:
            target.array[...] = c0.array

    def _factors(self, turned: bool, options: dict[str, Any]) -> list[Any]:
        """A and B for the library. Arrays that are stored in another order than C's are their transposes, which the
        product undoes."""
        for name, x, transposed in zip("ab", (self.left, self.right), self.transposed):
            options["transpose_" + name] = transposed != (x.turned != turned)
        options["order"] = "col" if turned else "row"
        given = [x.struct(turned) if x else None for x in (self.left, self.right)]
        for matrix, x in zip(given, (self.left, self.right)):
            if x and x.vector and self._has_files():  # else a stack's small products are made together
                matrix.vector = True
        return given

    def _has_files(self) -> bool:
        return "add" in self.options or any(isinstance(x, _Named) for x in self.of.values())

    def _hand_over(self) -> None:
        target = self.of["out"]
        self.matrices = [*self._factors(target.turned, self.options), target.struct(target.turned)]
        self.given = [None if x is None else ctypes.byref(x) for x in self.matrices]  # to the library
