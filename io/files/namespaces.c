/* Containers (namespaces.h). */
#include "io/files/namespaces.h"

#include <sys/stat.h>

static uint64_t inode_of(const char *name) {
    struct stat st;
    return stat(name, &st) == 0 ? (uint64_t)st.st_ino : 0;
}

uint64_t tsr_pid_namespace(void) { return inode_of("/proc/self/ns/pid"); }
uint64_t tsr_mount_namespace(void) { return inode_of("/proc/self/ns/mnt"); }
