"""Products of large matrices in HDF5 files, on as many ranks and GPUs as MPI gives (libtessera).

>>> import numpy, tessera
>>> record = tessera.multiply(numpy.eye(3), numpy.ones((3, 2)))
>>> record.array
array([[1., 1.],
       [1., 1.],
       [1., 1.]])
>>> record.m, record.n, record["k"]
(3, 2, 3)
"""
from __future__ import annotations

import atexit
import ctypes
import html
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Callable, Union

import numpy as np

from . import _library as lib
from ._arrays import Product, is_array, named
from ._layouts import Distributed, rows_of
from ._library import Error
from ._version import VERSION as __version__

if TYPE_CHECKING:
    import h5py

Matrix = Union[str, "os.PathLike[str]", "h5py.Dataset", np.ndarray, Distributed]
ProgressCall = Callable[[str, float, float, str, float], Any]

__all__ = ["Distributed", "Error", "Record", "empty", "multiply", "plan", "rows_of", "library_version",
           "trim"]


def library_version() -> str:
    """The version of libtessera that is loaded."""
    return lib.version().decode()


_JOB = ("OMPI_", "PMIX_", "PMI_")  # with these a program takes itself for a rank of this job

# ---- records ---------------------------------------------------------------------------------------


class Record(dict):
    """What a product left behind: the members that docs/record.md has, as a dictionary and as attributes."""

    array: np.ndarray | None = None  # the product, where it is in memory: all on rank 0, or this rank's part

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the record has no member '{name}'") from None

    def __repr__(self) -> str:
        size = " x ".join(str(self.get(side)) for side in "mnk")
        return f"<tessera.Record {size} in {self.get('seconds', 0):.3g} s, {self.get('gflops', 0):.3g} GFLOP/s>"

    def report(self) -> str:
        """The page of `tessera report`, one HTML file. Needs the program `tessera`."""
        with tempfile.TemporaryDirectory(prefix="tessera-") as folder:
            run = os.path.join(folder, "run.json")
            with open(run, "w") as file:
                json.dump(self, file)
            alone = {name: value for name, value in os.environ.items() if not name.startswith(_JOB)}
            done = subprocess.run([_program(), "report", run, "-o", "-"], capture_output=True, text=True, check=False,
                                  env=alone)
        if done.returncode != 0:
            raise Error(1, done.stderr.strip())
        return done.stdout

    def _repr_html_(self) -> str:
        try:
            page = html.escape(self.report(), quote=True)
        except (Error, OSError):
            rows = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
                           for name, value in self.items() if not isinstance(value, (list, dict)))
            return f"<table>{rows}</table>"
        return f'<iframe srcdoc="{page}" style="width: 100%; height: 40em; border: 0"></iframe>'


def _program() -> str:
    folder = os.path.dirname(os.path.abspath(lib.PATH))
    for name in (os.path.join(folder, "tessera"), os.path.join(folder, "..", "bin", "tessera"),
                 os.path.join(folder, "..", "..", "bin", "tessera")):
        if os.access(name, os.X_OK):
            return name
    found = shutil.which("tessera")
    if not found:
        raise FileNotFoundError("the program tessera is neither beside libtessera nor on PATH: install it")
    return found


# ---- MPI -------------------------------------------------------------------------------------------

_contexts: dict[int, ctypes.c_void_p] = {}


class _Alone:
    """MPI without mpi4py: all ranks of the job, as far as this module needs them."""

    def __init__(self) -> None:
        started = ctypes.c_int()
        lib.library.MPI_Initialized(ctypes.byref(started))
        if not started.value:
            granted = ctypes.c_int()
            lib.library.MPI_Init_thread(None, None, 3, ctypes.byref(granted))  # MPI_THREAD_MULTIPLE
            atexit.register(lib.library.MPI_Finalize)
        if int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1")) > 1:
            raise ImportError("mpi4py is needed under mpirun: install it")

    rank = 0
    size = 1

    def py2f(self) -> int:
        return 0  # MPI_COMM_WORLD in Open MPI

    def allgather(self, value: Any) -> list[Any]:
        return [value]

    def bcast(self, value: Any, root: int = 0) -> Any:
        return value


def _communicator(comm: Any) -> Any:
    if comm is not None:
        return comm
    try:
        from mpi4py import MPI
    except ImportError:
        return _Alone()
    return MPI.COMM_WORLD


def _context(comm: Any) -> ctypes.c_void_p:
    handle = comm.py2f()
    if handle not in _contexts:
        context = ctypes.c_void_p()
        _check(lib.open_context(handle, None, ctypes.byref(context)))
        _contexts[handle] = context
    return _contexts[handle]


def _check(status: int) -> None:
    if status != 0:
        raise Error(status, lib.message().decode(errors="replace"))


# ---- memory ----------------------------------------------------------------------------------------


def empty(shape: int | tuple[int, ...], dtype: Any = float, *, comm: Any = None) -> np.ndarray:
    """An array of zeros that a GPU copies from and to at once: the first product on one page-locks it, and it stays so
    as long as it lives. Collective: all ranks, of one node, have the same memory (Distributed(..., shared=True)).

    >>> a = empty((2, 3), "f4")
    >>> a[...] = 1
    >>> multiply(a, a.T).array
    array([[3., 3.],
           [3., 3.]], dtype=float32)
    """
    context, kind = _context(_communicator(comm)), np.dtype(dtype)
    sides = (shape,) if isinstance(shape, int) else tuple(int(side) for side in shape)
    if min(sides, default=0) < 0 or kind.hasobject:
        raise ValueError(f"no array of {kind} has the shape {sides}")
    count = math.prod(sides)
    address = ctypes.c_void_p()
    _check(lib.allocate(context, count * kind.itemsize, ctypes.byref(address)))
    memory = (ctypes.c_char * max(1, count * kind.itemsize)).from_address(address.value)
    weakref.finalize(memory, lib.release, context, address).atexit = False
    return np.frombuffer(memory, kind, count).reshape(sides)


def trim() -> None:
    """Hands back memory that stays from one product to the next: up to an eighth of a GPU's, and 1 GiB of the host's.

    >>> trim()
    """
    for context in _contexts.values():
        lib.trim(context)


# ---- options ---------------------------------------------------------------------------------------

_FIELDS = dict(lib.Options._fields_)
_OWN = {"size", "has_beta", "has_stall", "progress", "progress_context", "add_matrix"}


def _text_of(name: str, value: Any) -> bytes:
    if name in ("grid", "chunk") and isinstance(value, (tuple, list)):
        return "x".join(str(int(side)) for side in value).encode()
    return os.fsencode(os.fspath(value)) if isinstance(value, (str, os.PathLike)) else str(value).encode()


def _fill(options: lib.Options, given: dict[str, Any]) -> None:
    for name, value in given.items():
        if name == "stall_timeout":
            name = "stall_seconds"
        kind = _FIELDS.get(name)
        if kind is None or name in _OWN:
            known = sorted(set(_FIELDS) - _OWN)
            raise TypeError(f"multiply has no option '{name}'; it has {', '.join(known)}")
        if value is None:
            continue
        if name in ("alpha", "beta"):
            pair = getattr(options, name)
            pair[0], pair[1] = complex(value).real, complex(value).imag
            options.has_beta |= name == "beta"
        elif kind is ctypes.c_char_p:
            setattr(options, name, _text_of(name, value))
        else:
            setattr(options, name, value)
            options.has_stall |= name == "stall_seconds"


def _show(rank: int) -> ProgressCall:
    def show(stage: str, done: float, total: float, unit: str, seconds: float) -> None:
        if rank == 0 and sys.stderr.isatty():
            share = f"{100 * done / total:3.0f} %" if total > 0 else ""
            sys.stderr.write(f"\r{stage:<12} {share} {seconds:6.1f} s ")
            sys.stderr.flush()

    return show


class _Call:
    """One call's options, and the exception that its progress function raised, or that of Ctrl-C."""

    def __init__(self, comm: Any, progress: bool | ProgressCall | None, given: dict[str, Any],
                 c0: lib.Matrix | None = None) -> None:
        self.raised: BaseException | None = None
        self.tell = _show(comm.rank) if progress is True else progress or None
        self.options = lib.Options(size=ctypes.sizeof(lib.Options))
        self.options.alpha[0] = 1
        _fill(self.options, given)
        if c0 is not None:
            self.options.add_matrix = ctypes.pointer(c0)
        self.options.progress = self.call = lib.PROGRESS_CALL(self._progress)

    def _progress(self, _: Any, at: Any) -> int:
        try:
            p = at.contents
            if self.raised is not None:
                return 1
            if self.tell and self.tell(p.stage.decode(), p.done, p.total, p.unit.decode(), p.seconds) is False:
                return 1
        except BaseException as error:  # noqa: B902: nothing can pass through C
            self.raised = error
            return 1
        return 0

    def make(self, function: Any, *arguments: Any) -> None:
        """Calls the library. Ctrl-C cancels: raised within a function that C calls, it would be lost."""
        usual = signal.getsignal(signal.SIGINT)
        waits = callable(usual) and threading.current_thread() is threading.main_thread()

        def keep(number: int, frame: Any) -> None:
            try:
                usual(number, frame)  # type: ignore[operator]
            except BaseException as error:  # noqa: B902
                self.raised = error

        if waits:
            signal.signal(signal.SIGINT, keep)
        try:
            status = function(*arguments)
        finally:
            if waits:
                signal.signal(signal.SIGINT, usual)
        if self.raised is not None:
            raise self.raised
        _check(status)


# ---- products --------------------------------------------------------------------------------------


def multiply(a: Matrix, b: Matrix | None = None, out: Matrix | None = None, *, comm: Any = None,
             progress: bool | ProgressCall | None = None, **options: Any) -> Record:
    """C = alpha op(A) op(B) + beta C0, on all ranks of `comm` (mpi4py's COMM_WORLD). Collective, with equal arguments.

    a, b      names ("A.h5:/A[0:100]"), datasets of h5py, or arrays; b is None with gram=True. Of an array that of
              rank 0 counts; a Distributed has a part on every rank
    out       where C goes: a name, an array on rank 0, or a Distributed; None: C is the record's `array`, all of it on
              rank 0, or each rank's rows where A, B or add is a Distributed
    progress  True, or a function of stage, done, total, unit and seconds; False from it cancels
    options   those of `tessera multiply`, with _ for -: transpose_a, kernel, grid=(2, 2), trials=20, ...

    The record is empty where resume=True finds C whole: an earlier call made it.

    Arrays are multiplied where they lie, matrices and stacks of them, as numpy.matmul multiplies them: in C's order or
    Fortran's, and with either order of bytes. Of integers the product is float64, with a warning. Copied are arrays
    whose elements follow each other neither along rows nor along columns: every other one, backwards, or unaligned.

    >>> a = np.arange(6.0).reshape(2, 3)
    >>> multiply(a, a, transpose_b=True, alpha=2).array
    array([[ 10.,  28.],
           [ 28., 100.]])
    >>> multiply("absent.h5", "b.h5", out="c.h5")
    Traceback (most recent call last):
    tessera.Error: cannot open 'absent.h5': No such file or directory; check the file's name
    """
    comm, handle = _communicator(comm), ctypes.c_void_p()
    if out is not None and not any(is_array(x) for x in (a, b, out, options.get("add"))):
        names = _names(a, b, out, options)
        call = _Call(comm, progress, options)
        call.make(lib.multiply, _context(comm), *names, ctypes.byref(call.options), ctypes.byref(handle))
        return _take_record(handle)
    product = Product(comm, a, b, out, options, _describe)
    for text in product.said if comm.rank == 0 else []:
        warnings.warn(text, stacklevel=2)
    call = _Call(comm, progress, product.options, product.c0)
    call.make(lib.multiply_matrices, _context(comm), *product.given, ctypes.byref(call.options), ctypes.byref(handle))
    product.finish()
    record = _take_record(handle)
    record.__dict__["array"] = product.shown
    return record


def _describe(comm: Any, a: Any, b: Any, options: dict[str, Any]) -> tuple[tuple[int, ...], str, int]:
    """What the library says C will be: sides with both of a matrix, type, and dimensions where vectors lack them."""
    c, dimensions = lib.Matrix(size=ctypes.sizeof(lib.Matrix)), ctypes.c_int()
    call = _Call(comm, None, options)
    call.make(lib.describe_product, _context(comm), a, b, ctypes.byref(call.options), ctypes.byref(c),
              ctypes.byref(dimensions))
    return (*c.stack[:c.stack_dimensions], c.rows, c.cols), c.type.decode(), dimensions.value


def _take_record(handle: ctypes.c_void_p) -> Record:
    if not handle:  # resume found C whole
        return Record()
    record = Record(json.loads(lib.record_json(handle)))
    lib.record_free(handle)
    return record


def _names(a: Any, b: Any, out: Any, options: dict[str, Any]) -> list[bytes | None]:
    if options.get("add") is not None:
        options["add"] = os.fsdecode(named(options["add"], "add"))
    return [None if x is None else named(x, which) for x, which in ((a, "a"), (b, "b"), (out, "out"))]


def plan(a: Matrix, b: Matrix | None, out: Matrix, *, comm: Any = None, **options: Any) -> str:
    """How `multiply` would run, as `tessera multiply --dry-run` prints it; "" on other ranks than 0."""
    comm = _communicator(comm)
    text = ctypes.c_void_p()
    if any(is_array(x) for x in (a, b, out, options.get("add"))):
        product = Product(comm, a, b, out, options, _describe)
        call = _Call(comm, None, product.options, product.c0)
        call.make(lib.plan_matrices, _context(comm), *product.given, ctypes.byref(call.options), ctypes.byref(text))
    else:
        names = _names(a, b, out, options)
        call = _Call(comm, None, options)
        call.make(lib.plan, _context(comm), *names, ctypes.byref(call.options), ctypes.byref(text))
    said = ctypes.string_at(text).decode() if text else ""
    if text:
        lib.free_text(text)
    return said
