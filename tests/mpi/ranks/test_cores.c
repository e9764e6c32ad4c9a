/* Where ranks run on nodes with one and several NUMA nodes, with and without GPUs, and on cores that a job has only
 * some of. */
#include "mpi/ranks/cores.h"

#include "tests/check.h"

static tsr_cores cores(const char *list) {
    tsr_cores parsed;
    CHECK(tsr_cores_parse(list, &parsed), "'%s'", list);
    return parsed;
}

static void spread(const char *allowed, const tsr_cores *nodes, int count, int index, int ranks, const char *expected) {
    tsr_cores mine, all = cores(allowed), want = cores(expected);
    tsr_cores_spread(&all, nodes, count, index, ranks, &mine);
    CHECK(tsr_cores_equal(&mine, &want), "rank %d of %d on %s: not %s", index, ranks, allowed, expected);
}

static void beside(const char *allowed, const tsr_cores *nodes, int count, int near, int sharers, int ranks,
                   const char *expected) {
    tsr_cores mine, all = cores(allowed), want = cores(expected);
    tsr_cores_beside(&all, nodes, count, near, sharers, ranks, &mine);
    CHECK(tsr_cores_equal(&mine, &want), "%d of %d ranks near %d on %s: not %s", sharers, ranks, near, allowed,
          expected);
}

int main(void) {
    const tsr_cores one[] = {cores("0-15")};
    const tsr_cores two[] = {cores("0-7,16-23"), cores("8-15,24-31")};
    const tsr_cores gap[] = {cores("0-7"), cores(""), cores("8-15")};
    spread("0-15", one, 0, 0, 2, "0-15"); /* nodes are not known */
    spread("0-15", one, 1, 1, 2, "0-15"); /* of one node a rank uses its share of the threads, anywhere */
    spread("0-31", two, 2, 0, 1, "0-31");
    spread("0-31", two, 2, 0, 2, "0-7,16-23");
    spread("0-31", two, 2, 1, 2, "8-15,24-31");
    spread("0-31", two, 2, 0, 3, "0-7,16-23");
    spread("0-31", two, 2, 1, 3, "0-31"); /* half of each */
    spread("0-31", two, 2, 2, 3, "8-15,24-31");
    spread("0-31", two, 2, 5, 8, "8-15,24-31");
    spread("0-3,8-11", two, 2, 1, 2, "8-11"); /* the job's cores alone */
    spread("0-3", two, 2, 1, 2, "0-3");
    spread("0-1", two, 2, 2, 3, "0-1");       /* more ranks than cores */
    spread("0-1,40", two, 2, 1, 2, "0-1,40"); /* a core of no node */
    spread("0-15", gap, 3, 1, 2, "8-15");

    beside("0-31", two, 2, 1, 4, 8, "8-15,24-31");
    beside("0-31", two, 2, 0, 1, 2, "0-7,16-23");
    beside("0-31", two, 2, 0, 2, 2, "0-31"); /* both GPUs there: a rank keeps its share */
    beside("0-31", two, 2, 0, 1, 1, "0-31");
    beside("0-31", two, 2, -1, 0, 8, "0-31");
    beside("0-31", two, 2, 5, 1, 8, "0-31");
    beside("0-11", two, 2, 1, 1, 3, "8-11");
    beside("0-7", two, 2, 1, 1, 2, "0-7"); /* the job has none there */
    beside("0-1", two, 2, 0, 3, 3, "0-1");
    return 0;
}
