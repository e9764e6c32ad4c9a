/* A build without zlib: this program brings the coders compiled without it, whatever the library around them has. */
#define _GNU_SOURCE /* nftw */
#include "io/chunk_encode.h"
#include "tests/io/chunked.h"

int main(void) {
    scratch_make();
    uint8_t bytes[2048] = {0}, spare[2048];
    const uint8_t *stored;
    size_t stored_bytes;
    uint32_t skipped;
    tsr_pipeline gzip = {1, {TSR_FILTER_DEFLATE}, 0};
    tsr_output_spec spec = chunked_spec("c.h5", "/C", 10, 10, 5, 5, PLAIN);
    CHECK(!tsr_have_deflate(), "this test was built with zlib");
    CHECK_FAILS(tsr_chunk_encode(&gzip, 1, bytes, 64, spare, &stored, &stored_bytes, &skipped), TSR_ERR_UNSUPPORTED, "zlib1g-dev");
    CHECK_OK(tsr_output_check(&spec, NULL));
    spec.gzip = true;
    CHECK_FAILS(tsr_output_check(&spec, NULL), TSR_ERR_UNSUPPORTED, "install zlib1g-dev and build again, or leave --compress out");
    scratch_remove();
    return 0;
}
