# UNTESTED example: a Spack recipe. Copy it to packages/tessera/package.py of a Spack repository of your own.
from spack.package import CMakePackage, CudaPackage, depends_on, license, variant, version


class Tessera(CMakePackage, CudaPackage):
    """Products of large matrices that lie in HDF5 files, on many GPUs."""

    # Where your copy of the repository is; a recipe for everybody names a release and its checksum.
    git = "file:///path/to/tessera"

    license("MIT")
    version("main", branch="main")
    version("0.2.0", tag="v0.2.0")

    variant("filters", default=True, description="Read and write compressed chunks")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.18:", type="build")
    depends_on("help2man", type="build")
    depends_on("mpi")
    depends_on("hdf5@1.10.3:+hl+mpi")
    depends_on("openblas threads=pthreads")
    depends_on("nccl", when="+cuda")
    for library in ("zlib-api", "libdeflate", "zstd", "lz4", "bzip2", "c-blosc"):
        depends_on(library, when="+filters")

    def cmake_args(self):
        """The architectures as TSR_CUDA_ARCHITECTURES wants them."""
        names = [("90a" if arch == "90" else arch) + "-real" for arch in self.spec.variants.get("cuda_arch", ())
                 if arch != "none"] if self.spec.satisfies("+cuda") else []
        return [
            self.define_from_variant("TSR_CUDA", "cuda"),
            self.define("TSR_CUDA_ARCHITECTURES", ";".join(names)),
            self.define("BUILD_TESTING", False),
        ]
