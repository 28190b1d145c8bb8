// Preloaded into posternd by tests: what the disk does to a sync, as the file named by HANGING_SYNC says.
//   "hang": fdatasync does not return while the file says so. "fail": it fails with EIO. Anything else: as ever.
// Build: cc -shared -fPIC -o hanging-sync.so hanging-sync.c -ldl
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void read_order(char order[8]) {
    const char *path = getenv("HANGING_SYNC");
    FILE *file = path ? fopen(path, "r") : NULL;
    order[0] = 0;
    if (!file) return;
    if (fscanf(file, "%7s", order) != 1) order[0] = 0;
    fclose(file);
}

int fdatasync(int descriptor) {
    static int (*sync_for_real)(int);
    if (!sync_for_real) sync_for_real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    char order[8];
    for (read_order(order); strcmp(order, "hang") == 0; read_order(order)) usleep(20000);
    if (strcmp(order, "fail") == 0) {
        errno = EIO;
        return -1;
    }
    return sync_for_real(descriptor);
}
