/* Loaded before the C library (LD_PRELOAD): products that BLAS makes with TSR_WRONG_K terms come out wrong, from the
 * call TSR_WRONG_FIRST on (0), TSR_WRONG_COUNT of them (1), on the rank TSR_WRONG_RANK (0): element TSR_WRONG_AT of C
 * is TSR_WRONG_SHARE (1) larger, times 1 + its size; or bit TSR_WRONG_BIT of it is another. TSR_WRONG_WHAT=A or B: so
 * is that bit of the operand, while the product is made. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

typedef void sgemm_call(int, int, int, int, int, int, float, const float *, int, const float *, int, float, float *,
                        int);
typedef void dgemm_call(int, int, int, int, int, int, double, const double *, int, const double *, int, double,
                        double *, int);
static sgemm_call *real_sgemm;
static dgemm_call *real_dgemm;
static int calls;

static double number(const char *name, double usual) {
    const char *text = getenv(name);
    return text ? atof(text) : usual;
}

/* The element that is to be wrong, among m × n; -1: none. */
static long wrong_element(int m, int n, int k) {
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (k != (int)number("TSR_WRONG_K", -1) || atoi(rank ? rank : "0") != (int)number("TSR_WRONG_RANK", 0)) return -1;
    const int call = calls++, first = (int)number("TSR_WRONG_FIRST", 0);
    if (call == (int)number("TSR_WRONG_STOP", -1)) raise(SIGTERM);
    if (call < first || call >= first + (int)number("TSR_WRONG_COUNT", 1)) return -1;
    return (long)number("TSR_WRONG_AT", 0) % ((long)m * n);
}

/* The bit that is to be another, of an element; and back. */
static void flip(void *element) {
    const int bit = (int)number("TSR_WRONG_BIT", -1);
    if (bit >= 0) ((unsigned char *)element)[bit / 8] ^= (unsigned char)(1 << bit % 8);
}
static char what(void) {
    const char *text = getenv("TSR_WRONG_WHAT");
    return text ? text[0] : 'C';
}
/* The element among rows × cols; transposed (112): columns lie in memory as rows do else. */
static long place(long at, int transposed, int rows, int cols, int ld) {
    at %= (long)rows * cols;
    const long row = at / cols, col = at % cols;
    return transposed == 112 ? col * ld + row : row * ld + col;
}

#define MULTIPLY(T)                                                                                                    \
    const long at = wrong_element(m, n, k);                                                                            \
    T *operand = NULL;                                                                                                 \
    if (at >= 0 && what() == 'A') operand = (T *)a + place(at, ta, m, k, lda);                                         \
    if (at >= 0 && what() == 'B') operand = (T *)b + place(at, tb, k, n, ldb);                                         \
    if (operand) flip(operand);                                                                                        \
    real(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);                                                 \
    if (operand) flip(operand);                                                                                        \
    if (at < 0 || operand) return;                                                                                     \
    T *element = c + at / n * ldc + at % n;                                                                            \
    if (getenv("TSR_WRONG_BIT")) flip(element);                                                                        \
    else *element += (T)(number("TSR_WRONG_SHARE", 1) * (1 + fabs((double)*element)))

static void sgemm(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda, const float *b,
                  int ldb, float beta, float *c, int ldc) {
    sgemm_call *real = real_sgemm;
    MULTIPLY(float);
}

static void dgemm(int order, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                  const double *b, int ldb, double beta, double *c, int ldc) {
    dgemm_call *real = real_dgemm;
    MULTIPLY(double);
}

void *dlsym(void *handle, const char *name) {
    static void *(*next)(void *, const char *);
    if (!next) *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
    if (!next) *(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
    void *found = next(handle, name);
    if (strcmp(name, "cblas_sgemm") == 0) {
        *(void **)&real_sgemm = found;
        *(void **)&found = (void *)sgemm;
    }
    if (strcmp(name, "cblas_dgemm") == 0) {
        *(void **)&real_dgemm = found;
        *(void **)&found = (void *)dgemm;
    }
    return found;
}
