/* Inputs that are rounded when they are read, or stand for others (rounded.h). */
#include "app/verify/rounded.h"

void tsr_input_warn(const tsr_world *world, const tsr_store_desc *desc) {
    char name[TSR_FILE_CHARS + TSR_PATH_CHARS + TSR_SLICE_CHARS];
    if (world->rank != 0) return;
    tsr_matrix_name_text(&desc->name, name, sizeof name);
    if (desc->rounded)
        tsr_warn(world->warnings, "'%s' holds %s: its values are rounded, and those beyond %s become Inf", name,
                 desc->type_name, tsr_dtype_name(desc->element.dtype));
    if (*desc->packed)
        tsr_warn(world->warnings,
                 "'%s' is packed (%s): its elements are taken as stored; unpack it first where others are meant", name,
                 desc->packed);
}

tsr_status tsr_rounded_count(const tsr_world *world, const tsr_store_desc *desc, int64_t overflows, int64_t reads) {
    char name[TSR_FILE_CHARS + TSR_PATH_CHARS + TSR_SLICE_CHARS];
    int64_t all = 0;
    if (!desc->rounded) return TSR_OK;
    TSR_TRY(TSR_MPI(MPI_Allreduce(&overflows, &all, 1, MPI_INT64_T, MPI_SUM, world->comm)));
    if (world->rank != 0 || all == 0) return TSR_OK;
    tsr_warn(world->warnings, "%lld of %lld elements of '%s' were finite and are beyond %s: they were read as Inf",
             (long long)tsr_ceil_div(all, tsr_max(1, reads)), (long long)(desc->rows * desc->cols * desc->matrices),
             tsr_matrix_name_text(&desc->name, name, sizeof name), tsr_dtype_name(desc->element.dtype));
    return TSR_OK;
}
