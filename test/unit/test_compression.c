/* Every Content-Encoding that clients use (facts §2.3; ENV-1's bodies): whole, cut, damaged, followed by more, too
 * large. The packed forms were made by gzip, zlib, zstd and brotli themselves.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/compression.h"
#include "base/gzip.h"

#include <stdio.h>

static const char plain[] = "off the beat, off the beat, off the beat\n";
static const uint8_t as_gzip[] = {0x1f, 0x8b, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0xcb, 0x4f, 0x4b,
                                  0x53, 0x28, 0xc9, 0x48, 0x55, 0x48, 0x4a, 0x4d, 0x2c, 0xd1, 0x51, 0xc8, 0xc7,
                                  0xc9, 0xe3, 0x02, 0x00, 0x23, 0xc7, 0x4b, 0x74, 0x29, 0x00, 0x00, 0x00};
static const uint8_t as_zlib[] = {0x78, 0xda, 0xcb, 0x4f, 0x4b, 0x53, 0x28, 0xc9, 0x48, 0x55, 0x48, 0x4a, 0x4d,
                                  0x2c, 0xd1, 0x51, 0xc8, 0xc7, 0xc9, 0xe3, 0x02, 0x00, 0x24, 0xc9, 0x0d, 0xab};
static const uint8_t as_zstd[] = {0x28, 0xb5, 0x2f, 0xfd, 0x24, 0x29, 0xad, 0x00, 0x00, 0x78, 0x6f, 0x66,
                                  0x66, 0x20, 0x74, 0x68, 0x65, 0x20, 0x62, 0x65, 0x61, 0x74, 0x2c, 0x20,
                                  0x0a, 0x01, 0x00, 0x61, 0x4f, 0x25, 0x8c, 0xc8, 0x8a, 0x26};
static const uint8_t as_brotli[] = {0xa1, 0x40, 0x01, 0xc0, 0x6f, 0xa4, 0x54, 0x1d, 0xde, 0x15, 0xc8, 0x5b, 0x9a, 0xb1,
                                    0x28, 0xa4, 0x22, 0x9a, 0x50, 0x53, 0x0f, 0xb8, 0x54, 0x26, 0x73, 0x8e, 0x00};
/* 1 MiB of zeros each. */
static const uint8_t zeros_as_zstd[] = {
    0x28, 0xb5, 0x2f, 0xfd, 0xa4, 0x00, 0x00, 0x10, 0x00, 0x4c, 0x00, 0x00, 0x08, 0x00, 0x01, 0x00, 0xfc, 0xff,
    0x39, 0x10, 0x02, 0x02, 0x00, 0x10, 0x00, 0x02, 0x00, 0x10, 0x00, 0x02, 0x00, 0x10, 0x00, 0x02, 0x00, 0x10,
    0x00, 0x02, 0x00, 0x10, 0x00, 0x02, 0x00, 0x10, 0x00, 0x03, 0x00, 0x10, 0x00, 0xf1, 0x3e, 0x16, 0xe1};
static const uint8_t zeros_as_brotli[] = {0x59, 0xff, 0xff, 0x8f, 0x7f, 0x02, 0x20,
                                          0x1e, 0x0b, 0x04, 0x72, 0xef, 0x1f, 0x00};

static const struct {
    enum compression compression;
    struct slice bytes;
} packed[] = {
    {COMPRESSION_NONE, {(const uint8_t *)plain, sizeof(plain) - 1}},
    {COMPRESSION_GZIP, {as_gzip, sizeof(as_gzip)}},
    {COMPRESSION_ZLIB, {as_zlib, sizeof(as_zlib)}},
    {COMPRESSION_ZSTD, {as_zstd, sizeof(as_zstd)}},
    {COMPRESSION_BROTLI, {as_brotli, sizeof(as_brotli)}},
};
enum { PACKED_COUNT = sizeof(packed) / sizeof(packed[0]), PLAIN_SIZE = sizeof(plain) - 1 };

TEST(each_encoding_gives_back_what_was_packed_after_what_was_there)
{
    for (size_t i = 0; i < PACKED_COUNT; i++) {
        struct buffer out;
        buffer_init(&out, 1000);
        buffer_append_text(&out, "before:");
        CHECK_UINT(decompress(packed[i].compression, packed[i].bytes, &out, NULL), STATUS_OK);
        CHECK_UINT(out.size, 7 + PLAIN_SIZE);
        CHECK(memcmp(out.data, "before:", 7) == 0 && memcmp(out.data + 7, plain, PLAIN_SIZE) == 0);
        buffer_fini(&out);
    }
}

TEST(what_is_cut_short_or_followed_by_something_else_is_rejected)
{
    uint8_t more[100];
    for (size_t i = 1; i < PACKED_COUNT; i++) {
        size_t size = packed[i].bytes.size;
        struct buffer out;
        buffer_init(&out, 1000);
        buffer_append_byte(&out, '!');
        for (size_t cut = 0; cut < size; cut++) {
            struct error error;
            CHECK_UINT(decompress(packed[i].compression, slice_of(packed[i].bytes.data, cut), &out, &error),
                       STATUS_MALFORMED);
            CHECK(strstr(error.message, "damaged or cut short"));
            CHECK_UINT(out.size, 1);
        }
        memcpy(more, packed[i].bytes.data, size);
        more[size] = 'x';
        CHECK_UINT(decompress(packed[i].compression, slice_of(more, size + 1), &out, NULL), STATUS_MALFORMED);
        CHECK_UINT(out.size, 1);
        buffer_fini(&out);
    }
}

/* Decompresses the first CUT of BYTES, and checks that OUT has the beginning of WHOLE. Returns how much of it. */
static size_t size_before_cut(enum compression compression, struct slice bytes, size_t cut, struct slice whole)
{
    struct buffer out;
    bool is_cut = false;
    buffer_init(&out, whole.size + 1000);
    buffer_append_byte(&out, '!');
    CHECK_UINT(decompress_front(compression, slice_of(bytes.data, cut), &out, &is_cut, NULL), STATUS_MALFORMED);
    CHECK(is_cut || out.size == 1);
    size_t size = out.size - 1;
    CHECK(size <= whole.size && (size == 0 || memcmp(out.data + 1, whole.data, size) == 0));
    buffer_fini(&out);
    return size;
}

static void add_lines(struct buffer *text)
{
    for (uint32_t i = 0; i < 6000; i++) {
        char line[64];
        (void)snprintf(line, sizeof(line), "main;work_%u;leaf_%u %u\n", i * 2654435761u >> 24, i * 40503u >> 20,
                       i % 97);
        buffer_append_text(text, line);
    }
}

TEST(what_is_before_a_cut_can_be_read)
{
    for (size_t i = 2; i < PACKED_COUNT; i++) { /* zlib has no mark, and is cut from its third byte on */
        for (size_t cut = 3; cut < packed[i].bytes.size; cut++)
            (void)size_before_cut(packed[i].compression, packed[i].bytes, cut, packed[0].bytes);
    }
    struct buffer whole, gzip;
    buffer_init(&whole, 1 << 20);
    buffer_init(&gzip, 1 << 20);
    add_lines(&whole);
    size_t size_of_one = whole.size;
    CHECK_UINT(gzip_compress(buffer_slice(&whole), 6, &gzip, NULL), STATUS_OK);
    size_t front = gzip.size;
    add_lines(&whole);
    CHECK_UINT(gzip_compress(slice_of(whole.data, size_of_one), 1, &gzip, NULL), STATUS_OK); /* two members */
    size_t before = 0;
    for (size_t cut = 20; cut < gzip.size; cut += cut < front - 40 || cut > front + 40 ? 997 : 1) {
        if (cut == front) continue; /* a whole file */
        size_t size = size_before_cut(COMPRESSION_GZIP, buffer_slice(&gzip), cut, buffer_slice(&whole));
        CHECK(size >= before);
        before = size;
    }
    CHECK(before > whole.size * 9 / 10);
    buffer_fini(&whole);
    buffer_fini(&gzip);
}

TEST(damage_is_no_cut)
{
    for (size_t i = 1; i < PACKED_COUNT; i++) {
        uint8_t damaged[100];
        size_t size = packed[i].bytes.size;
        memcpy(damaged, packed[i].bytes.data, size);
        damaged[size - 3] ^= 0x40; /* the checksum of all but brotli, which has none */
        struct buffer out;
        bool is_cut = true;
        buffer_init(&out, 1000);
        if (packed[i].compression == COMPRESSION_BROTLI) continue;
        CHECK_UINT(decompress_front(packed[i].compression, slice_of(damaged, size), &out, &is_cut, NULL),
                   STATUS_MALFORMED);
        CHECK(!is_cut);
        CHECK_UINT(out.size, 0);
        buffer_fini(&out);
    }
}

TEST(the_maximum_of_the_output_holds_to_the_byte)
{
    for (size_t i = 0; i < PACKED_COUNT; i++) {
        struct buffer out;
        buffer_init(&out, PLAIN_SIZE);
        CHECK_UINT(decompress(packed[i].compression, packed[i].bytes, &out, NULL), STATUS_OK);
        CHECK_UINT(out.size, PLAIN_SIZE);
        buffer_fini(&out);
        buffer_init(&out, PLAIN_SIZE - 1);
        CHECK_UINT(decompress(packed[i].compression, packed[i].bytes, &out, NULL), STATUS_TOO_LARGE);
        CHECK_UINT(out.size, 0);
        buffer_fini(&out);
    }
}

TEST(a_few_bytes_that_hold_very_many_cost_no_more_than_the_maximum)
{
    static const struct {
        enum compression compression;
        struct slice bytes;
    } bombs[] = {{COMPRESSION_ZSTD, {zeros_as_zstd, sizeof(zeros_as_zstd)}},
                 {COMPRESSION_BROTLI, {zeros_as_brotli, sizeof(zeros_as_brotli)}}};
    for (size_t i = 0; i < 2; i++) {
        struct buffer out;
        buffer_init(&out, (1 << 20) - 1);
        CHECK_UINT(decompress(bombs[i].compression, bombs[i].bytes, &out, NULL), STATUS_TOO_LARGE);
        CHECK(out.capacity < 1 << 20);
        buffer_fini(&out);
        buffer_init(&out, 1 << 20);
        CHECK_UINT(decompress(bombs[i].compression, bombs[i].bytes, &out, NULL), STATUS_OK);
        CHECK_UINT(out.size, 1 << 20);
        buffer_fini(&out);
    }
}

TEST(gzip_members_and_zstd_frames_join)
{
    for (size_t i = 1; i < PACKED_COUNT; i++) {
        uint8_t twice[200];
        size_t size = packed[i].bytes.size;
        bool may_join = packed[i].compression == COMPRESSION_GZIP || packed[i].compression == COMPRESSION_ZSTD;
        struct buffer out;
        buffer_init(&out, 1000);
        memcpy(twice, packed[i].bytes.data, size);
        memcpy(twice + size, packed[i].bytes.data, size);
        CHECK_UINT(decompress(packed[i].compression, slice_of(twice, 2 * size), &out, NULL),
                   may_join ? STATUS_OK : STATUS_MALFORMED);
        CHECK_UINT(out.size, may_join ? 2 * PLAIN_SIZE : 0);
        buffer_fini(&out);
    }
}

TEST(what_has_a_mark_is_known_by_it)
{
    for (size_t i = 0; i < PACKED_COUNT; i++) {
        enum compression expected = packed[i].compression;
        if (expected == COMPRESSION_BROTLI) expected = COMPRESSION_NONE;
        CHECK_UINT(compression_detect(packed[i].bytes), expected);
        for (size_t cut = 0; cut < 2; cut++) {
            CHECK_UINT(compression_detect(slice_of(packed[i].bytes.data, cut)), COMPRESSION_NONE);
        }
    }
    CHECK_UINT(compression_detect(slice_of_text("x^2")),
               COMPRESSION_ZLIB); /* a coincidence that only decompression shows */
    CHECK_UINT(compression_detect(slice_of_text("{}")), COMPRESSION_NONE);
}

TEST(encodings_are_named_as_clients_name_them)
{
    static const struct {
        const char *name;
        int expected; /* -1: none */
    } names[] = {
        {"", COMPRESSION_NONE},
        {"identity", COMPRESSION_NONE},
        {"UTF-8", COMPRESSION_NONE},
        {"utf-8", COMPRESSION_NONE},
        {"gzip", COMPRESSION_GZIP},
        {"GZip", COMPRESSION_GZIP},
        {"x-gzip", COMPRESSION_GZIP},
        {"deflate", COMPRESSION_ZLIB},
        {"br", COMPRESSION_BROTLI},
        {"zstd", COMPRESSION_ZSTD},
        {"gzi", -1},
        {"gzip ", -1},
        {"gzip, br", -1},
        {"compress", -1},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        enum compression compression;
        bool is_known = compression_of_encoding(slice_of_text(names[i].name), &compression);
        CHECK_INT(is_known ? (int)compression : -1, names[i].expected);
    }
}

TEST_MAIN()
