"""libtessera by ctypes: its functions and structs, as app/library/tessera.h has them."""
import ctypes
import ctypes.util
import os
import sys
from ctypes import CFUNCTYPE, POINTER, Structure, c_char_p, c_double, c_int, c_int64, c_size_t, c_void_p


class Progress(Structure):
    _fields_ = [("size", c_size_t), ("stage", c_char_p), ("done", c_double), ("total", c_double), ("unit", c_char_p),
                ("seconds", c_double)]


PROGRESS_CALL = CFUNCTYPE(c_int, c_void_p, POINTER(Progress))


class Matrix(Structure):
    _fields_ = [
        ("size", c_size_t), ("type", c_char_p), ("data", c_void_p), ("rows", c_int64), ("cols", c_int64),
        ("ld", c_int64), ("block_rows", c_int64), ("block_cols", c_int64), ("part_row", c_int64),
        ("part_col", c_int64), ("part_rows", c_int64), ("part_cols", c_int64), ("grid_rows", c_int),
        ("grid_cols", c_int), ("first_row", c_int), ("first_col", c_int), ("ranks_by_columns", c_int),
        ("shared", c_int), ("stack_dimensions", c_int), ("stack", POINTER(c_int64)), ("name", c_char_p),
        ("vector", c_int),
    ]


class Options(Structure):
    _fields_ = [
        ("size", c_size_t), ("alpha", c_double * 2), ("beta", c_double * 2),
        ("add", c_char_p), ("type", c_char_p), ("order", c_char_p), ("triangle", c_char_p),
        ("has_beta", c_int), ("transpose_a", c_int), ("transpose_b", c_int), ("conjugate_a", c_int),
        ("conjugate_b", c_int), ("gram", c_int), ("real_part", c_int),
        ("force", c_int), ("attributes", c_int), ("shuffle", c_int), ("chunk", c_char_p), ("compress", c_char_p),
        ("device", c_char_p), ("kernel", c_char_p), ("accuracy", c_char_p), ("transport", c_char_p),
        ("schedule", c_char_p), ("grid", c_char_p), ("panel", c_int64), ("memory", c_char_p), ("host_memory", c_char_p),
        ("threads", c_int), ("io_threads", c_int), ("io", c_char_p), ("external", c_char_p),
        ("trials", c_int), ("has_stall", c_int), ("stall_seconds", c_double), ("log", c_char_p), ("trace", c_char_p),
        ("command", c_char_p), ("progress", PROGRESS_CALL), ("progress_context", c_void_p), ("report", c_char_p),
        ("resume", c_int), ("check", c_char_p), ("checksum", c_int), ("digest", c_int), ("healthy", c_int),
        ("reproducible", c_int), ("add_matrix", POINTER(Matrix)),
    ]


def _candidates():
    if os.environ.get("TESSERA_LIBRARY"):
        return [os.environ["TESSERA_LIBRARY"]]
    found = ctypes.util.find_library("tessera")
    return [os.path.join(sys.prefix, "lib", "libtessera.so.0"), *([found] if found else []), "libtessera.so.0"]


def _load():
    said = []
    for name in _candidates():
        try:
            return name, ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            said.append(str(error))
    raise ImportError("libtessera is not found: install it, or say in TESSERA_LIBRARY where it is: " + "; ".join(said))


PATH, library = _load()


def _declare(name, result, *arguments):
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


version = _declare("tessera_version", c_char_p)
status_text = _declare("tessera_status_text", c_char_p, c_int)
message = _declare("tessera_message", c_char_p)
open_context = _declare("tessera_open_fortran", c_int, c_int, c_void_p, POINTER(c_void_p))
close_context = _declare("tessera_close", None, c_void_p)
multiply = _declare("tessera_multiply", c_int, c_void_p, c_char_p, c_char_p, c_char_p, POINTER(Options),
                    POINTER(c_void_p))
multiply_matrices = _declare("tessera_multiply_matrices", c_int, c_void_p, POINTER(Matrix), POINTER(Matrix),
                             POINTER(Matrix), POINTER(Options), POINTER(c_void_p))
plan = _declare("tessera_plan", c_int, c_void_p, c_char_p, c_char_p, c_char_p, POINTER(Options), POINTER(c_void_p))
plan_matrices = _declare("tessera_plan_matrices", c_int, c_void_p, POINTER(Matrix), POINTER(Matrix), POINTER(Matrix),
                         POINTER(Options), POINTER(c_void_p))
describe_product = _declare("tessera_describe_product", c_int, c_void_p, POINTER(Matrix), POINTER(Matrix),
                            POINTER(Options), POINTER(Matrix), POINTER(c_int))
allocate = _declare("tessera_allocate", c_int, c_void_p, c_size_t, POINTER(c_void_p))
release = _declare("tessera_release", None, c_void_p, c_void_p)
trim = _declare("tessera_trim", None, c_void_p)
free_text = _declare("tessera_free", None, c_void_p)
record_json = _declare("tessera_record_json", c_char_p, c_void_p)
record_free = _declare("tessera_record_free", None, c_void_p)

ERR_SHAPE = 6


class Error(RuntimeError):
    """What libtessera says of a failure; `status` is its number there, `kind` what the number means."""

    def __init__(self, status, text):
        self.status = status
        self.kind = status_text(status).decode()
        super().__init__(text or self.kind)


Error.__module__ = "tessera"
