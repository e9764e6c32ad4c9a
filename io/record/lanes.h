/* The lanes of a run, and their names: plans give each step one, the record has busy seconds and bytes of each. */
#ifndef TSR_IO_RECORD_LANES_H
#define TSR_IO_RECORD_LANES_H

/* The lanes a step can belong to: code, name. All run at the same time. */
#define TSR_LANE_LIST(X)                                                                                               \
    X(READ, "read")                                                                                                    \
    X(UPLOAD, "upload")                                                                                                \
    X(EXCHANGE, "exchange")                                                                                            \
    X(PACK, "pack")                                                                                                    \
    X(MULTIPLY, "multiply")                                                                                            \
    X(DOWNLOAD, "download")                                                                                            \
    X(WRITE, "write")

typedef enum {
#define X(code, name) TSR_LANE_##code,
    TSR_LANE_LIST(X)
#undef X
        TSR_LANE_COUNT
} tsr_lane;

const char *tsr_lane_name(tsr_lane lane);
tsr_lane tsr_lane_find(const char *name); /* TSR_LANE_COUNT: no lane is called so */
/* What bounds a run that this lane bounds, "reading A and B"; "" for none. */
const char *tsr_lane_bounds(tsr_lane lane);

#endif
