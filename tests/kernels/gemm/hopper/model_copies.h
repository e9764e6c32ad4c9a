/* Part of model.h: tensor maps as the driver makes them, and copies that go on beside the threads: TMA and cp.async. */
#ifndef TSR_TESTS_KERNELS_GEMM_HOPPER_MODEL_COPIES_H
#define TSR_TESTS_KERNELS_GEMM_HOPPER_MODEL_COPIES_H

#include <vector>

#include "tests/kernels/gemm/hopper/model_barriers.h"

/* ---- what tensor_map.c wants of the driver --------------------------------------------------- */

typedef uint64_t cuuint64_t;
typedef uint32_t cuuint32_t;
typedef enum { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 } CUresult;
typedef enum {
    CU_TENSOR_MAP_DATA_TYPE_UINT8,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
    CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
    CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
} CUtensorMapDataType;
typedef enum {
    CU_TENSOR_MAP_SWIZZLE_NONE,
    CU_TENSOR_MAP_SWIZZLE_32B,
    CU_TENSOR_MAP_SWIZZLE_64B,
    CU_TENSOR_MAP_SWIZZLE_128B
} CUtensorMapSwizzle;
typedef enum { CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B } CUtensorMapL2promotion;
typedef enum { CU_TENSOR_MAP_INTERLEAVE_NONE } CUtensorMapInterleave;
typedef enum { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE } CUtensorMapFloatOOBfill;
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };
enum { cudaEnableDefault };

struct CUtensorMap {
    unsigned char *data;
    int64_t rows, cols, row_bytes;
    int bytes, box_rows, box_cols; /* bytes: of an element */
    int swizzle;                   /* span in bytes; 0: none */
    bool rounds;                   /* fp32 to tf32 */
};
typedef CUresult (*PFN_cuTensorMapEncodeTiled_v12000)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *,
                                                      const cuuint64_t *, const cuuint64_t *, const cuuint32_t *,
                                                      const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                                      CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

namespace hopper_model {

/* As the driver, which refuses what TMA cannot reach. */
inline CUresult encode(CUtensorMap *map, CUtensorMapDataType type, cuuint32_t rank, void *data,
                       const cuuint64_t *extent, const cuuint64_t *row_bytes, const cuuint32_t *box,
                       const cuuint32_t *step, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                       CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
    const int bytes = type == CU_TENSOR_MAP_DATA_TYPE_FLOAT64                                               ? 8
                      : type == CU_TENSOR_MAP_DATA_TYPE_FLOAT32 || type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 ? 4
                      : type == CU_TENSOR_MAP_DATA_TYPE_UINT8                                               ? 1
                                                                                                            : 2;
    const int span = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 0 : 16 << swizzle;
    if (rank != 2 || (uintptr_t)data % 16 != 0 || row_bytes[0] % 16 != 0 || row_bytes[0] >> 40 != 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < 2; i++)
        if (extent[i] == 0 || extent[i] > (uint64_t)1 << 32 || box[i] == 0 || box[i] > 256 || step[i] != 1)
            return CUDA_ERROR_INVALID_VALUE;
    if (box[0] * bytes % 16 != 0 || (span > 0 && (int)box[0] * bytes > span)) return CUDA_ERROR_INVALID_VALUE;
    *map = {static_cast<unsigned char *>(data),
            (int64_t)extent[1],
            (int64_t)extent[0],
            (int64_t)row_bytes[0],
            bytes,
            (int)box[1],
            (int)box[0],
            span,
            type == CU_TENSOR_MAP_DATA_TYPE_TFLOAT32};
    return CUDA_SUCCESS;
}

/* Addresses with swizzles over `span` bytes: 16-byte units change places with the number of their 128 bytes. */
inline uint32_t swizzled(uint32_t address, int span) {
    return address ^ ((address >> 7 & (uint32_t)(span < 32 ? 0 : span / 16 - 1)) << 4);
}

/* ---- what is under way ----------------------------------------------------------------------- */

struct AsyncCopy { /* cp.async of a thread */
    uint32_t to;
    const void *from; /* NULL: zeros */
    int bytes;
};

struct Copy {
    enum Kind { BOX, BULK, STORE, ASYNC } kind;
    int rank, thread; /* whose shared memory, and who asked */
    uint32_t at, mbarrier;
    CUtensorMap map; /* BOX, STORE */
    int row, col;
    const void *from; /* BULK */
    uint32_t bytes;
    int group;                    /* STORE: of the thread's groups */
    std::vector<AsyncCopy> async; /* ASYNC: what must be there before the arrival */
};
inline std::vector<Copy> copies;

struct CopyingThread {
    int group;                                  /* of stores, the present one */
    std::vector<AsyncCopy> async;               /* not tied to an mbarrier yet */
    std::vector<std::vector<AsyncCopy>> groups; /* committed ones, and the one that is open */
};
inline CopyingThread copying[MOST_BLOCKS_CLUSTER][MOST_THREADS];
inline CopyingThread *copying_thread() { return &copying[tsr_emulation_rank()][tsr_emulation_thread()]; }

inline void begin_copies() {
    copies.clear();
    for (auto &block : copying)
        for (auto &thread : block)
            if (thread.group > 0 || !thread.async.empty() || !thread.groups.empty()) thread = {};
}
inline size_t copies_under_way() { return copies.size(); }

/* fp32 rounded to tf32, to nearest even; NaN and infinities stay. */
inline uint32_t rounded_to_tf32(uint32_t bits) {
    if ((bits & 0x7f800000) == 0x7f800000) return bits;
    return (bits + 0xfff + (bits >> 13 & 1)) & 0xffffe000;
}

/* A row of a box as it comes out of global memory, zeros outside of the matrix. */
inline void load_row(const CUtensorMap &map, int64_t row, int64_t col, unsigned char *to) {
    const int64_t left = row >= 0 && row < map.rows ? map.cols - col : 0;
    const int64_t inside = left <= 0 ? 0 : left < map.box_cols ? left : map.box_cols;
    memset(to, 0, (size_t)(map.box_cols * map.bytes));
    if (inside > 0) memcpy(to, map.data + row * map.row_bytes + col * map.bytes, (size_t)(inside * map.bytes));
    for (int64_t i = 0; map.rounds && i < inside; i++) {
        uint32_t bits;
        memcpy(&bits, to + i * 4, 4);
        bits = rounded_to_tf32(bits);
        memcpy(to + i * 4, &bits, 4);
    }
}
inline void store_row(const CUtensorMap &map, int64_t row, int64_t col, const unsigned char *from) {
    /* 16 bytes at a time, also where the matrix ends between: a kernel must not ask for that */
    const int64_t left = row < map.rows ? tsr_round_up(map.cols * map.bytes, 16) - col * map.bytes : 0;
    const int64_t all = map.box_cols * map.bytes, bytes = left < all ? left : all;
    if (bytes > 0) memcpy(map.data + row * map.row_bytes + col * map.bytes, from, (size_t)bytes);
}

/* A box between global and shared memory, where it stands row after row, swizzled. */
inline void move_box(const Copy &copy) {
    unsigned char row[2048];
    const int row_bytes = copy.map.box_cols * copy.map.bytes;
    for (int r = 0; r < copy.map.box_rows; r++) {
        if (copy.kind == Copy::BOX) load_row(copy.map, copy.row + r, copy.col, row);
        for (int unit = 0; unit < row_bytes; unit += 16) {
            const uint32_t address = copy.at + (uint32_t)(r * row_bytes + unit);
            unsigned char *at = place(copy.rank, swizzled(address, copy.map.swizzle), 16);
            if (copy.kind == Copy::BOX) memcpy(at, row + unit, 16);
            else memcpy(row + unit, at, 16);
        }
        if (copy.kind == Copy::STORE) store_row(copy.map, copy.row + r, copy.col, row);
    }
}
inline void move_async(int rank, const std::vector<AsyncCopy> &async) {
    for (const AsyncCopy &a : async) {
        unsigned char *to = place(rank, a.to, (size_t)a.bytes);
        if (a.from) memcpy(to, a.from, (size_t)a.bytes);
        else memset(to, 0, (size_t)a.bytes);
    }
}

inline void carry_out_copy(size_t which) {
    const Copy &copy = copies[which];
    if (tsr_emulation_running(copy.rank) == 0) tsr_emulation_complain("a copy goes on when its block has ended");
    if (copy.kind == Copy::BULK) memcpy(place(copy.rank, copy.at, copy.bytes), copy.from, copy.bytes);
    else if (copy.kind == Copy::ASYNC) move_async(copy.rank, copy.async);
    else move_box(copy);
    if (copy.kind == Copy::ASYNC) arrive(mbarrier(copy.rank, copy.mbarrier));
    if (copy.kind == Copy::BOX || copy.kind == Copy::BULK) {
        Mbarrier *barrier = mbarrier(copy.rank, copy.mbarrier);
        expect(barrier, -(int64_t)copy.bytes);
        advance(barrier);
    }
    if (copy.kind == Copy::STORE || copy.kind == Copy::ASYNC) tsr_emulation_wake(&copying[copy.rank][copy.thread]);
    if (which + 1 < copies.size()) copies[which] = std::move(copies.back());
    copies.pop_back();
}

inline void start(Copy copy) {
    if (copy.kind == Copy::BOX || copy.kind == Copy::BULK)
        memset(place(copy.rank, copy.at, copy.bytes), 0xff, copy.bytes); /* NaN until the bytes come */
    copies.push_back(std::move(copy));
}
/* A box that the calling thread asks for, into shared memory of block `rank` or out of it. */
inline void start_box(Copy::Kind kind, int rank, uint32_t at, const void *map, int row, int col, uint32_t mbarrier) {
    Copy copy = {kind, rank, tsr_emulation_thread(), at, mbarrier, {}, row, col, nullptr, 0, 0, {}};
    copy.map = *static_cast<const CUtensorMap *>(map);
    copy.bytes = (uint32_t)(copy.map.box_rows * copy.map.box_cols * copy.map.bytes);
    copy.group = copying_thread()->group;
    if (at % 128 != 0 || (copy.map.swizzle == 128 && at % 1024 != 0))
        tsr_emulation_complain("a box at address %u with a swizzle of %d", at, copy.map.swizzle);
    start(std::move(copy));
}
inline bool copies_of(const CopyingThread *thread, Copy::Kind kind, int last_group) {
    for (const Copy &copy : copies)
        if (copy.kind == kind && &copying[copy.rank][copy.thread] == thread && copy.group <= last_group) return true;
    return false;
}

} // namespace hopper_model

static inline cudaError_t cudaGetDriverEntryPointByVersion(const char *, void **function, unsigned, int,
                                                           cudaDriverEntryPointQueryResult *found) {
    *function = reinterpret_cast<void *>(hopper_model::encode);
    *found = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}

/* ---- the instructions ------------------------------------------------------------------------ */

namespace hopper {

template <int BYTES> void copy_async(uint32_t to, const void *from, bool inside) {
    memset(hopper_model::place(tsr_emulation_rank(), to, BYTES), 0xff, BYTES);
    hopper_model::copying_thread()->async.push_back({to, inside ? from : nullptr, BYTES});
}
inline void copies_arrive(uint64_t *barrier) {
    hopper_model::Copy copy = {hopper_model::Copy::ASYNC,
                               tsr_emulation_rank(),
                               tsr_emulation_thread(),
                               0,
                               shared_address(barrier),
                               {},
                               0,
                               0,
                               nullptr,
                               0,
                               0,
                               {}};
    copy.async.swap(hopper_model::copying_thread()->async);
    hopper_model::start(std::move(copy));
    tsr_emulation_pause();
}
inline void copies_wait() {
    hopper_model::CopyingThread *own = hopper_model::copying_thread();
    hopper_model::move_async(tsr_emulation_rank(), own->async);
    own->async.clear();
    while (hopper_model::copies_of(own, hopper_model::Copy::ASYNC, 0)) tsr_emulation_wait(own, "its copies");
}
/* Copies in groups are carried out as late as can be: when they are waited for. */
inline void copy_async_16(uint32_t to, const void *from, bool inside) {
    hopper_model::CopyingThread *own = hopper_model::copying_thread();
    if (to % 16 != 0 || (uintptr_t)from % 16 != 0) tsr_emulation_complain("16 bytes to address %u", to);
    memset(hopper_model::place(tsr_emulation_rank(), to, 16), 0xff, 16);
    if (own->groups.empty()) own->groups.emplace_back();
    own->groups.back().push_back({to, inside ? from : nullptr, 16});
}
inline void copies_commit() {
    hopper_model::CopyingThread *own = hopper_model::copying_thread();
    if (own->groups.empty()) own->groups.emplace_back();
    own->groups.emplace_back();
}
template <int PENDING> void copies_wait_group() {
    hopper_model::CopyingThread *own = hopper_model::copying_thread();
    while (own->groups.size() > PENDING + 1) {
        hopper_model::move_async(tsr_emulation_rank(), own->groups.front());
        own->groups.erase(own->groups.begin());
    }
    tsr_emulation_pause();
}
inline void copy_bulk(void *to, const void *from, uint32_t bytes, uint64_t *barrier) {
    const uint32_t at = shared_address(to);
    if (at % 16 != 0 || (uintptr_t)from % 16 != 0 || bytes % 16 != 0)
        tsr_emulation_complain("a bulk copy of %u bytes to address %u", bytes, at);
    hopper_model::start({hopper_model::Copy::BULK,
                         tsr_emulation_rank(),
                         tsr_emulation_thread(),
                         at,
                         shared_address(barrier),
                         {},
                         0,
                         0,
                         from,
                         bytes,
                         0,
                         {}});
    tsr_emulation_pause();
}
inline void copy_tensor(void *to, const void *map, int row, int col, uint64_t *barrier) {
    hopper_model::start_box(hopper_model::Copy::BOX, tsr_emulation_rank(), shared_address(to), map, row, col,
                            shared_address(barrier));
    tsr_emulation_pause();
}
inline void copy_tensor_keep(void *to, const void *map, int row, int col, uint64_t *barrier, uint64_t) {
    copy_tensor(to, map, row, col, barrier);
}
inline void copy_tensor_to(uint16_t blocks, void *to, const void *map, int row, int col, uint64_t *barrier) {
    if (blocks >> hopper_model::blocks_cluster != 0) tsr_emulation_complain("a copy to blocks %x of a cluster", blocks);
    for (int rank = 0; rank < hopper_model::blocks_cluster; rank++)
        if (blocks >> rank & 1)
            hopper_model::start_box(hopper_model::Copy::BOX, rank, shared_address(to), map, row, col,
                                    shared_address(barrier));
    tsr_emulation_pause();
}
inline void prefetch_map(const void *) {}
inline void prefetch_tensor(const void *, int, int) {}
inline uint64_t evict_first() { return 0; }
inline uint64_t evict_last() { return 0; }

inline void store_tensor(const void *map, int row, int col, const void *from, uint64_t) {
    hopper_model::start_box(hopper_model::Copy::STORE, tsr_emulation_rank(), shared_address(from), map, row, col, 0);
    tsr_emulation_pause();
}
inline void store_commit() { hopper_model::copying_thread()->group++; }
template <int PENDING> void store_wait() {
    hopper_model::CopyingThread *own = hopper_model::copying_thread();
    while (hopper_model::copies_of(own, hopper_model::Copy::STORE, own->group - 1 - PENDING))
        tsr_emulation_wait(own, "its stores");
}
inline void fence_copies() {}

} // namespace hopper

#endif
