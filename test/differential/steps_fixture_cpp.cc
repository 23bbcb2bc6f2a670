/* Exceptions and virtual calls.  SPDX-License-Identifier: MIT */
#include <stdexcept>
#include <string>

namespace
{
struct shape {
    virtual ~shape() = default;
    virtual long area(long scale) const = 0;
};

struct square : shape {
    long side = 3;
    long area(long scale) const override
    {
        if (scale < 0) throw std::runtime_error("negative");
        return side * side * scale;
    }
};

struct guard {
    long *counter;
    ~guard()
    {
        ++*counter;
    }
};

__attribute__((noinline)) long throwing(const shape &shape, long depth, long *counter)
{
    guard guard{counter};
    if (depth == 0) return shape.area(-1);
    return throwing(shape, depth - 1, counter) + 1;
}
}

extern "C" void steps_cpp(void)
{
    long counter = 0;
    square square;
    try {
        counter += throwing(square, 3, &counter);
    } catch (const std::exception &error) {
        counter += static_cast<long>(std::string(error.what()).size());
    }
    counter += square.area(counter);
    static volatile long sink;
    sink = counter;
}
