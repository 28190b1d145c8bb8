#include <zlib.h>

// inflateInit2 is a macro that Swift does not see. 31: a window of 32 KiB, and gzip's header and trailer.
static inline int postern_inflate_gzip_begin(z_stream *stream) { return inflateInit2(stream, 31); }
