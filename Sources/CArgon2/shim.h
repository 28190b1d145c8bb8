#include <argon2.h>

// One tag of any kind of argon2, on the calling thread alone: the lanes are computed one after the other. The library
// wipes its memory when it is done.
static inline int postern_argon2(
    argon2_type type, uint32_t version, uint32_t memory_kib, uint32_t passes, uint32_t lanes,
    const uint8_t *password, size_t password_size, const uint8_t *salt, size_t salt_size,
    const uint8_t *data, size_t data_size, uint8_t *tag, size_t tag_size)
{
    // The library changes none of its inputs, because no flag asks it to clear them.
    argon2_context context = {
        .out = tag, .outlen = (uint32_t)tag_size,
        .pwd = (uint8_t *)password, .pwdlen = (uint32_t)password_size,
        .salt = (uint8_t *)salt, .saltlen = (uint32_t)salt_size,
        .ad = data_size > 0 ? (uint8_t *)data : NULL, .adlen = (uint32_t)data_size,
        .t_cost = passes, .m_cost = memory_kib, .lanes = lanes, .threads = 1,
        .version = version, .flags = ARGON2_DEFAULT_FLAGS,
    };
    return argon2_ctx(&context, type);
}
