/* Loaded before the C library (LD_PRELOAD): lets the Nth call of one family of functions fail, once or from then on,
 * in one rank of one program, and counts the calls of all families. The environment chooses:
 *   TSR_FAULT_REPORT   file that receives the report of injector.h, written as the calls come
 *   TSR_FAULT_PROGRAM  name of the executable that is meant, such as tessera
 *   TSR_FAULT_RANK     its rank (OMPI_COMM_WORLD_RANK; 0 without a launcher)
 *   TSR_FAULT_FAMILY   number of the family in the list below; without it calls are counted and none fails
 *   TSR_FAULT_CALL     which call fails, from 1
 *   TSR_FAULT_STAYS    1: every later one, too
 *   TSR_FAULT_ERRNO    the error; 0: half of the bytes are read or written instead
 * Calls count from main() on: what libraries do before it, as the CUDA runtime that is linked into the program does
 * for each kernel, is not Tessera's to mend. Families marked `own` count only calls out of the executable itself,
 * not those of libraries. Calls out of MPI's libraries never count: when the segments it shares with other ranks
 * cannot be had, Open MPI 4 itself hangs or dies. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/faults/injector.h"

static const bool is_own[] = {
#define X(name, own) own,
    FAMILIES(X)
#undef X
};

static atomic_bool in_main;

static struct {
    atomic_int state; /* 0: not looked at, 1: another thread looks, 2: this process is not meant, 3: it is */
    int family, error;
    bool stays;
    uint64_t call;
    uintptr_t text[2]; /* the executable's own code */
    tsr_fault_report *to;
} the;

static int64_t number_of(const char *name, int64_t otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoll(text, NULL, 10) : otherwise;
}

static bool is_program(const char *wanted) {
    char path[4096];
    long chars = syscall(SYS_readlink, "/proc/self/exe", path, sizeof path - 1);
    if (chars <= 0 || !wanted) return false;
    path[chars] = '\0';
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, wanted) == 0;
}

/* Where the kernel put the executable, from its program headers: no lock of the loader is taken. */
static void find_text(void) {
    const ElfW(Phdr) *headers = (const void *)getauxval(AT_PHDR);
    const size_t count = getauxval(AT_PHNUM);
    uintptr_t base = 0;
    for (size_t i = 0; i < count; i++)
        if (headers[i].p_type == PT_PHDR) base = (uintptr_t)headers - headers[i].p_vaddr;
    for (size_t i = 0; i < count; i++)
        if (headers[i].p_type == PT_LOAD && headers[i].p_flags & PF_X) {
            the.text[0] = base + headers[i].p_vaddr;
            the.text[1] = the.text[0] + headers[i].p_memsz;
        }
}

static int look(void) {
    const char *file = getenv("TSR_FAULT_REPORT");
    if (!file || !is_program(getenv("TSR_FAULT_PROGRAM"))) return 2;
    if (number_of("OMPI_COMM_WORLD_RANK", 0) != number_of("TSR_FAULT_RANK", 0)) return 2;
    const long fd = syscall(SYS_openat, AT_FDCWD, file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || syscall(SYS_ftruncate, fd, (long)sizeof(tsr_fault_report)) != 0) return 2;
    const long at = syscall(SYS_mmap, NULL, sizeof(tsr_fault_report), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0L);
    syscall(SYS_close, fd);
    if (at < 0 && at > -4096) return 2;
    the.to = (tsr_fault_report *)at;
    the.family = (int)number_of("TSR_FAULT_FAMILY", -1);
    the.call = (uint64_t)number_of("TSR_FAULT_CALL", 1);
    the.stays = number_of("TSR_FAULT_STAYS", 0) != 0;
    the.error = (int)number_of("TSR_FAULT_ERRNO", EIO);
    find_text();
    return 3;
}

/* Calls while another thread looks pass. */
static bool is_meant(void) {
    if (!atomic_load(&in_main)) return false;
    int state = atomic_load(&the.state), unseen = 0;
    if (state >= 2) return state == 3;
    if (!atomic_compare_exchange_strong(&the.state, &unseen, 1)) return false;
    state = look();
    atomic_store(&the.state, state);
    return state == 3;
}

/* The file name of the executable or library that the address is in, and how far. */
static const char *find_object(uintptr_t address, size_t *offset) {
    Dl_info info = {0};
    if (dladdr((void *)address, &info) == 0 || !info.dli_fname) return "?";
    const char *slash = strrchr(info.dli_fname, '/');
    *offset = address - (uintptr_t)info.dli_fbase;
    return slash ? slash + 1 : info.dli_fname;
}

static bool is_of_mpi(uintptr_t caller) {
    static const char *const names[] = {"libmpi",   "libopen-", "mca_",   "libpmix", "libevent",
                                        "libprrte", "libhwloc", "libucs", "libucp",  "libfabric"};
    size_t offset = 0;
    const char *object = find_object(caller, &offset);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(object, names[i], strlen(names[i])) == 0) return true;
    return false;
}

static void note_first(const char *function, uintptr_t caller) {
    size_t offset = 0;
    const char *object = find_object(caller, &offset);
    snprintf(the.to->function, sizeof the.to->function, "%s", function);
    snprintf(the.to->caller, sizeof the.to->caller, "%s+0x%zx", object, offset);
}

bool tsr_fault_fails(int family, const char *function, const void *return_address) {
    const uintptr_t caller = (uintptr_t)return_address;
    if (!is_meant()) return false;
    const bool is_own_call = caller >= the.text[0] && caller < the.text[1];
    if (!is_own_call && (is_own[family] || is_of_mpi(caller))) return false;
    const uint64_t call = atomic_fetch_add(&the.to->calls[family], 1) + 1;
    if (family != the.family || (the.stays ? call < the.call : call != the.call)) return false;
    if (atomic_fetch_add(&the.to->fired, 1) == 0) note_first(function, caller);
    errno = the.error;
    return true;
}

/* ---- where counting begins ----------------------------------------------------------------
 * What the linker made the program's entry calls, with main(). */

typedef int (*main_function)(int, char **, char **);
static main_function main_of_program;

static int counted_main(int argc, char **argv, char **environment) {
    atomic_store(&in_main, true);
    return main_of_program(argc, argv, environment);
}

int __libc_start_main(main_function start, int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end) {
    NEXT(int, __libc_start_main, main_function, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    main_of_program = start;
    return next(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}

/* ---- files ----------------------------------------------------------------------------------- */

#define MODE_OF(flags, mode)                                                                                           \
    mode_t mode = 0;                                                                                                   \
    if ((flags)&O_CREAT || ((flags)&O_TMPFILE) == O_TMPFILE) {                                                         \
        va_list more;                                                                                                  \
        va_start(more, flags);                                                                                         \
        mode = va_arg(more, mode_t);                                                                                   \
        va_end(more);                                                                                                  \
    }
#define OPEN(name)                                                                                                     \
    int name(const char *file, int flags, ...) {                                                                       \
        NEXT(int, name, const char *, int, ...);                                                                       \
        MODE_OF(flags, mode)                                                                                           \
        return FAILS(open) ? -1 : next(file, flags, mode);                                                             \
    }
OPEN(open)
OPEN(open64)
#define OPENAT(name)                                                                                                   \
    int name(int folder, const char *file, int flags, ...) {                                                           \
        NEXT(int, name, int, const char *, int, ...);                                                                  \
        MODE_OF(flags, mode)                                                                                           \
        return FAILS(openat) ? -1 : next(folder, file, flags, mode);                                                   \
    }
OPENAT(openat)
OPENAT(openat64)

/* Functions of the C library that open inside. */
#define CALL1(type, failed, family, name, t1)                                                                          \
    type name(t1 a) {                                                                                                  \
        NEXT(type, name, t1);                                                                                          \
        return FAILS(family) ? failed : next(a);                                                                       \
    }
#define CALL2(type, failed, family, name, t1, t2)                                                                      \
    type name(t1 a, t2 b) {                                                                                            \
        NEXT(type, name, t1, t2);                                                                                      \
        return FAILS(family) ? failed : next(a, b);                                                                    \
    }
#define CALL3(type, failed, family, name, t1, t2, t3)                                                                  \
    type name(t1 a, t2 b, t3 c) {                                                                                      \
        NEXT(type, name, t1, t2, t3);                                                                                  \
        return FAILS(family) ? failed : next(a, b, c);                                                                 \
    }
#define CALL4(type, failed, family, name, t1, t2, t3, t4)                                                              \
    type name(t1 a, t2 b, t3 c, t4 d) {                                                                                \
        NEXT(type, name, t1, t2, t3, t4);                                                                              \
        return FAILS(family) ? failed : next(a, b, c, d);                                                              \
    }
#define CALL5(type, failed, family, name, t1, t2, t3, t4, t5)                                                          \
    type name(t1 a, t2 b, t3 c, t4 d, t5 e) {                                                                          \
        NEXT(type, name, t1, t2, t3, t4, t5);                                                                          \
        return FAILS(family) ? failed : next(a, b, c, d, e);                                                           \
    }
#define CALL6(type, failed, family, name, t1, t2, t3, t4, t5, t6)                                                      \
    type name(t1 a, t2 b, t3 c, t4 d, t5 e, t6 f) {                                                                    \
        NEXT(type, name, t1, t2, t3, t4, t5, t6);                                                                      \
        return FAILS(family) ? failed : next(a, b, c, d, e, f);                                                        \
    }
CALL2(FILE *, NULL, open, fopen, const char *, const char *)
CALL2(FILE *, NULL, open, fopen64, const char *, const char *)
CALL1(DIR *, NULL, open, opendir, const char *)
CALL1(int, -1, open, mkstemp, char *)
CALL2(int, -1, open, mkostemp, char *, int)
CALL3(int, -1, open, mkostemps, char *, int, int)

#define TRANSFER(name, family, buffer)                                                                                 \
    ssize_t name(int fd, buffer at, size_t bytes, off_t offset) {                                                      \
        NEXT(ssize_t, name, int, buffer, size_t, off_t);                                                               \
        if (FAILS(family)) {                                                                                           \
            if (the.error) return -1;                                                                                  \
            bytes -= bytes / 2;                                                                                        \
        }                                                                                                              \
        return next(fd, at, bytes, offset);                                                                            \
    }
TRANSFER(pread, pread, void *)
TRANSFER(pread64, pread, void *)
TRANSFER(pwrite, pwrite, const void *)
TRANSFER(pwrite64, pwrite, const void *)

CALL2(int, -1, ftruncate, ftruncate, int, off_t)
CALL2(int, -1, ftruncate, ftruncate64, int, off64_t)
CALL4(int, -1, fallocate, fallocate, int, int, off_t, off_t)
CALL4(int, -1, fallocate, fallocate64, int, int, off64_t, off64_t)
CALL3(int, the.error, fallocate, posix_fallocate, int, off_t, off_t)
CALL3(int, the.error, fallocate, posix_fallocate64, int, off64_t, off64_t)
CALL1(int, -1, fsync, fsync, int)
CALL1(int, -1, fsync, fdatasync, int)
CALL2(int, -1, rename, rename, const char *, const char *)
CALL4(int, -1, rename, renameat, int, const char *, int, const char *)
CALL5(int, -1, rename, renameat2, int, const char *, int, const char *, unsigned)
CALL1(int, -1, unlink, unlink, const char *)
CALL3(int, -1, unlink, unlinkat, int, const char *, int)
CALL2(int, -1, stat, stat, const char *, struct stat *)
CALL2(int, -1, stat, stat64, const char *, struct stat64 *)
CALL2(int, -1, stat, fstat, int, struct stat *)
CALL2(int, -1, stat, fstat64, int, struct stat64 *)
CALL2(int, -1, stat, lstat, const char *, struct stat *)
CALL2(int, -1, stat, lstat64, const char *, struct stat64 *)
CALL4(int, -1, stat, fstatat, int, const char *, struct stat *, int)
CALL4(int, -1, stat, fstatat64, int, const char *, struct stat64 *, int)
CALL5(int, -1, stat, statx, int, const char *, int, unsigned, struct statx *)

/* ---- memory and threads ---------------------------------------------------------------------- */

CALL6(void *, MAP_FAILED, mmap, mmap, void *, size_t, int, int, int, off_t)
CALL6(void *, MAP_FAILED, mmap, mmap64, void *, size_t, int, int, int, off64_t)

/* dlsym allocates: these have names of their own in the C library. */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);
void *malloc(size_t bytes) { return FAILS(malloc) ? NULL : __libc_malloc(bytes); }
void *calloc(size_t count, size_t bytes) { return FAILS(malloc) ? NULL : __libc_calloc(count, bytes); }
void *realloc(void *old, size_t bytes) { return FAILS(malloc) ? NULL : __libc_realloc(old, bytes); }
void *aligned_alloc(size_t alignment, size_t bytes) { return FAILS(malloc) ? NULL : __libc_memalign(alignment, bytes); }
CALL1(char *, NULL, malloc, strdup, const char *)
CALL2(char *, NULL, malloc, strndup, const char *, size_t)
CALL3(int, the.error, posix_memalign, posix_memalign, void **, size_t, size_t)
typedef void *(*thread_main)(void *);
CALL4(int, the.error, pthread_create, pthread_create, pthread_t *, const pthread_attr_t *, thread_main, void *)

/* ---- HDF5: herr_t is int, hid_t is int64_t --------------------------------------------------- */

CALL6(int, -1, h5_write, H5Dwrite, int64_t, int64_t, int64_t, int64_t, int64_t, const void *)
CALL6(int, -1, h5_write, H5Dwrite_chunk, int64_t, int64_t, uint32_t, const uint64_t *, size_t, const void *)
CALL3(int, -1, h5_write, H5Awrite, int64_t, int64_t, const void *)
CALL1(int, -1, h5_close, H5Fclose, int64_t)
CALL1(int, -1, h5_close, H5Dclose, int64_t)
CALL1(int, -1, h5_close, H5Aclose, int64_t)
CALL1(int, -1, h5_close, H5Gclose, int64_t)
CALL1(int, -1, h5_close, H5Oclose, int64_t)
CALL1(int, -1, h5_close, H5Sclose, int64_t)
CALL1(int, -1, h5_close, H5Tclose, int64_t)
CALL1(int, -1, h5_close, H5Pclose, int64_t)
