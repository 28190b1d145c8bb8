// Counts durable LMDB writes, with BATCH records per commit.
//   commit DIRECTORY BATCH SECONDS
#include "records.h"
#include "stopwatch.h"

int main(int argument_count, char **arguments) {
    if (argument_count != 4) return fprintf(stderr, "usage: commit DIRECTORY BATCH SECONDS\n"), 2;
    int batch = atoi(arguments[2]);
    open_records(arguments[1]);
    commit_batch(batch);
    long records = 0;
    struct stopwatch watch = start_stopwatch(atof(arguments[3]));
    for (; is_running(&watch); records += batch) commit_batch(batch);
    report(&watch, records);
}
