/* A pipe with a name (mkfifo), written without ever waiting long: for its reader to come, and for it to read, as the
 * output that the text is about is in place by then. Local. */
#ifndef TSR_IO_TEXT_TEXT_PIPE_H
#define TSR_IO_TEXT_TEXT_PIPE_H

#include <stdio.h>

#define TSR_READER_SECONDS 10

/* To write to, or NULL and errno: ENXIO where no reader came in TSR_READER_SECONDS. Writing fails with ETIMEDOUT where
 * the reader reads nothing for as long, and with EPIPE, never a signal, where it is gone. */
FILE *tsr_text_pipe_open(const char *file);

#endif
