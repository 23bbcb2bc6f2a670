// What <offbeat.hpp> promises beyond <offbeat.h>, as one transaction that install.py looks at.
// SPDX-License-Identifier: MIT
#include <offbeat.hpp>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

static_assert(!std::is_copy_constructible_v<offbeat::span>, "a span has one owner");
static_assert(std::is_nothrow_move_constructible_v<offbeat::span>, "so that vectors move it");
static_assert(std::is_nothrow_move_assignable_v<offbeat::span>, "so that vectors move it");
static_assert(std::is_nothrow_constructible_v<offbeat::span, const char *, std::string &>, "nothing throws");
static_assert(!std::is_constructible_v<offbeat::span, std::string_view>, "a view has no NUL at its end");
static_assert(!std::is_move_constructible_v<offbeat::scope>, "a scope stays where it is");

namespace
{

// A span that begins and ends while an exception is on its way did not fail.
struct ends_well {
    const offbeat::span &parent;
    ~ends_well()
    {
        auto span = parent.child("test", "in a destructor");
    }
};

void throw_through(const offbeat::span &parent)
{
    auto span = parent.child("test", "unwound");
    ends_well inner{parent};
    throw std::runtime_error("thrown");
}

int run(offbeat::transaction &root)
{
    std::string description = "moved";
    auto first = root.child("test", description);
    offbeat::span second(std::move(first));
    if (first || !second) return 1;

    offbeat::span assigned;
    assigned = root.child("test", "assigned");

    try {
        throw_through(root);
    } catch (const std::runtime_error &) {
    }

    offbeat::user user;
    user.id = "u-1";
    if (!root.set_user(user)) return 9;

    std::thread([parent = root.share()] { auto span = parent.child("test", "handed over"); }).join();

    if (offbeat::span("test", "nobody's child")) return 2;
    {
        auto here = root.enter();
        if (offbeat::span_reference::current().get() != root.get()) return 3;
        offbeat::span span("test", "current");
        const char *text = "b";
        if (!span.set("text", text) || !span.set("number", 1.5) || !span.set("integer", INT64_C(9007199254740993)) ||
            !span.set("large", UINT64_MAX) || !span.set("flag", true))
            return 4;
        if (std::string_view(span.headers().sentry_trace).empty()) return 5;
    }
    if (offbeat::span_reference::current()) return 6;
    return 0;
}

} // namespace

int main()
{
    static bool was_asked = false;
    static auto sampler = [](const offbeat_sampling &sampling) noexcept {
        was_asked = std::string_view(sampling.name) == "root";
        return 1.0;
    };
    static const auto filter = [](std::string_view type, std::string_view payload) noexcept {
        return type == "transaction" && payload.front() == '{' && payload.back() == '}';
    };
    static auto log = [](const char *) noexcept {};
    static auto scrub = [](offbeat::finished_span &span) noexcept {
        bool has_flag = false;
        span.for_each([&](const offbeat_attribute &value) { has_flag |= std::string_view(value.key) == "flag"; });
        if (has_flag && span.remove("flag")) span.set("had_flag", true);
        return true;
    };
    static auto rename = [](offbeat::finished_span &root) noexcept {
        root.set_transaction_name(root.transaction_name() == "root" ? "renamed" : "wrong");
        return true;
    };
    offbeat::options options;
    options.profile_session_sample_rate = 1.0;
    options.filter_spans(scrub);
    options.filter_transactions(rename);
    options.sample_traces_by(sampler);
    options.send_only(filter);
    options.log_to(log);
    offbeat::session session(options);
    if (!session.is_active()) return 7;
    int status;
    {
        offbeat::profiler profiler;
        if (std::string_view(offbeat::profiler_id().c_str()).size() != 32) return 10;
        offbeat::measure("queue", offbeat::unit::byte, 7);
        offbeat::measure("took", std::chrono::milliseconds(2));
        offbeat::transaction root("root", "test");
        status = run(root);
    }
    if (!was_asked) return 8;
    if (offbeat::profiler_id()) return 11;

    /* 0.0 and false count before the environment, which says 1 and true. */
    offbeat::options off;
    off.profile_session_sample_rate = 0.0;
    off.profiles_sample_rate = 0.0;
    off.debug = false;
    const offbeat_options given = off.for_c();
    if (given.profile_session_sample_rate != 0 || !std::signbit(given.profile_session_sample_rate)) return 12;
    if (given.debug != OFFBEAT_FALSE || given.is_ui != 0 || std::signbit(given.traces_sample_rate)) return 13;
    return status;
}
