/* What the helper says of a file, as a process might that the file has taken over: the job believes what fits the file,
 * and reads out of place nowhere. The input: which questions are asked, and the answers. */
#include <dirent.h>

#include "io/files/file_state.h"
#include "tests/fuzz/ask.h"
#include "tests/fuzz/walk.h"

tsr_status __wrap_tsr_file_state_check(int fd, const char *file, const tsr_file_state *was, tsr_file_state *now);
tsr_status __real_tsr_file_state_check(int fd, const char *file, const tsr_file_state *was, tsr_file_state *now);
tsr_status __wrap_tsr_file_state_open(const char *file, const tsr_file_state *was, int *fd);
tsr_status __real_tsr_file_state_open(const char *file, const tsr_file_state *was, int *fd);

enum { FILE_BYTES = 1 << 15, QUESTIONS = 4 };
static uint8_t content[FILE_BYTES] = "\x89HDF\r\n\x1a\n";

void fuzz_start(void) {
    tsr_stores_start();
    for (size_t i = 8; i < sizeof content; i++) content[i] = (uint8_t)(i * 2654435761u >> 24);
    fuzz_write("file.h5", content, sizeof content);
}

/* An answer cannot know inode and time of the file. */
tsr_status __wrap_tsr_file_state_check(int fd, const char *file, const tsr_file_state *was, tsr_file_state *now) {
    tsr_file_state is;
    (void)was;
    TSR_TRY(tsr_file_state_note(file, &is));
    return __real_tsr_file_state_check(fd, file, &is, now);
}

tsr_status __wrap_tsr_file_state_open(const char *file, const tsr_file_state *was, int *fd) {
    (void)was;
    return __real_tsr_file_state_open(file, &(tsr_file_state){.known = false}, fd);
}

static void ask(int question, const char *file) {
    tsr_describer helper = {.pid = 0, .external = ""};
    char name[TSR_FILE_CHARS];
    snprintf(name, sizeof name, "%s:/C", file);
    if (question == 0) walk_matrix(&helper, name);
    if (question == 1) walk_file(&helper, file);
    if (question == 2) walk_lists(&helper, file);
    if (question == 3) walk_carried(&helper, file, "/C");
}

/* What is answered of the files that TSR_FUZZ_FROM holds. */
void fuzz_seeds(void) {
    const char *folder = getenv("TSR_FUZZ_FROM");
    DIR *open = folder ? opendir(folder) : NULL;
    CHECK(open, "TSR_FUZZ_FROM is no folder of HDF5 files");
    for (struct dirent *e; (e = readdir(open));)
        for (int question = 0; question < QUESTIONS && e->d_name[0] != '.'; question++) {
            char path[TSR_FILE_CHARS], name[300];
            char *data = NULL;
            size_t bytes = 0;
            snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
            snprintf(name, sizeof name, "%s-%d", e->d_name, question);
            ask_record = open_memstream(&data, &bytes);
            CHECK(ask_record, "no memory");
            fputc(question, ask_record);
            ask(question, path);
            fclose(ask_record);
            fuzz_seed(name, data, bytes);
            free(data);
        }
    closedir(open);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes) {
    fuzz_bytes from = {data, bytes};
    const int question = fuzz_take_byte(&from) % QUESTIONS;
    ask_answers = &from;
    ask(question, fuzz_file("file.h5"));
    return 0;
}
