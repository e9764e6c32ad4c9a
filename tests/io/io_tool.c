/* Drives io/ from the command line for the tests in Python. Prints results as text, raw elements into files; an
 * error is one line "STATUS: message" on stderr and exit code 1.
 *   io_tool describe NAME                          key=value lines
 *   io_tool list FILE                              path TAB refusal
 *   io_tool read NAME MODE ROW COL ROWS COLS OUT   elements in this machine's order to OUT, prints mode and type
 *   io_tool deflate FILE                           whether this build decodes gzip itself: 1 or 0
 *   io_tool write NAME TYPE ROWS COLS MODE FORCE COMMAND   a generated integer matrix, two ranks' records, published */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/hdf5/store_hdf5.h"
#include "io/output/output.h"

static const char *const layouts[] = {"contiguous", "chunked", "compact", "virtual"};

static tsr_status describe(char **argv) {
    tsr_matrix_name name;
    tsr_store_desc d;
    TSR_TRY(tsr_matrix_name_parse(argv[2], &name));
    TSR_TRY(tsr_store_describe(NULL, &name, &d));
    printf("path=%s\nrows=%lld\ncols=%lld\nrow0=%lld\ncol0=%lld\ndataset_rows=%lld\ndataset_cols=%lld\n", d.name.path,
           (long long)d.rows, (long long)d.cols, (long long)d.row0, (long long)d.col0, (long long)d.dataset_rows,
           (long long)d.dataset_cols);
    printf("dtype=%s\nswapped=%d\nlayout=%s\nchunk=%lldx%lld\nfilters=%s\noffset=%lld\nstandard=%d\nmatlab_class=%"
           "s\ntype_name=%s\n",
           tsr_dtype_name(d.element.dtype), d.element.swapped, layouts[d.hdf5.layout], (long long)d.chunk_rows,
           (long long)d.chunk_cols, d.hdf5.filters, (long long)d.offset, d.hdf5.standard, d.hdf5.matlab_class,
           d.type_name);
    printf("raw_chunks=%d\n", d.hdf5.raw_chunks);
    return TSR_OK;
}

static void print_entry(void *context, const tsr_store_desc *desc, const char *path, const char *refused) {
    (void)context;
    (void)desc;
    printf("%s\t%s\n", path, refused ? refused : "");
}

static void swap(char *data, size_t elements, size_t bytes) {
    for (size_t i = 0; i < elements; i++)
        for (size_t b = 0; b < bytes / 2; b++) {
            char one = data[i * bytes + b];
            data[i * bytes + b] = data[(i + 1) * bytes - 1 - b];
            data[(i + 1) * bytes - 1 - b] = one;
        }
}

static tsr_status read_rect(char **argv) {
    tsr_matrix_name name;
    tsr_store_desc desc;
    tsr_io_mode mode;
    tsr_store *store;
    tsr_rect rect = {atoll(argv[4]), atoll(argv[5]), atoll(argv[6]), atoll(argv[7])};
    TSR_TRY(tsr_matrix_name_parse(argv[2], &name));
    TSR_TRY(tsr_io_mode_parse(argv[3], &mode));
    TSR_TRY(tsr_store_describe(NULL, &name, &desc));
    TSR_TRY(tsr_store_open(&desc, mode, NULL, &mode, &store));
    size_t bytes = tsr_dtype_bytes(store->desc.element.dtype), elements = (size_t)tsr_rect_elements(rect);
    char *data = malloc(elements * bytes + 1);
    tsr_status status = data ? store->ops->read(store, rect, data, rect.cols) : TSR_ERR_MEMORY;
    if (status == TSR_OK) {
        if (store->desc.element.swapped) swap(data, elements, bytes);
        FILE *to = fopen(argv[8], "wb");
        if (!to || fwrite(data, bytes, elements, to) != elements || fclose(to) != 0)
            status = tsr_fail(TSR_ERR_IO, "cannot write %s", argv[8]);
        printf("%s %s\n", tsr_io_mode_name(mode), tsr_dtype_name(store->desc.element.dtype));
    }
    free(data);
    tsr_store_close(store);
    return status;
}

static tsr_run_record sample_record(const char *command, tsr_rank_record *ranks) {
    for (int i = 0; i < 2; i++) {
        ranks[i] = (tsr_rank_record){
            .rank = i, .row = i, .tiles = 10 + i, .flops = 4e9, .kernel_seconds = 2, .wall_seconds = 4, .host = "nodé"};
        snprintf(ranks[i].device, sizeof ranks[i].device, "CPU #%d", i);
        ranks[i].lane_seconds[TSR_LANE_WRITE] = 0.5;
        ranks[i].lane_bytes[TSR_LANE_WRITE] = 1e9;
    }
    tsr_run_record run = {.command = command,
                          .started = "2026-01-02T03:04:05Z",
                          .alpha = 1,
                          .m = 3,
                          .n = 4,
                          .k = 5,
                          .grid = {2, 1, 1},
                          .ranks = 2,
                          .super_blocks = {1, 1},
                          .panel = 5,
                          .kernel = "blas",
                          .type = "f32",
                          .transport = "host",
                          .io = "direct",
                          .versions = "tessera " TSR_VERSION,
                          .seconds = 2.5,
                          .gflops = 1.25,
                          .check = "PASSED",
                          .rank_records = ranks};
    snprintf(run.a.name, sizeof run.a.name, "a.h5:/A");
    return run;
}

static tsr_status write_matrix(char **argv) {
    tsr_rank_record ranks[2];
    tsr_run_record record = sample_record(argv[8], ranks);
    tsr_output_spec spec = {.rows = atoll(argv[4]), .cols = atoll(argv[5]), .force = strcmp(argv[7], "force") == 0};
    tsr_output output;
    tsr_io_mode mode;
    tsr_store *store = NULL;
    TSR_TRY(tsr_matrix_name_parse(argv[2], &spec.name));
    TSR_TRY(tsr_dtype_parse(argv[3], &spec.dtype));
    TSR_TRY(tsr_io_mode_parse(argv[6], &mode));
    TSR_TRY(tsr_output_create(&spec, &output));
    void *data = malloc((size_t)(spec.rows * spec.cols) * tsr_dtype_bytes(spec.dtype) + 1);
    tsr_view view = {data, {spec.dtype, false}, spec.rows, spec.cols, spec.cols};
    tsr_status status = data ? tsr_fill_host(TSR_FILL_INTEGER, 3, 0, 0, view) : TSR_ERR_MEMORY;
    if (status == TSR_OK) status = tsr_output_open(&output, mode, NULL, &store);
    if (status == TSR_OK) status = store->ops->write(store, (tsr_rect){0, 0, spec.rows, spec.cols}, data, spec.cols);
    if (status == TSR_OK) status = store->ops->sync(store);
    tsr_store_close(store);
    free(data);
    if (status == TSR_OK) return tsr_output_publish(&output, &record, argv[8]);
    tsr_output_discard(&output);
    return status;
}

int main(int argc, char **argv) {
    const char *what = argc > 2 ? argv[1] : "";
    tsr_status status;
    if (strcmp(what, "describe") == 0 && argc == 3) status = describe(argv);
    else if (strcmp(what, "list") == 0 && argc == 3) status = tsr_hdf5_list(argv[2], "", print_entry, NULL);
    else if (strcmp(what, "read") == 0 && argc == 9) status = read_rect(argv);
    else if (strcmp(what, "deflate") == 0)
        status = printf("%d\n", tsr_filter_gzip.undo != NULL) > 0 ? TSR_OK : TSR_ERR_IO;
    else if (strcmp(what, "write") == 0 && argc == 9) status = write_matrix(argv);
    else status = tsr_fail(TSR_ERR_USAGE, "see the head of io_tool.c");
    if (status == TSR_OK) return 0;
    fprintf(stderr, "%s: %s\n", tsr_status_text(status), tsr_message());
    return 1;
}
