/* Prints strings whose hashes have the same place in a hash table. An attacker who knows the program can compute such
 * strings for the seed that hash.c begins with; each process replaces that seed, which the attacker does not know.
 * Arguments: how many strings, and the bits of the place.
 * SPDX-License-Identifier: MIT */
#include "base/hash.h"
#include "base/index_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { STRING_SIZE = 8 };

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    unsigned long count = strtoul(argv[1], NULL, 10), bits = strtoul(argv[2], NULL, 10);
    uint32_t mask = (uint32_t)(((uint64_t)1 << bits) - 1);
    hash_seed[0] = HASH_SEED_FIRST;
    hash_seed[1] = HASH_SEED_SECOND;
    for (uint64_t number = 0; count > 0; number++) {
        char text[STRING_SIZE + 1];
        uint64_t rest = number;
        for (int i = STRING_SIZE; i-- > 0; rest >>= 5) text[i] = (char)('A' + (rest & 31)); /* A to ` */
        text[STRING_SIZE] = '\0';
        if ((index_table_fold(hash_bytes(text, STRING_SIZE)) & mask) != 0) continue;
        (void)puts(text);
        count--;
    }
    return 0;
}
