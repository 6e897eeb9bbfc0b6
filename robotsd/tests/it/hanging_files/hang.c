/* Makes opening the file $HANGING hang while $HANGING.hangs exists, as on a network file system whose server is down. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int open64(const char *path, int flags, ...) {
    int (*next)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open64");
    const char *hanging = getenv("HANGING");
    va_list rest;
    va_start(rest, flags);
    mode_t mode = (flags & O_CREAT) ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    if (hanging && strcmp(path, hanging) == 0) {
        char until[4096], waits[4096];
        snprintf(until, sizeof until, "%s.hangs", hanging);
        snprintf(waits, sizeof waits, "%s.waits", hanging);
        while (access(until, F_OK) == 0) {
            close(next(waits, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
            usleep(10000);
        }
    }
    return next(path, flags, mode);
}
