/* Containers. Processes of one machine may number processes apart, and see other mounts: numbers of processes and of
 * devices say nothing then. Local, and safe in a signal handler. */
#ifndef TSR_IO_FILES_NAMESPACES_H
#define TSR_IO_FILES_NAMESPACES_H

#include <stdint.h>

#define TSR_FIRST_PID_NAMESPACE 0xEFFFFFFC /* that of a machine itself, on every Linux */

/* The numbers of this process's namespaces of processes and of mounts: unique on a machine until it starts anew. 0
 * where they are not known. */
uint64_t tsr_pid_namespace(void);
uint64_t tsr_mount_namespace(void);

#endif
