/* The device a test program runs on (TSR_TEST_DEVICE: "cpu" or "cuda"), opened, with a stream, and buffers that are
 * written and read from the host. A program whose device is not there ends with 77, which ctest counts as skipped. */
#ifndef TSR_TESTS_KERNELS_DEVICE_DEVICE_UNDER_TEST_H
#define TSR_TESTS_KERNELS_DEVICE_DEVICE_UNDER_TEST_H

#include "kernels/device/device.h"
#include "tests/check.h"

typedef struct {
    const tsr_device_ops *ops;
    tsr_device *device;
    tsr_stream *stream;
} device_under_test;

static inline device_under_test test_open(void) {
    device_under_test under = {0};
    int devices = 0;
    char why[256];
    CHECK_OK(tsr_device_find(TSR_TEST_DEVICE, &under.ops));
    CHECK_OK(under.ops->count(&devices, why));
    if (devices == 0) {
        fprintf(stderr, "skipped: no GPU: %s\n", why);
        exit(77);
    }
    CHECK_OK(under.ops->open(0, &under.device));
    CHECK_OK(under.ops->use(under.device));
    CHECK_OK(under.ops->stream_create(under.device, &under.stream));
    return under;
}

static inline void test_close(device_under_test *under) {
    under->ops->stream_destroy(under->device, under->stream);
    under->ops->close(under->device);
}

/* Device memory that begins as a copy of host memory. */
static inline void *test_upload(const device_under_test *under, const void *from, size_t bytes) {
    void *to;
    CHECK_OK(under->ops->allocate(under->device, bytes, &to));
    CHECK_OK(under->ops->upload(under->device, to, from, bytes, under->stream));
    CHECK_OK(under->ops->stream_wait(under->device, under->stream));
    return to;
}

/* Reads device memory back and releases it. */
static inline void test_download(const device_under_test *under, void *to, void *from, size_t bytes) {
    CHECK_OK(under->ops->download(under->device, to, from, bytes, under->stream));
    CHECK_OK(under->ops->stream_wait(under->device, under->stream));
    under->ops->release(under->device, from);
}

#endif
