/* Records and logs as JSON: read, written again, and read again. */
#include "io/record/record_read.h"
#include "io/text/json_read.h"
#include "tests/fuzz/fuzz.h"

void fuzz_start(void) {}

void fuzz_seeds(void) {
    static const char record[] =
        "{\"program\": \"tessera\", \"version\": \"0.2.0\", \"status\": \"done\", \"command\": \"tessera multiply\",\n"
        " \"m\": 24, \"n\": 20, \"k\": 1e2, \"kernel\": \"blas\", \"seconds\": {\"total\": 1.5, \"read\": 0.25},\n"
        " \"warnings\": [\"one\", \"two \\u00e9\\n\"], \"check\": null, \"deterministic\": true,\n"
        " \"ranks\": [{\"rank\": 0, \"host\": \"a\", \"read_seconds\": 0.5, \"read_bytes\": 1000},"
        " {\"rank\": 1, \"host\": \"b\", \"read_seconds\": -1.5E-3, \"read_bytes\": 9007199254740993}]}\n";
    static const char bench[] = "{\"bench\": \"multiply\", \"run\": {\"m\": 3, \"ranks\": []}, \"runs\": [[1, 2], {}]}";
    fuzz_seed("record", record, sizeof record - 1);
    fuzz_seed("bench", bench, sizeof bench - 1);
}

static void written_again(const tsr_kept_record *record) {
    char *text = NULL;
    size_t bytes = 0;
    tsr_kept_record again = {.command = NULL};
    FILE *to = open_memstream(&text, &bytes);
    CHECK(to, "no memory");
    CHECK_OK(tsr_record_write_json(&record->run, to));
    fclose(to);
    CHECK_OK(tsr_record_read_json_text(text, "again", &again));
    CHECK(again.run.ranks == record->run.ranks, "%d ranks", again.run.ranks);
    tsr_record_free(&again);
    free(text);
}

static void see(void *context, const tsr_json_value *value) {
    (void)context;
    CHECK(value->name && value->text && value->depth >= 0, "a value without a name");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    char *text = malloc(bytes + 1);
    tsr_kept_record record = {.command = NULL};
    CHECK(text, "no memory");
    if (bytes > 0) memcpy(text, data, bytes);
    text[bytes] = '\0';
    if (tsr_record_read_json_text(text, "text", &record) == TSR_OK) {
        written_again(&record);
        tsr_record_free(&record);
    }
    if (tsr_record_read_json_member(text, "text", "run", &record) == TSR_OK) tsr_record_free(&record);
    free(text);
    (void)tsr_json_read_file(fuzz_write("json", data, bytes), see, NULL);
    return 0;
}
