// First: event-config.h defines _GNU_SOURCE, which would give fd_set another member name than Swift's Glibc has.
#include <sys/types.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <malloc.h>
#include <sys/eventfd.h>
