// Our hash table beside the hash tables of libraries: stacks are interned as the profile does it, by parent and location; prints
// nanoseconds and bytes. And our hash of a string beside XXH3, for the names on standard input, one a line.
//
//     g++ -std=c++17 -O2 -I src bench/hash_tables.cc build/src/base/libbase.a $(pkg-config --cflags --libs glib-2.0) -lxxhash -o hash_tables
//
// SPDX-License-Identifier: MIT
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <glib.h>
#include <iostream>
#include <malloc.h>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <uthash.h>
#include <vector>
#include <xxhash.h>

extern "C" {
#include "base/hash.h"
#include "base/index_table.h"
}

struct stack {
    uint32_t parent, location;
};

enum { DISTINCT = 400000, LOOKUPS = 4000000, ROUNDS = 3 };

static double processor_seconds()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}

static uint64_t key_of(const stack &s)
{
    return uint64_t(s.parent) << 32 | s.location;
}

/* INTERN gives the number of a stack, and a new one the next number. */
using Intern = std::function<uint32_t(const stack &)>;

static void measure(const char *library, const std::vector<stack> &lookups, const std::function<Intern()> &make)
{
    double best = 1e9;
    size_t bytes = 0;
    uint64_t sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        size_t before_bytes = mallinfo2().uordblks + mallinfo2().hblkhd;
        double before = processor_seconds();
        Intern intern = make();
        sum = 0;
        for (const stack &s : lookups) sum += intern(s);
        best = std::min(best, processor_seconds() - before);
        bytes = mallinfo2().uordblks + mallinfo2().hblkhd - before_bytes;
    }
    std::printf("  %-20s %6.1f ns a stack, %6.1f bytes an entry, check %llx\n", library, best / double(lookups.size()) * 1e9,
                double(bytes) / DISTINCT, (unsigned long long)sum);
}

struct ours {
    std::vector<stack> items;
    index_table table{};
    ~ours() { index_table_fini(&table); }
};

static bool is_equal(const void *context, uint32_t index, const void *key)
{
    auto &items = *static_cast<const std::vector<stack> *>(context);
    return key_of(items[index]) == key_of(*static_cast<const stack *>(key));
}

static Intern with_ours()
{
    auto state = std::make_shared<ours>();
    return [state](const stack &s) {
        uint64_t hash = hash_mix(s.parent, s.location);
        uint32_t found = index_table_find(&state->table, hash, is_equal, &state->items, &s);
        if (found != INDEX_NONE) return found;
        found = uint32_t(state->items.size());
        state->items.push_back(s);
        if (!index_table_add(&state->table, hash, found)) std::abort();
        return found;
    };
}

static Intern with_standard_library()
{
    auto table = std::make_shared<std::unordered_map<uint64_t, uint32_t>>();
    return [table](const stack &s) { return table->try_emplace(key_of(s), uint32_t(table->size())).first->second; };
}

static Intern with_glib()
{
    std::shared_ptr<GHashTable> table(g_hash_table_new(g_direct_hash, g_direct_equal), g_hash_table_unref);
    return [table](const stack &s) {
        gpointer found, key = reinterpret_cast<gpointer>(key_of(s));
        if (g_hash_table_lookup_extended(table.get(), key, nullptr, &found)) return uint32_t(GPOINTER_TO_UINT(found));
        uint32_t next = g_hash_table_size(table.get());
        g_hash_table_insert(table.get(), key, GUINT_TO_POINTER(next));
        return next;
    };
}

struct entry {
    uint64_t key;
    uint32_t number;
    UT_hash_handle hh;
};

static Intern with_uthash()
{
    auto table = std::make_shared<entry *>(nullptr);
    return [table](const stack &s) {
        entry *found, *&head = *table;
        uint64_t key = key_of(s);
        HASH_FIND(hh, head, &key, sizeof(key), found);
        if (found) return found->number;
        found = new entry{key, HASH_COUNT(head), {}};
        HASH_ADD(hh, head, key, sizeof(key), found);
        return found->number;
    };
}

/* A few stacks are met often, most of them seldom, as in a profile. */
static std::vector<stack> make_lookups()
{
    std::mt19937_64 random(1);
    std::vector<stack> all(DISTINCT), lookups;
    for (uint32_t i = 0; i < DISTINCT; i++) all[i] = {uint32_t(random() % (i + 1)), i};
    for (uint32_t i = 0; i < LOOKUPS; i++) lookups.push_back(all[random() % (random() % DISTINCT + 1)]);
    return lookups;
}

static void measure_hash(const char *library, const std::vector<std::string> &names,
                         const std::function<uint64_t(const std::string &)> &hash)
{
    double best = 1e9;
    uint64_t sum = 0;
    for (int round = 0; round < 10; round++) {
        double before = processor_seconds();
        for (const auto &name : names) sum += hash(name);
        best = std::min(best, processor_seconds() - before);
    }
    std::printf("  %-20s %6.1f ns a name, check %llx\n", library, best / double(names.size()) * 1e9, (unsigned long long)sum);
}

int main()
{
    std::vector<std::string> names;
    for (std::string name; std::getline(std::cin, name);) names.push_back(name);
    std::vector<stack> lookups = make_lookups();
    std::printf("%d stacks, %d of them distinct\n", LOOKUPS, DISTINCT);
    measure("ours", lookups, with_ours);
    measure("std::unordered_map", lookups, with_standard_library);
    measure("GLib", lookups, with_glib);
    measure("uthash", lookups, with_uthash);
    std::printf("%zu names\n", names.size());
    measure_hash("ours", names, [](const std::string &name) { return hash_bytes(name.data(), name.size()); });
    measure_hash("XXH3", names, [](const std::string &name) { return XXH3_64bits(name.data(), name.size()); });
}
