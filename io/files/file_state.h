/* The state of a file that is read: what tells whether it is still the file, with the content, that was described.
 * Rank 0 notes it; it travels with the description (store.h), and every rank compares each descriptor that it opens.
 *
 * Compared are inode, size and time of modification, and the device's number among the ranks of one machine: a
 * network's file system has another number on each. The time of the inode's change is not compared: permissions,
 * another name, a backup that keeps times, and the removal of a file that is open all move it, and none of them touches
 * the data. So whoever overwrites a file and puts size and time back is not noticed. Nor are, until they are synced (on
 * tmpfs: ever), writes to a mapping of a file: the system changes no time for them before that. */
#ifndef TSR_IO_FILES_FILE_STATE_H
#define TSR_IO_FILES_FILE_STATE_H

#include "kernels/base/base.h"

/* Overlays and automounts need no rule of their own: their numbers hold while a machine has the file's folder mounted.
 * Copies of one file on the disks of several machines are several files. */
typedef struct {
    bool known;       /* false: nothing is compared */
    uint64_t machine; /* which looked: a hash of its boot's number, its name and the container's mounts */
    uint64_t device, inode;
    int64_t file_system;                 /* its type, as statfs has it */
    int64_t bytes, seconds, nanoseconds; /* the latter two: of the last modification */
} tsr_file_state;

/* On a file system that may answer from a cache of attributes a difference is looked at again for so long. */
#define TSR_LOOK_AGAIN_SECONDS 5.0

/* Local, as what follows. The state of the file at a path. Waits until the clock has moved on since the file was
 * modified (20 ms; 2 s where times are whole seconds), so that every later modification has another time. */
tsr_status tsr_file_state_note(const char *file, tsr_file_state *state);

/* TSR_ERR_IO, with what is different, unless the open file is as it was noted; *now (may be NULL): what it is here.
 * TSR_OK where nothing was noted. `file` is for messages. */
tsr_status tsr_file_state_check(int fd, const char *file, const tsr_file_state *noted, tsr_file_state *now);

/* The same of the file at a path, opened again each time that it is looked at. *fd (unless NULL): the descriptor, for
 * the caller to close. */
tsr_status tsr_file_state_open(const char *file, const tsr_file_state *noted, int *fd);

#endif
