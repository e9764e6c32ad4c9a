/* Which kernels made a run's products, and what share of its flops each (run_record.h). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/record/run_record.h"
#include "io/text/text.h"

#define ROUNDING 1e-9 /* of a kernel's flops: what is left after a move that was meant to take all */

void tsr_kernels_add(tsr_kernel_share shares[TSR_KERNELS_RAN], const char *name, double flops) {
    int at = 0;
    while (at < TSR_KERNELS_RAN - 1 && shares[at].name[0] && strcmp(shares[at].name, name) != 0) at++;
    if (!shares[at].name[0]) snprintf(shares[at].name, sizeof shares[at].name, "%s", name);
    shares[at].flops += flops;
    for (; at > 0 && shares[at].flops > shares[at - 1].flops; at--) {
        const tsr_kernel_share more = shares[at];
        shares[at] = shares[at - 1];
        shares[at - 1] = more;
    }
}

void tsr_kernels_move(tsr_kernel_share shares[TSR_KERNELS_RAN], const char *from, const char *to, double flops) {
    tsr_kernel_share before[TSR_KERNELS_RAN];
    if (flops <= 0) return;
    memcpy(before, shares, sizeof before);
    memset(shares, 0, sizeof before);
    for (int i = 0; i < TSR_KERNELS_RAN && before[i].name[0]; i++) {
        const double left = strcmp(before[i].name, from) == 0 ? before[i].flops - flops : before[i].flops;
        if (left > ROUNDING * before[i].flops) tsr_kernels_add(shares, before[i].name, left);
    }
    tsr_kernels_add(shares, to, flops);
}

const char *tsr_kernels_format(const tsr_kernel_share shares[TSR_KERNELS_RAN], char text[TSR_KERNELS_CHARS]) {
    double all = 0;
    text[0] = '\0';
    for (int i = 0; i < TSR_KERNELS_RAN; i++) all += shares[i].flops;
    for (int i = 0; i < TSR_KERNELS_RAN && shares[i].flops > 0; i++)
        tsr_text_append(text, TSR_KERNELS_CHARS, "%s%s %.4g", i > 0 ? ", " : "", shares[i].name, shares[i].flops / all);
    return text;
}

void tsr_kernels_parse(const char *text, double flops, tsr_kernel_share shares[TSR_KERNELS_RAN]) {
    tsr_kernel_share one;
    double part;
    int chars;
    memset(shares, 0, TSR_KERNELS_RAN * sizeof *shares);
    while (sscanf(text, " %23[^ ,] %lf%n", one.name, &part, &chars) == 2) {
        tsr_kernels_add(shares, one.name, part * flops);
        text += chars;
        if (*text == ',') text++;
    }
}

void tsr_record_kernels(const tsr_run_record *record, tsr_kernel_share shares[TSR_KERNELS_RAN]) {
    memset(shares, 0, TSR_KERNELS_RAN * sizeof *shares);
    for (int rank = 0; rank < record->ranks; rank++)
        for (int i = 0; i < TSR_KERNELS_RAN; i++) {
            const tsr_kernel_share *one = &record->rank_records[rank].kernels[i];
            if (one->flops > 0) tsr_kernels_add(shares, one->name, one->flops);
        }
}
