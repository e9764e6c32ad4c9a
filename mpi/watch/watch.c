/* The thread that watches, and what nodes tell each other (watch.h). */
#include "mpi/watch/watch.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "mpi/ranks/abort.h"

#define SIGNS_TAG 32103
#define LAST_RESORT_SECONDS 10

/* The first rank of another node. */
typedef struct {
    int leader;       /* number among the first ranks of nodes */
    int first, ranks; /* in `order`: the ranks of that node */
    tsr_signs_copy *sent, *received;
    MPI_Request sending, receiving;
    bool left;   /* its last message has come */
    bool parted; /* the last message to it was begun */
} other_node;

struct tsr_watch {
    const tsr_world *world;
    tsr_watch_options options;
    MPI_Win window;
    tsr_signs *signs;     /* of the node's ranks */
    tsr_signs *own_signs; /* the same where MPI shares no memory */
    char (*hosts)[64];
    int *order;           /* ranks of the job, node by node */
    int first;            /* in `order`: this node's */
    tsr_watched *watched; /* in that order */
    MPI_Comm leaders;     /* MPI_COMM_NULL where nodes do not talk */
    other_node *nodes;
    int node_count;
    double told_at;
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t stops;
    bool stopping;         /* under lock */
    atomic_bool abandoned; /* other nodes are not told */
};

static bool is_leader(const tsr_watch *w) { return w->world->local_rank == 0; }

/* Nodes hear of each other so often, and a rank looks around at least once a second. */
static double told_every(const tsr_watch *w) { return fmin(w->options.limits.quiet / 12, 5); }
static double period(const tsr_watch *w) { return fmin(told_every(w), 1); }

/* ---- what is seen ---------------------------------------------------------------------------- */

static void see_node(tsr_watch *w, double now) {
    for (int i = 0; i < w->world->local_ranks; i++) {
        tsr_signs_copy copy;
        tsr_signs_read(&w->signs[i], &copy);
        tsr_watch_see(&w->watched[w->first + i], &copy, now);
    }
}

static bool arrived(MPI_Request *request) {
    int done = 0;
    return MPI_Test(request, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS || done;
}

static int message_bytes(int ranks) { return ranks * (int)sizeof(tsr_signs_copy); }

static void tell_node(tsr_watch *w, other_node *node) {
    for (int i = 0; i < w->world->local_ranks; i++) node->sent[i] = w->watched[w->first + i].signs;
    MPI_Isend(node->sent, message_bytes(w->world->local_ranks), MPI_BYTE, node->leader, SIGNS_TAG, w->leaders,
              &node->sending);
}

/* Of a node whose watch has ended no more messages come. */
static void hear_node(tsr_watch *w, other_node *node, double now) {
    while (!node->left && arrived(&node->receiving)) {
        node->left = node->received[0].left;
        for (int i = 0; i < node->ranks; i++) {
            if (node->left) node->received[i].left = 1;
            tsr_watch_see(&w->watched[node->first + i], &node->received[i], now);
        }
        if (!node->left)
            MPI_Irecv(node->received, message_bytes(node->ranks), MPI_BYTE, node->leader, SIGNS_TAG, w->leaders,
                      &node->receiving);
    }
}

/* A node that does not take a message is not told more. */
static void talk(tsr_watch *w, double now) {
    const bool tells = now - w->told_at >= told_every(w);
    if (tells) w->told_at = now;
    for (int i = 0; i < w->node_count; i++) {
        hear_node(w, &w->nodes[i], now);
        if (tells && arrived(&w->nodes[i].sending)) tell_node(w, &w->nodes[i]);
    }
}

/* ---- what is said ---------------------------------------------------------------------------- */

static const char *rank_text(const tsr_watch *w, int place, char *to, size_t chars) {
    snprintf(to, chars, "rank %d on %s", w->order[place], w->hosts[w->order[place]]);
    return to;
}

static void name_it(const tsr_watch *w, const tsr_verdict *v) {
    char who[96], what[64];
    rank_text(w, v->rank, who, sizeof who);
    if (v->kind == TSR_VERDICT_FILE)
        tsr_warn(w->world->warnings, "%s has waited for %.0f s: %s; what stays so for %.0f s ends the job", who,
                 v->seconds, tsr_watch_doing(&w->watched[v->rank].signs, v->lane, what), w->options.limits.file);
    else
        tsr_warn(w->world->warnings, "%s is slow: its %s lane makes %.3g G%s/s, other ranks %.3g", who,
                 tsr_lane_name((tsr_lane)v->lane), v->rate / 1e9, v->lane == TSR_LANE_MULTIPLY ? "FLOP" : "B",
                 v->others / 1e9);
}

static void tell_stall(const tsr_watch *w, const tsr_verdict *v, char *to, size_t chars) {
    char who[96], what[64], waiting[192] = "";
    rank_text(w, v->rank, who, sizeof who);
    if (v->waiting >= 0) {
        char other[96];
        snprintf(waiting, sizeof waiting, "; %s waits: %s", rank_text(w, v->waiting, other, sizeof other),
                 tsr_watch_doing(&w->watched[v->waiting].signs, TSR_LANE_EXCHANGE, what));
    }
    if (v->kind == TSR_VERDICT_SILENT)
        snprintf(to, chars, "the job stands still: no sign of life from %s for %.0f s (stopped, or its node is gone)%s",
                 who, v->seconds, waiting);
    else if (v->kind == TSR_VERDICT_STEP)
        snprintf(to, chars, "the job stands still: %s, %s, has not ended for %.0f s%s", who,
                 tsr_watch_doing(&w->watched[v->rank].signs, v->lane, what), v->seconds, waiting);
    else if (v->lane >= 0)
        snprintf(to, chars, "the job stands still: %s, %s, has waited for %.0f s for ranks that do nothing", who,
                 tsr_watch_doing(&w->watched[v->rank].signs, v->lane, what), v->seconds);
    else snprintf(to, chars, "the job stands still: no rank has done anything for %.0f s", v->seconds);
}

static void end_job(const tsr_watch *w, const tsr_verdict *verdict) {
    char message[512];
    tell_stall(w, verdict, message, sizeof message);
    tsr_abort_after(LAST_RESORT_SECONDS, TSR_ERR_STALLED);
    tsr_fail(TSR_ERR_STALLED, "%s. Look at that rank, its GPU and its file system; --stall-timeout waits longer",
             message);
    w->options.stalled(w->options.context, tsr_message());
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* The first rank of a node judges all that it sees. The others look whether that one lives. False: the job was ended.
 */
static bool judge(tsr_watch *w, double now) {
    const tsr_watch_limits *limits = &w->options.limits;
    const int ranks = w->world->ranks;
    for (;;) {
        const tsr_verdict v = is_leader(w) ? tsr_watch_judge(w->watched, ranks, limits, now)
                                           : tsr_watch_judge_beats(w->watched + w->first, 1, limits, now);
        if (v.kind == TSR_VERDICT_FINE) return true;
        if (v.kind != TSR_VERDICT_FILE && v.kind != TSR_VERDICT_SLOW) {
            tsr_verdict all = v;
            if (!is_leader(w)) all.rank += w->first;
            end_job(w, &all);
            return false;
        }
        if (w->world->rank == 0) name_it(w, &v);
    }
}

static bool wait_a_period(tsr_watch *w) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    const double at = (double)until.tv_nsec / 1e9 + period(w);
    until.tv_sec += (time_t)at;
    until.tv_nsec = (long)(1e9 * (at - (double)(time_t)at));
    pthread_mutex_lock(&w->lock);
    if (!w->stopping) pthread_cond_timedwait(&w->stops, &w->lock, &until);
    const bool stopping = w->stopping;
    pthread_mutex_unlock(&w->lock);
    return !stopping;
}

/* Nodes part together: each tells the others that it leaves, and hears that of them, so that no message is left. */
static void part(tsr_watch *w) {
    for (int parted = 0; parted < w->node_count && !w->abandoned;) {
        const double now = tsr_now_seconds();
        see_node(w, now);
        parted = 0;
        for (int i = 0; i < w->node_count; i++) {
            other_node *node = &w->nodes[i];
            hear_node(w, node, now);
            const bool free = arrived(&node->sending);
            parted += free && node->parted && node->left;
            if (free && !node->parted) tell_node(w, node);
            node->parted |= free;
        }
        if (parted < w->node_count && !judge(w, now)) return;
        if (parted < w->node_count) usleep(1000);
    }
}

static void *watch(void *context) {
    tsr_watch *w = context;
    tsr_signs *mine = &w->signs[w->world->local_rank];
    double looked = tsr_now_seconds();
    while (wait_a_period(w)) {
        const double now = tsr_now_seconds(), missed = now - looked - period(w);
        atomic_fetch_add(&mine->beats, 1);
        if (missed > w->options.limits.quiet / 4) tsr_watch_excuse(w->watched, w->world->ranks, missed);
        looked = now;
        see_node(w, now);
        if (w->leaders != MPI_COMM_NULL) talk(w, now);
        if (!judge(w, now)) return NULL;
    }
    atomic_store(&mine->left, true);
    if (w->leaders != MPI_COMM_NULL) part(w);
    return NULL;
}

/* ---- open, close ----------------------------------------------------------------------------- */

typedef struct {
    char host[64];
    int leader; /* the node's first rank */
    int local;  /* among the node's */
} rank_place;

/* `order` and the nodes in it, from where each rank is. */
static tsr_status take_places(tsr_watch *w, const rank_place *places) {
    const int ranks = w->world->ranks;
    int at = 0, leaders = 0;
    for (int leader = 0; leader < ranks; leader++) {
        if (places[leader].leader != leader) continue;
        other_node node = {
            .leader = leaders++, .first = at, .sending = MPI_REQUEST_NULL, .receiving = MPI_REQUEST_NULL};
        for (int rank = 0; rank < ranks; rank++) {
            if (places[rank].leader != leader) continue;
            w->order[node.first + places[rank].local] = rank; /* as they share their signs */
            at++;
        }
        node.ranks = at - node.first;
        if (leader == places[w->world->rank].leader) w->first = node.first;
        else w->nodes[w->node_count++] = node;
    }
    for (int rank = 0; rank < ranks; rank++) memcpy(w->hosts[rank], places[rank].host, sizeof w->hosts[rank]);
    if (!is_leader(w) || !w->world->threads) w->node_count = 0;
    for (int i = 0; i < w->node_count; i++) {
        w->nodes[i].sent = calloc((size_t)w->world->local_ranks, sizeof *w->nodes[i].sent);
        w->nodes[i].received = calloc((size_t)w->nodes[i].ranks, sizeof *w->nodes[i].received);
        if (!w->nodes[i].sent || !w->nodes[i].received) return tsr_fail(TSR_ERR_MEMORY, "no memory for a watch");
    }
    return TSR_OK;
}

static tsr_status find_places(tsr_watch *w) {
    const tsr_world *world = w->world;
    rank_place mine = {.leader = world->rank, .local = world->local_rank},
               *all = calloc((size_t)world->ranks, sizeof *all);
    snprintf(mine.host, sizeof mine.host, "%s", world->host);
    tsr_status status = TSR_OK;
    if (!all) status = tsr_fail(TSR_ERR_MEMORY, "no memory for where %d ranks are", world->ranks);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(TSR_MPI(MPI_Bcast(&mine.leader, 1, MPI_INT, 0, world->node)));
    TSR_TRY_DONE(TSR_MPI(MPI_Allgather(&mine, sizeof mine, MPI_BYTE, all, (int)sizeof *all, MPI_BYTE, world->comm)));
    status = take_places(w, all);
done:
    free(all);
    return status;
}

/* Each rank for itself: it sees no sign of the others, and does not expect any. */
static tsr_status keep_signs(tsr_watch *w) {
    w->window = MPI_WIN_NULL;
    w->own_signs = calloc((size_t)w->world->local_ranks, sizeof *w->own_signs);
    w->signs = w->own_signs;
    if (!w->signs) return tsr_fail(TSR_ERR_MEMORY, "no memory for a watch");
    for (int i = 0; i < w->world->local_ranks; i++) atomic_store(&w->signs[i].left, i != w->world->local_rank);
    return TSR_OK;
}

/* Without memory that MPI shares each rank watches itself. */
static tsr_status share_signs(tsr_watch *w) {
    const tsr_world *world = w->world;
    const MPI_Aint bytes = is_leader(w) ? (MPI_Aint)world->local_ranks * (MPI_Aint)sizeof *w->signs : 0;
    MPI_Aint size;
    int unit;
    if (MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, world->node, &w->signs, &w->window) != MPI_SUCCESS) {
        TSR_TRY(tsr_refused_together(world->node, "shared memory (MPI_Win_allocate_shared)"));
        return keep_signs(w);
    }
    TSR_TRY(TSR_MPI(MPI_Win_shared_query(w->window, 0, &size, &unit, &w->signs)));
    memset(&w->signs[world->local_rank], 0, sizeof *w->signs);
    return TSR_MPI(MPI_Barrier(world->node));
}

static tsr_status connect_nodes(tsr_watch *w) {
    if (!w->world->threads) return TSR_OK;
    MPI_Comm leaders;
    TSR_TRY(TSR_MPI(MPI_Comm_split(w->world->comm, is_leader(w) ? 0 : MPI_UNDEFINED, w->world->rank, &leaders)));
    w->leaders = leaders;
    return TSR_OK;
}

static tsr_status begin_hearing(tsr_watch *w) {
    for (int i = 0; i < w->node_count; i++) {
        other_node *node = &w->nodes[i];
        TSR_TRY(TSR_MPI(MPI_Irecv(node->received, message_bytes(node->ranks), MPI_BYTE, node->leader, SIGNS_TAG,
                                  w->leaders, &node->receiving)));
    }
    return TSR_OK;
}

static tsr_status start(tsr_watch *w) {
    w->running = pthread_create(&w->thread, NULL, watch, w) == 0;
    if (w->running) return TSR_OK;
    return tsr_fail(TSR_ERR_MEMORY,
                    "could not start the thread that watches over the run: raise the limit on processes "
                    "(ulimit -u) or on address space (ulimit -v)");
}

static void stop(tsr_watch *w) {
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_signal(&w->stops);
    pthread_mutex_unlock(&w->lock);
    if (w->running) pthread_join(w->thread, NULL);
    w->running = false;
}

static void free_watch(tsr_watch *w) {
    for (int i = 0; i < w->node_count; i++) {
        free(w->nodes[i].sent);
        free(w->nodes[i].received);
    }
    free(w->own_signs);
    free(w->hosts);
    free(w->order);
    free(w->watched);
    free(w->nodes);
    pthread_cond_destroy(&w->stops);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static tsr_status allocate(tsr_watch *w) {
    const size_t ranks = (size_t)w->world->ranks;
    w->hosts = calloc(ranks, sizeof *w->hosts);
    w->order = calloc(ranks, sizeof *w->order);
    w->watched = calloc(ranks, sizeof *w->watched);
    w->nodes = calloc(ranks, sizeof *w->nodes);
    if (w->hosts && w->order && w->watched && w->nodes) return TSR_OK;
    return tsr_fail(TSR_ERR_MEMORY, "no memory to watch over %d ranks", w->world->ranks);
}

/* The last run's, in which nothing is under way. Nobody looks at its signs: the ranks closed it together. */
static tsr_status take_kept(tsr_watch *w, const tsr_world *world, const tsr_watch_options *options) {
    w->world = world;
    w->options = *options;
    w->told_at = 0;
    w->stopping = false;
    memset(w->watched, 0, (size_t)world->ranks * sizeof *w->watched);
    for (int i = 0; i < w->node_count; i++) w->nodes[i].left = w->nodes[i].parted = false;
    if (w->window == MPI_WIN_NULL) return TSR_OK; /* each rank sees its own */
    memset(tsr_watch_signs(w), 0, sizeof *w->signs);
    return tsr_meet(world->node);
}

static tsr_status make(const tsr_world *world, const tsr_watch_options *options, tsr_watch **made) {
    tsr_watch *w = *made = calloc(1, sizeof *w);
    tsr_status status = w ? TSR_OK : tsr_fail(TSR_ERR_MEMORY, "no memory for a watch");
    if (w) {
        *w = (tsr_watch){.world = world, .options = *options, .window = MPI_WIN_NULL, .leaders = MPI_COMM_NULL};
        pthread_mutex_init(&w->lock, NULL);
        pthread_cond_init(&w->stops, NULL);
        status = allocate(w);
    }
    TSR_TRY(tsr_agree(world->comm, status));
    TSR_TRY(tsr_agree(world->comm, find_places(w)));
    TSR_TRY(tsr_agree(world->comm, share_signs(w)));
    return tsr_agree(world->comm, connect_nodes(w));
}

tsr_status tsr_watch_open(const tsr_world *world, const tsr_watch_options *options, tsr_watch **watch) {
    tsr_watch *w = world->kept_watch ? *world->kept_watch : NULL;
    tsr_status status = w ? take_kept(w, world, options) : make(world, options, &w);
    if (status == TSR_OK) status = begin_hearing(w);
    TSR_TRY_DONE(tsr_agree(world->comm, status));
    TSR_TRY_DONE(tsr_agree(world->comm, start(w)));
    *watch = w;
    return TSR_OK;
done:
    if (w) tsr_watch_leave(w);
    return status;
}

tsr_signs *tsr_watch_signs(tsr_watch *watch) { return watch ? &watch->signs[watch->world->local_rank] : NULL; }

void tsr_watch_leave(tsr_watch *w) {
    if (!w) return;
    if (w->world->kept_watch) *w->world->kept_watch = NULL; /* on every rank */
    atomic_store(&w->abandoned, true);
    stop(w);
    if (w->leaders == MPI_COMM_NULL) free_watch(w); /* else messages may come that were asked for */
}

tsr_status tsr_watch_end(tsr_watch *w) {
    if (!w) return TSR_OK;
    tsr_status status = w->leaders != MPI_COMM_NULL ? TSR_MPI(MPI_Comm_free(&w->leaders)) : TSR_OK;
    if (status == TSR_OK && w->window != MPI_WIN_NULL) status = TSR_MPI(MPI_Win_free(&w->window));
    free_watch(w);
    return status;
}

tsr_status tsr_watch_close(tsr_watch *w) {
    if (!w) return TSR_OK;
    stop(w);
    if (!w->world->kept_watch) return tsr_watch_end(w);
    *w->world->kept_watch = w;
    return tsr_meet(w->world->node); /* nobody looks at signs that the next run changes */
}
