"""The version of the package, which is that of Tessera (kernels/base/base.h)."""
VERSION = "0.2.0"
