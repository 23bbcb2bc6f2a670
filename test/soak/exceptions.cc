// A storm of C++ exceptions thrown through many frames, on several threads. `storm_exceptions SECONDS`.
// SPDX-License-Identifier: MIT
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

std::atomic<unsigned> alive{0};

struct Counted {
    Counted() { ++alive; }
    ~Counted() { --alive; }
};

void check(bool condition, const char *what)
{
    if (condition) return;
    std::fprintf(stderr, "exceptions.cc: %s\n", what);
    std::_Exit(1);
}

__attribute__((noinline)) int descend(int depth, int thrown)
{
    Counted counted;
    if (depth == 0) throw std::runtime_error(std::to_string(thrown));
    int result = descend(depth - 1, thrown) + 1;
    return result;
}

__attribute__((noinline)) void rethrow(int depth, int thrown)
{
    try {
        descend(depth, thrown);
    } catch (const std::runtime_error &) {
        throw;
    }
}

void run(std::chrono::steady_clock::time_point end)
{
    for (int i = 0; std::chrono::steady_clock::now() < end; i++) {
        try {
            rethrow(5 + i % 60, i);
            check(false, "nothing was thrown");
        } catch (const std::exception &thrown) {
            check(thrown.what() == std::to_string(i), "it is not what was thrown");
        }
    }
}

} // namespace

int main(int argc, char **argv)
{
    auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(long(std::atof(argc > 1 ? argv[1] : "1") * 1000));
    std::vector<std::thread> threads;
    for (int i = 0; i < 3; i++) threads.emplace_back(run, end);
    for (auto &thread : threads) thread.join();
    check(alive == 0, "something was not destroyed");
}
