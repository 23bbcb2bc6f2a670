// Our regular expressions beside RE2 and PCRE2: names of functions on standard input, one a line, are matched with
// expressions as users write them and with hostile ones; prints the nanoseconds for each name, and the matches.
//
//     cc -O2 -I src -c bench/regexps.c && g++ -std=c++17 -O2 bench/regexps.cc regexps.o build/src/base/libbase.a -lre2 -lpcre2-8 -o regexps
//
// SPDX-License-Identifier: MIT
#define PCRE2_CODE_UNIT_WIDTH 8
#include <cstdio>
#include <ctime>
#include <functional>
#include <iostream>
#include <pcre2.h>
#include <re2/re2.h>
#include <string>
#include <vector>

struct regexp;
extern "C" {
regexp *ours_new(const char *pattern, size_t size);
void ours_free(regexp *ours);
bool ours_matches(regexp *ours, const char *text, size_t size);
}

static double processor_seconds()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return double(now.tv_sec) + double(now.tv_nsec) / 1e9;
}

using Matcher = std::function<bool(const std::string &)>;

/* Negative: not all could be matched within the library's limits. */
static void measure(const char *library, const Matcher &matches, const std::vector<std::string> &names)
{
    double best = 1e9;
    size_t count = 0;
    for (int round = 0; round < 3 && (round == 0 || best < 1); round++) {
        double before = processor_seconds();
        count = 0;
        for (const auto &name : names) count += matches(name);
        best = std::min(best, processor_seconds() - before);
    }
    std::printf("  %-18s %9.1f ns a name, %zu matches\n", library, best / double(names.size()) * 1e9, count);
}

static void measure_all(const std::string &pattern, const std::vector<std::string> &names)
{
    std::printf("%.60s (%zu names of %zu bytes)\n", pattern.c_str(), names.size(), names[0].size());
    if (regexp *ours = ours_new(pattern.data(), pattern.size())) {
        measure("ours", [&](const std::string &name) { return ours_matches(ours, name.data(), name.size()); }, names);
        ours_free(ours);
    }
    RE2 re2(pattern, RE2::Quiet);
    if (re2.ok()) measure("RE2", [&](const std::string &name) { return RE2::PartialMatch(name, re2); }, names);
    for (bool has_jit : {false, true}) {
        int code;
        PCRE2_SIZE offset;
        pcre2_code *compiled = pcre2_compile(PCRE2_SPTR(pattern.data()), pattern.size(), PCRE2_UTF, &code, &offset, nullptr);
        if (!compiled) continue;
        if (has_jit) pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
        pcre2_match_data *data = pcre2_match_data_create_from_pattern(compiled, nullptr);
        size_t failures = 0;
        measure(has_jit ? "PCRE2 with JIT" : "PCRE2", [&](const std::string &name) {
            int result = pcre2_match(compiled, PCRE2_SPTR(name.data()), name.size(), 0, 0, data, nullptr);
            failures += result < PCRE2_ERROR_NOMATCH;
            return result >= 0;
        }, names);
        if (failures) std::printf("  %-18s %zu names were over its limits\n", "", failures);
        pcre2_match_data_free(data);
        pcre2_code_free(compiled);
    }
}

int main()
{
    std::vector<std::string> names;
    for (std::string line; std::getline(std::cin, line);) names.push_back(line);
    for (const char *pattern : {"runtime", "^main\\.", "(?i)alloc", "malloc|free|calloc|realloc|operator new", "^std::.*<.*>::push_back$",
                                "lzma.*decode|hash_[a-z]+[0-9]", "\\bparse\\b", ".*"})
        measure_all(pattern, names);
    std::string many;
    for (int i = 0; i < 60; i++) many += (i ? "|" : "") + ("function_" + std::to_string(i * 7919)) + "$";
    measure_all(many, names);
    const std::vector<std::string> same(20, std::string(2000, 'a'));
    measure_all("(a+)+b", same);
    measure_all("(a?){40}a{40}b", same);
    measure_all("(.*)(.*)(.*)(.*)(.*)b", same);
    measure_all("(x+x+)+y|(a|aa)+c", same);
    measure_all("[ab]{1,200}[ac]{1,200}d", same);
}
