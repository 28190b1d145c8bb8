#ifndef STORE_FAULT_H
#define STORE_FAULT_H

#include <stddef.h>

// What the process says, and how it ends, when reading the mapped data file faults. One store of the process.
//
// A damaged page or a file that was cut shows as SIGBUS, as SIGSEGV in LMDB's code, or as a failed assertion of LMDB.
// None of these can be survived: the page is not there. So the process says which file it was, and ends.

/// Finds the mapping of `path` in this process, and has SIGBUS and SIGSEGV write `line` to standard error and end the
/// process with `status` when they come from there or from LMDB's code. Any other fault goes on as before.
/// `line` is a JSON object's members from the level on: `"level":"error",…}\n`. It is kept: never free it.
void store_fault_watch(const char *path, const char *line, size_t line_byte_count, int status);

/// As a fault: for mdb_env_set_assert. Ends the process if a store is watched, else returns.
void store_fault_assertion_failed(void);

/// Forgets the mapping, before it is unmapped.
void store_fault_forget(void);

#endif
