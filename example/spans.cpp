/* Spans that end with their scope: offbeat in C++17.
 *
 *     c++ -std=c++17 -g spans.cpp -o spans $(pkg-config --cflags --libs offbeat)
 *     OFFBEAT_DSN=https://KEY@HOST/PROJECT ./spans
 *
 * It imports 400 pretended files, or as many as the argument says. Every fourth is broken: its exception passes through
 * the spans, which end with the status "internal_error".  SPDX-License-Identifier: MIT */
#include <offbeat.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace
{

std::vector<unsigned> parse(unsigned file)
{
    /* Below the current span, which is the file's; over when this function returns. */
    offbeat::span span("file.parse", "comma separated values");
    std::vector<unsigned> rows(200000);
    std::iota(rows.begin(), rows.end(), file);
    if (file % 4 == 3) throw std::runtime_error("row 17 has no end");
    span.set("rows", rows.size());
    return rows;
}

void sort(std::vector<unsigned> &rows)
{
    offbeat::span span("function", "sort");
    std::sort(rows.begin(), rows.end(), [](unsigned a, unsigned b) { return a * 2654435761u < b * 2654435761u; });
}

void import(unsigned file)
{
    offbeat::transaction transaction("import " + std::to_string(file % 4), "task");
    auto here = transaction.enter(); /* what starts further down belongs to it */
    transaction.set_tag("format", "csv");
    auto rows = parse(file);
    sort(rows);
    transaction.set_status(OFFBEAT_STATUS_OK);
}

} // namespace

int main(int argc, char **argv)
{
    unsigned files = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 400;

    /* Called for each transaction that starts, by C: noexcept. Not copied: static. */
    static auto sampler = [](const offbeat_sampling &sampling) noexcept {
        return std::string_view(sampling.op) == "task" ? 1.0 : 0.1;
    };
    offbeat::options options;
    options.release = "spans@1.0.0";
    options.profile_session_sample_rate = 1.0;
    options.profile_lifecycle = OFFBEAT_LIFECYCLE_TRACE; /* profiled is what is inside of sampled transactions */
    options.sample_traces_by(sampler);
    offbeat::session session(options);

    unsigned broken = 0;
    for (unsigned file = 0; file < files; file++) {
        try {
            import(file);
        } catch (const std::runtime_error &) {
            broken++;
        }
    }
    std::printf("%u files, %u broken\n", files, broken);
}
