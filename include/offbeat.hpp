/* offbeat for C++17: spans that end with their scope. All else is as in C: <offbeat.h> says what each function does,
 * and its functions and these classes may be mixed.
 *
 *     #include <offbeat.hpp>
 *
 *     int main()
 *     {
 *         offbeat::options options;
 *         options.dsn = "https://KEY@HOST/PROJECT";
 *         options.profile_session_sample_rate = 1.0;
 *         options.traces_sample_rate = 0.1;
 *         offbeat::session session(options);
 *         offbeat::profiler profiler;
 *
 *         offbeat::transaction request("GET /users", "http.server");
 *         auto here = request.enter();
 *         offbeat::span query("db", "SELECT …"); // below the request, and below it whatever starts further down
 *     }
 *
 * Nothing here throws, and nothing allocates but the library itself. A span that is destroyed because of an exception
 * has the status "internal_error".
 *
 * Texts are `const char *` or `std::string`. A `std::string_view` has no NUL at its end, so that it would have to be
 * copied: say so, with `std::string(view)`.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_HPP
#define OFFBEAT_HPP

#if __cplusplus < 201703L
#error "offbeat.hpp needs C++17: compile with -std=c++17 or a later standard"
#endif

#include <offbeat.h>

#include <chrono>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace offbeat
{

/* A parameter: a text that ends with a NUL, or none. */
class text
{
  public:
    constexpr text(const char *characters) noexcept : characters_(characters)
    {
    }
    text(const std::string &characters) noexcept : characters_(characters.c_str())
    {
    }
    text(std::string_view) = delete;
    constexpr const char *c_str() const noexcept
    {
        return characters_;
    }

  private:
    const char *characters_;
};

/* --- Options, init and shutdown ----------------------------------------------------------------------------------- */

class finished_span;

/* The members of struct offbeat_options. Those that are std::optional also take 0.0 and false, which then count before
 * the environment. Instead of a function and a pointer, a callable can be given. It is called out of C, so it must be
 * noexcept; it is not copied, and a late thread of the library may still call it after the shutdown: make it static. */
class options : private offbeat_options
{
  public:
    using offbeat_options::ca_file, offbeat_options::chunk_seconds, offbeat_options::cpu_max_percent,
        offbeat_options::dist, offbeat_options::dsn, offbeat_options::environment, offbeat_options::frame_rate_hz,
        offbeat_options::frequency_hz, offbeat_options::helper, offbeat_options::in_app_exclude,
        offbeat_options::in_app_include, offbeat_options::mode, offbeat_options::org_id, offbeat_options::platform,
        offbeat_options::profile_lifecycle, offbeat_options::proxy, offbeat_options::release,
        offbeat_options::server_name, offbeat_options::service, offbeat_options::shutdown_timeout_ms,
        offbeat_options::spool_bytes_max, offbeat_options::spool_directory, offbeat_options::symbols;

    std::optional<double> profile_session_sample_rate, traces_sample_rate, profiles_sample_rate;
    std::optional<bool> start_profiler_on_app_start, is_ui, repeats_idle, strict_trace_continuation, debug;

    options() noexcept : offbeat_options{}
    {
    }

    /* double sampler(const offbeat_sampling &) noexcept */
    template <typename Sampler> void sample_traces_by(Sampler &sampler) noexcept
    {
        traces_sampler = call_sampler<Sampler>;
        traces_sampler_data = address_of(sampler);
    }
    template <typename Sampler> void sample_profiles_by(Sampler &sampler) noexcept
    {
        profiles_sampler = call_sampler<Sampler>;
        profiles_sampler_data = address_of(sampler);
    }

    /* bool filter(std::string_view type, std::string_view payload) noexcept */
    template <typename Filter> void send_only(Filter &filter) noexcept
    {
        static_assert(std::is_nothrow_invocable_r_v<bool, Filter &, std::string_view, std::string_view>,
                      "a filter is called with the type and the payload, returns bool and is noexcept");
        before_send = [](void *data, const char *type, const char *payload, size_t payload_size) -> bool {
            return (*static_cast<Filter *>(data))(type, std::string_view(payload, payload_size));
        };
        before_send_data = address_of(filter);
    }

    /* bool filter(offbeat::finished_span &) noexcept: changes the transaction or span, or returns false to drop it. */
    template <typename Filter> void filter_transactions(Filter &filter) noexcept
    {
        before_send_transaction = call_filter<Filter>;
        before_send_transaction_data = address_of(filter);
    }
    template <typename Filter> void filter_spans(Filter &filter) noexcept
    {
        before_send_span = call_filter<Filter>;
        before_send_span_data = address_of(filter);
    }

    /* void writer(const char *line) noexcept */
    template <typename Writer> void log_to(Writer &writer) noexcept
    {
        static_assert(std::is_nothrow_invocable_v<Writer &, const char *>, "a log takes const char * and is noexcept");
        log = [](void *data, const char *message) { (*static_cast<Writer *>(data))(message); };
        log_data = address_of(writer);
    }

    /* Returns the options for offbeat_init. */
    offbeat_options for_c() const noexcept
    {
        offbeat_options all = *this;
        all.size = sizeof(all);
        all.profile_session_sample_rate = rate(profile_session_sample_rate);
        all.traces_sample_rate = rate(traces_sample_rate);
        all.profiles_sample_rate = rate(profiles_sample_rate);
        all.start_profiler_on_app_start = flag(start_profiler_on_app_start);
        all.is_ui = flag(is_ui);
        all.repeats_idle = flag(repeats_idle);
        all.strict_trace_continuation = flag(strict_trace_continuation);
        all.debug = flag(debug);
        return all;
    }

  private:
    static double rate(std::optional<double> given) noexcept
    {
        return !given ? 0 : *given == 0 ? OFFBEAT_RATE_ZERO : *given;
    }
    static offbeat_flag flag(std::optional<bool> given) noexcept
    {
        return static_cast<offbeat_flag>(!given ? 0 : *given ? 1 : OFFBEAT_FALSE);
    }
    template <typename Sampler> static double call_sampler(void *data, const offbeat_sampling *sampling)
    {
        static_assert(std::is_nothrow_invocable_r_v<double, Sampler &, const offbeat_sampling &>,
                      "a sampler takes const offbeat_sampling &, returns a rate and is noexcept");
        return (*static_cast<Sampler *>(data))(*sampling);
    }
    template <typename Filter, typename Span = finished_span> static bool call_filter(void *data, offbeat_span *span)
    {
        static_assert(std::is_nothrow_invocable_r_v<bool, Filter &, Span &>,
                      "a filter takes offbeat::finished_span &, returns bool and is noexcept");
        Span finished(span);
        return (*static_cast<Filter *>(data))(finished);
    }
    template <typename Callable> static void *address_of(Callable &callable) noexcept
    {
        return const_cast<void *>(static_cast<const void *>(std::addressof(callable)));
    }
};

inline bool init(const options &options) noexcept
{
    const offbeat_options all = options.for_c();
    return offbeat_init(&all);
}

/* From offbeat_init to offbeat_shutdown: one in the process, in main. */
class session
{
  public:
    session() noexcept : is_active_(offbeat_init(nullptr))
    {
    } /* by the environment alone */
    explicit session(const options &options) noexcept : is_active_(init(options))
    {
    }
    ~session()
    {
        offbeat_shutdown();
    }
    session(const session &) = delete;
    session &operator=(const session &) = delete;

    /* Returns what offbeat_init has returned. */
    bool is_active() const noexcept
    {
        return is_active_;
    }

    static bool flush(std::chrono::milliseconds timeout) noexcept
    {
        constexpr long long longest = UINT32_MAX;
        const long long count = timeout.count();
        return offbeat_flush(static_cast<uint32_t>(count < 0 ? 0 : count > longest ? longest : count));
    }

  private:
    bool is_active_;
};

/* --- The profiler and measurements -------------------------------------------------------------------------------- */

inline void start_profiler() noexcept
{
    offbeat_start_profiler();
}
inline void stop_profiler() noexcept
{
    offbeat_stop_profiler();
}

/* The profiler runs while this lives. */
class profiler
{
  public:
    profiler() noexcept
    {
        offbeat_start_profiler();
    }
    ~profiler()
    {
        offbeat_stop_profiler();
    }
    profiler(const profiler &) = delete;
    profiler &operator=(const profiler &) = delete;
};

/* The id of the profiler that runs; empty, of which `if (id)` is false, if none does. */
class profiler_id
{
  public:
    profiler_id() noexcept
    {
        (void)offbeat_profiler_id(characters_);
    }
    explicit operator bool() const noexcept
    {
        return characters_[0] != 0;
    }
    const char *c_str() const noexcept
    {
        return characters_;
    }
    std::string_view view() const noexcept
    {
        return characters_;
    }

  private:
    char characters_[OFFBEAT_ID_SIZE];
};

enum class unit { nanosecond, hertz, byte, percent };

/* NAME has VALUE now. */
inline void measure(text name, unit unit, double value) noexcept
{
    constexpr const char *names[] = {"nanosecond", "hertz", "byte", "percent"};
    offbeat_measure(name.c_str(), names[static_cast<int>(unit)], value);
}
inline void measure(text name, std::chrono::nanoseconds duration) noexcept
{
    measure(name, unit::nanosecond, static_cast<double>(duration.count()));
}

inline void frame_rendered(std::chrono::nanoseconds duration) noexcept
{
    if (duration.count() > 0) offbeat_frame_rendered(static_cast<uint64_t>(duration.count()));
}

/* --- Spans -------------------------------------------------------------------------------------------------------- */

class span;
class span_reference;
class scope;

/* struct offbeat_user with its size set: set its members. */
struct user : offbeat_user {
    user() noexcept : offbeat_user{}
    {
        size = sizeof(offbeat_user);
    }
};

/* The operations of a span, no matter which object owns it. An empty one, of which `if (span)` is false, does nothing.
 */
class basic_span
{
  public:
    basic_span(const basic_span &) = delete;
    basic_span &operator=(const basic_span &) = delete;

    explicit operator bool() const noexcept
    {
        return handle_ != nullptr;
    }
    offbeat_span *get() const noexcept
    {
        return handle_;
    } /* stays the property of this */
    bool is_sampled() const noexcept
    {
        return offbeat_span_is_sampled(handle_);
    }

    /* A child, which belongs to the calling thread. It is not current: see enter. */
    span child(text op, text description = nullptr) const noexcept;
    /* One more owner, for instance for another thread, which starts a child of it. */
    span_reference share() const noexcept;
    /* Current on this thread, so that `offbeat::span(…)` starts children of it, until what is returned is gone. */
    [[nodiscard]] scope enter() const noexcept;

    void set_status(offbeat_status status) const noexcept
    {
        offbeat_span_set_status(handle_, status);
    }
    void set_description(text description) const noexcept
    {
        offbeat_span_set_description(handle_, description.c_str());
    }
    void set_transaction_name(text name, offbeat_source source = OFFBEAT_SOURCE_CUSTOM) const noexcept
    {
        offbeat_span_set_transaction_name(handle_, name.c_str(), source);
    }
    /* VALUE: a text, a number, an integer or a bool. An integer over INT64_MAX becomes a double. */
    template <typename Value> bool set(text key, const Value &value) const noexcept
    {
        if constexpr (std::is_same_v<Value, bool>) {
            return offbeat_span_set_bool(handle_, key.c_str(), value);
        } else if constexpr (std::is_integral_v<Value>) {
            constexpr bool is_wide = std::is_unsigned_v<Value> && sizeof(Value) >= sizeof(int64_t);
            if (is_wide && static_cast<uint64_t>(value) > INT64_MAX)
                return offbeat_span_set_number(handle_, key.c_str(), static_cast<double>(value));
            return offbeat_span_set_integer(handle_, key.c_str(), static_cast<int64_t>(value));
        } else if constexpr (std::is_arithmetic_v<Value>) {
            return offbeat_span_set_number(handle_, key.c_str(), static_cast<double>(value));
        } else {
            return offbeat_span_set_text(handle_, key.c_str(), text(value).c_str());
        }
    }
    bool set_tag(text key, text value) const noexcept
    {
        return offbeat_span_set_tag(handle_, key.c_str(), value.c_str());
    }

    bool remove(text key) const noexcept
    {
        return offbeat_span_remove(handle_, key.c_str());
    }
    bool remove_tag(text key) const noexcept
    {
        return offbeat_span_remove_tag(handle_, key.c_str());
    }
    bool set_user(const user &user) const noexcept
    {
        return offbeat_span_set_user(handle_, &user);
    }

    /* To send along with a request to another service; all empty where there is nothing to send. */
    offbeat_headers headers(text others = nullptr) const noexcept
    {
        offbeat_headers headers;
        offbeat_span_headers(handle_, others.c_str(), &headers);
        return headers;
    }

  protected:
    explicit basic_span(offbeat_span *handle) noexcept : handle_(handle)
    {
    }
    ~basic_span() = default;

    offbeat_span *release_handle() noexcept
    {
        return std::exchange(handle_, nullptr);
    }

    offbeat_span *handle_;
};

/* A span that this owns, and finishes when it is destroyed. */
class span : public basic_span
{
  public:
    span() noexcept : basic_span(nullptr)
    {
    } /* an empty one */
    /* A child of this thread's current span, and current itself until it finishes. Empty if there is none. */
    explicit span(text op, text description = nullptr) noexcept
        : basic_span(offbeat_span_start(op.c_str(), description.c_str()))
    {
    }
    /* Takes HANDLE over, which comes from a function of <offbeat.h> that starts a span. */
    explicit span(offbeat_span *handle) noexcept : basic_span(handle)
    {
    }

    span(span &&other) noexcept : basic_span(other.release_handle())
    {
    }
    span &operator=(span &&other) noexcept
    {
        if (this != &other) {
            finish();
            handle_ = other.release_handle();
        }
        return *this;
    }
    ~span()
    {
        if (std::uncaught_exceptions() > exceptions_) set_status(OFFBEAT_STATUS_INTERNAL_ERROR);
        finish();
    }

    void finish() noexcept
    {
        offbeat_span_finish(release_handle());
    }
    /* The caller finishes it. */
    offbeat_span *release() noexcept
    {
        return release_handle();
    }

  private:
    /* That were on their way when this came to be, as in a destructor: they are not why it is destroyed. */
    int exceptions_ = std::uncaught_exceptions();
};

/* struct offbeat_transaction with its size set: set its members. */
struct transaction_options : offbeat_transaction {
    transaction_options() noexcept : offbeat_transaction{}
    {
        size = sizeof(offbeat_transaction);
    }
};

/* A span without a parent here. It is not current on any thread: see enter. */
class transaction : public span
{
  public:
    explicit transaction(text name, text op = nullptr) noexcept
        : span(offbeat_transaction_start(name.c_str(), op.c_str()))
    {
    }
    explicit transaction(const transaction_options &options) noexcept : span(offbeat_transaction_start_with(&options))
    {
    }
};

/* One more owner of a span, who does not finish it. */
class span_reference : public basic_span
{
  public:
    span_reference() noexcept : basic_span(nullptr)
    {
    } /* an empty one */
    span_reference(const span_reference &other) noexcept : basic_span(offbeat_span_ref(other.handle_))
    {
    }
    span_reference(span_reference &&other) noexcept : basic_span(other.release_handle())
    {
    }
    span_reference &operator=(span_reference other) noexcept
    {
        std::swap(handle_, other.handle_);
        return *this;
    }
    ~span_reference()
    {
        offbeat_span_unref(handle_);
    }

    /* The calling thread's current span; empty if there is none. */
    static span_reference current() noexcept
    {
        return span_reference(offbeat_span_current());
    }

  private:
    friend class basic_span;
    explicit span_reference(offbeat_span *handle) noexcept : basic_span(handle)
    {
    }
};

/* A transaction or span in a filter, which can change and read it. */
class finished_span : private basic_span
{
  public:
    explicit finished_span(offbeat_span *handle) noexcept : basic_span(handle)
    {
    }

    using basic_span::remove, basic_span::remove_tag, basic_span::set, basic_span::set_description,
        basic_span::set_status, basic_span::set_tag, basic_span::set_transaction_name, basic_span::set_user;

    /* Valid until the span is changed. */
    std::string_view transaction_name() const noexcept
    {
        return offbeat_span_transaction_name(handle_);
    }
    std::string_view op() const noexcept
    {
        return offbeat_span_op(handle_);
    }
    std::string_view description() const noexcept
    {
        return offbeat_span_description(handle_);
    }

    /* Calls VISIT(const offbeat_attribute &) for each value and tag; it must not change the span. */
    template <typename Visitor> void for_each(Visitor &&visit) const
    {
        offbeat_attribute attribute;
        for (size_t i = 0; offbeat_span_attribute(handle_, i, &attribute); i++) visit(attribute);
    }
};

/* While it lives its span is the thread's current one. It stays on the thread, and inside of the block, where it was
 * made. */
class scope
{
  public:
    explicit scope(const basic_span &span) noexcept
        : entered_(offbeat_span_enter(span.get()) ? offbeat_span_ref(span.get()) : nullptr)
    {
    }
    ~scope()
    {
        offbeat_span_leave(entered_);
        offbeat_span_unref(entered_);
    }
    scope(const scope &) = delete;
    scope &operator=(const scope &) = delete;

  private:
    offbeat_span *entered_; /* NULL if it was current already, or had finished */
};

inline span basic_span::child(text op, text description) const noexcept
{
    return span(offbeat_span_start_child(handle_, op.c_str(), description.c_str()));
}

inline span_reference basic_span::share() const noexcept
{
    return span_reference(offbeat_span_ref(handle_));
}

inline scope basic_span::enter() const noexcept
{
    return scope(*this);
}

} // namespace offbeat

#endif
