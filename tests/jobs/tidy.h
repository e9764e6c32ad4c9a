/* Read before each source that clang-tidy looks at, which sees one file at a time: a failure stays one. */
#include "kernels/base/base.h"
__attribute__((format(printf, 1, 2))) static inline void tsr_tidy_use(const char *format, ...) { (void)format; }
#define tsr_fail(status, ...) (tsr_tidy_use(__VA_ARGS__), (status))
#if __has_include(<mpi.h>)
#include "mpi/ranks/world.h"
#define tsr_agree(comm, status) ((void)(comm), (status))
#define tsr_share_message(comm, status) ((void)(comm), (status))
#endif
