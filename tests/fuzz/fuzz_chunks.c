/* Stored chunks: whatever their bytes, filters and values say, they decode to as much as fits, or are an error. And
 * what is encoded decodes to the same. */
#include "io/chunks/chunk_encode.h"
#include "tests/fuzz/fuzz.h"

/* Before the bytes of a chunk. */
typedef struct {
    uint8_t encodes, count;
    uint8_t filter[TSR_FILTERS_MAX], values[TSR_FILTERS_MAX];
    uint16_t chunk_bytes;
    uint32_t skipped;
    uint32_t value[TSR_FILTERS_MAX][TSR_FILTER_VALUES_MAX];
} header;

void fuzz_start(void) {}

static tsr_pipeline pipeline_of(const header *h) {
    tsr_pipeline p = {.count = h->count % (TSR_FILTERS_MAX + 1)};
    for (int f = 0; f < p.count; f++) {
        p.use[f].filter = h->filter[f] % tsr_filter_count();
        p.use[f].count = h->values[f];
        memcpy(p.use[f].values, h->value[f], sizeof p.use[f].values);
    }
    return p;
}

static void *copy_of(const void *from, size_t bytes, size_t room) {
    char *to = calloc(1, room + (room == 0));
    CHECK(to, "no memory");
    if (bytes > 0) memcpy(to, from, bytes);
    return to;
}

static void decode(const header *h, const uint8_t *data, size_t bytes) {
    const tsr_pipeline pipeline = pipeline_of(h);
    const size_t chunk = h->chunk_bytes, room = tsr_chunk_stored_max(chunk);
    for (int f = 0; f < pipeline.count; f++)
        if (!tsr_filter_decodes(&pipeline.use[f])) return;
    if (bytes > room) return;
    uint8_t *stored = copy_of(data, bytes, room);
    uint8_t *spare = copy_of(NULL, 0, room);
    uint8_t *to = copy_of(NULL, 0, chunk);
    const tsr_status status = tsr_chunk_decode(&pipeline, h->skipped, stored, bytes, spare, to, chunk);
    CHECK(status == TSR_OK || status == TSR_ERR_FORMAT || status == TSR_ERR_MEMORY, "%s", tsr_message());
    free(stored);
    free(spare);
    free(to);
}

/* The compression of that number, counted over all filters; NULL: there are fewer. */
static const tsr_compression *compression(int number) {
    for (int i = 0; i < tsr_filter_count(); i++)
        for (const tsr_compression *c = tsr_filter_at(i)->compressions; c && c->name; c++)
            if (tsr_filter_at(i)->apply && number-- == 0) return c;
    return NULL;
}

static int compressions(void) {
    int count = 0;
    while (compression(count)) count++;
    return count;
}

static tsr_pipeline chosen(const header *h, size_t bytes) {
    const tsr_compression *how = compression(h->filter[0] % compressions());
    const int levels = how->most - how->least + 1;
    const tsr_compress compress = {.how = how, .level = how->most == 0 ? 0 : how->least + h->values[0] % levels % 9};
    tsr_pipeline p = tsr_compress_pipeline(&compress, h->count & 1, 1 + h->values[1] % 16, bytes);
    if (h->count & 2) tsr_pipeline_add_checksum(&p);
    return p;
}

static void there_and_back(const header *h, const uint8_t *data, size_t bytes) {
    const size_t room = tsr_chunk_stored_max(bytes);
    const tsr_pipeline pipeline = chosen(h, bytes);
    uint8_t *one = copy_of(data, bytes, room);
    uint8_t *two = copy_of(NULL, 0, room);
    uint8_t *back = copy_of(NULL, 0, bytes);
    const uint8_t *stored;
    size_t stored_bytes;
    uint32_t skipped;
    CHECK_OK(tsr_chunk_encode(&pipeline, one, bytes, two, &stored, &stored_bytes, &skipped));
    uint8_t *again = copy_of(stored, stored_bytes, room);
    CHECK_OK(tsr_chunk_decode(&pipeline, skipped, again, stored_bytes, one, back, bytes));
    CHECK(bytes == 0 || memcmp(back, data, bytes) == 0, "%zu bytes came back changed", bytes);
    free(one);
    free(two);
    free(back);
    free(again);
}

/* A chunk as our own encoder stores it, by each way to compress. */
void fuzz_seeds(void) {
    enum { CHUNK = 600 };
    for (int i = 0; i < 4 * compressions(); i++) {
        header h = {.encodes = 0, .count = (uint8_t)(i % 4), .filter = {(uint8_t)(i / 4)}, .values = {3, 3}};
        uint8_t chunk[CHUNK + 2048], spare[CHUNK + 2048], seed[sizeof h + sizeof chunk];
        const uint8_t *stored;
        char name[32];
        size_t bytes;
        for (int at = 0; at < CHUNK; at++) chunk[at] = (uint8_t)(at % 4 ? at / 40 : at * 37);
        memcpy(seed + sizeof h, chunk, CHUNK);
        h.encodes = 1;
        memcpy(seed, &h, sizeof h);
        snprintf(name, sizeof name, "encode-%d", i);
        fuzz_seed(name, seed, sizeof h + CHUNK);
        const tsr_pipeline p = chosen(&h, CHUNK);
        CHECK_OK(tsr_chunk_encode(&p, chunk, CHUNK, spare, &stored, &bytes, &h.skipped));
        h.encodes = 0;
        h.count = (uint8_t)p.count;
        h.chunk_bytes = CHUNK;
        for (int f = 0; f < p.count; f++) {
            h.filter[f] = (uint8_t)p.use[f].filter;
            h.values[f] = (uint8_t)p.use[f].count;
            memcpy(h.value[f], p.use[f].values, sizeof h.value[f]);
        }
        memcpy(seed, &h, sizeof h);
        memcpy(seed + sizeof h, stored, bytes);
        snprintf(name, sizeof name, "decode-%d", i);
        fuzz_seed(name, seed, sizeof h + bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    header h;
    fuzz_bytes from = {data, bytes};
    fuzz_take(&from, &h, sizeof h);
    if (h.encodes & 1) there_and_back(&h, from.at, from.left);
    else decode(&h, from.at, from.left);
    return 0;
}
