#ifndef STORE_FAULT_H
#define STORE_FAULT_H

#include <stddef.h>

// What the process logs, and how it ends, when reading the mapped data file faults. For one store of the process.
//
// A damaged page or a file that was cut shows as SIGBUS, as SIGSEGV in LMDB's code, or as a failed assertion of LMDB.
// None of these can be survived: the page is not there. So the process says which file it was, and ends. Bytes that
// LMDB read there can also make the process fault in other code, where nothing tells this from a defect: then the
// process says so.

/// JSON objects' members from the level on: `"level":"error",…}\n`. Both are kept: never free them.
struct store_fault_lines {
    /// For a fault in the mapping or in LMDB's code.
    const char *of_store;
    size_t of_store_byte_count;
    /// For any other fault, failed check of libc or trap.
    const char *of_others;
    size_t of_others_byte_count;
};

/// Finds the mapping of `path` in this process, and has a fault that comes from there or from LMDB's code write its line
/// to standard error and end the process with `status`. Any other one writes the other line and goes on as before.
void store_fault_watch(const char *path, struct store_fault_lines lines, int status);

/// For mdb_env_set_assert: treats a failed assertion as a fault. Ends the process if a store is watched, else returns.
void store_fault_assertion_failed(void);

/// Forgets the mapping, before it is unmapped.
void store_fault_forget(void);

#endif
