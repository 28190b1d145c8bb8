// Memory that a thread keeps for its argon2id hashes.
//
// libsodium maps the memory of each hash with mmap(2) and unmaps it at its end. The kernel then clears 19 MiB and sets
// up 4,864 pages anew for each hash, which takes longer than the hash. libsodium offers no allocator to replace, so
// this file defines `mmap` and `munmap`: a program's own definition comes before the C library's, as that of malloc
// does. Both make the same system call as the C library's, except between `password_arena_begin` and
// `password_arena_end` on the thread that called them. There the first mapping of anonymous memory that fits is the
// thread's arena.
//
// A libsodium that asked for its memory in another way would get it in that way: hashes stay right and are slow again,
// and `password_arena_hash_count` stands still.
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Offers the calling thread's arena, of at least `size` bytes, until `password_arena_end`. Returns false if there is
/// no memory.
bool password_arena_begin(size_t size);
void password_arena_end(void);

/// Overwrites the bytes that hashes left in the calling thread's arena.
void password_arena_wipe(void);

/// Gives the calling thread's arena back to the system.
void password_arena_release(void);

/// How many bytes of the calling thread's arena a hash wrote since the last wipe.
size_t password_arena_unwiped_byte_count(void);

/// The bytes of the arenas of all threads together.
int64_t password_arena_byte_count(void);

/// How many hashes were made in an arena, by all threads together.
int64_t password_arena_hash_count(void);
