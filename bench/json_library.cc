// The JSON library beside which bench/formats.py puts our reading: simdjson makes a tree of each file given, again and
// again; prints its version, bytes and the best seconds for all.  SPDX-License-Identifier: MIT
#include <cstdio>
#include <ctime>
#include <simdjson.h>
#include <vector>

static double processor_seconds()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}

int main(int argc, char **argv)
{
    constexpr int rounds = 15;
    constexpr size_t round_bytes_min = 8 << 20;
    std::vector<simdjson::padded_string> files;
    size_t size = 0;
    for (int i = 1; i < argc; i++) {
        files.push_back(simdjson::padded_string::load(argv[i]));
        size += files.back().size();
    }
    const size_t repeats = round_bytes_min / (size + 1) + 1;
    simdjson::dom::parser parser;
    double best = 1e9;
    for (int round = 0; round < rounds; round++) {
        double before = processor_seconds();
        for (size_t repeat = 0; repeat < repeats; repeat++) {
            for (auto &file : files) {
                if (parser.parse(file).error()) return 1;
            }
        }
        best = std::min(best, (processor_seconds() - before) / double(repeats));
    }
    std::printf("%s %zu %.9f\n", SIMDJSON_STRINGIFY(SIMDJSON_VERSION), size, best);
}
