/* A build without any library of a codec: this program brings the filters compiled without them, whatever the library
 * around them has. */
#define _GNU_SOURCE /* nftw */
#include "io/chunks/chunk_encode.h"
#include "io/chunks/chunk_guard.h"
#include "tests/io/chunks/chunked.h"

/* What needs no zlib to see is seen: a compressor before another may make any size of what the last one gives. */
static void check_guard(void) {
    const tsr_store_desc desc = {.name = {.file = "g.h5", .path = "/A"},
                                 .dataset_rows = 4,
                                 .dataset_cols = 4,
                                 .chunk_rows = 4,
                                 .chunk_cols = 4,
                                 .hdf5.filters = "gzip(1) gzip(1)"};
    const hsize_t sides[2] = {4, 4};
    tsr_chunk_guard guard;
    for (int filters = 1; filters <= 2; filters++) {
        hid_t file = H5Fcreate(in_scratch("g.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
        hid_t space = H5Screate_simple(2, sides, NULL), properties = H5Pcreate(H5P_DATASET_CREATE);
        CHECK(H5Pset_chunk(properties, 2, sides) >= 0, "chunks");
        for (int f = 0; f < filters; f++) CHECK(H5Pset_deflate(properties, 1) >= 0, "deflate");
        hid_t set = H5Dcreate2(file, "A", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, properties, H5P_DEFAULT);
        CHECK(set >= 0, "no dataset");
        if (filters == 1) CHECK_OK(tsr_chunk_guard_open(set, &desc, &guard));
        else CHECK_FAILS(tsr_chunk_guard_open(set, &desc, &guard), TSR_ERR_UNSUPPORTED, "h5repack");
        CHECK(filters == 2 || !guard.last, "deflate is looked into without zlib");
        H5Dclose(set);
        H5Pclose(properties);
        H5Sclose(space);
        H5Fclose(file);
    }
}

int main(void) {
    scratch_make();
    uint8_t bytes[2048] = {0}, spare[2048];
    const uint8_t *stored;
    size_t stored_bytes;
    uint32_t skipped;
    tsr_compress gzip;
    tsr_output_spec spec = chunked_spec("c.h5", "/C", 10, 10, 5, 5, PLAIN);
    CHECK(!tsr_filter_gzip.undo, "this test was built with zlib");
    CHECK_OK(tsr_compress_parse("--compress", "gzip:1", &gzip));
    check_guard();
    for (int i = 0; i < tsr_filter_count(); i++)
        for (const tsr_compression *c = tsr_filter_at(i)->compressions; c && c->name; c++) {
            const tsr_compress how = {.how = c, .level = c->usual};
            const tsr_pipeline pipeline = tsr_compress_pipeline(&how, false, 4, 64);
            const char *package = tsr_filter_at(i)->package;
            CHECK_FAILS(tsr_chunk_encode(&pipeline, bytes, 64, spare, &stored, &stored_bytes, &skipped),
                        TSR_ERR_UNSUPPORTED, package);
            CHECK_FAILS(tsr_compress_check(&how), TSR_ERR_UNSUPPORTED, package);
            CHECK(!tsr_filter_decodes(&pipeline.use[0]), "%s is decoded", c->name);
            if (tsr_filter_at(i)->undo) continue; /* bitshuffle without compression */
            CHECK_FAILS(tsr_chunk_decode(&pipeline, 0, bytes, 64, spare, bytes, 64), TSR_ERR_UNSUPPORTED, package);
        }
    CHECK_OK(tsr_output_check(&spec, NULL));
    spec.compress = gzip;
    CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_UNSUPPORTED,
                "install zlib1g-dev and build again, or leave --compress out");
    scratch_remove();
    return 0;
}
