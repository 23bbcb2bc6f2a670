/* The order is: the program's decision, traces_sampler, the parent, traces_sample_rate.  SPDX-License-Identifier: MIT
 */
#include "trace/sampling.h"

static struct trace_sampling by_rate(double rate, uint32_t rand_millionths)
{
    struct trace_sampling sampling = {.is_decided = true, .is_own = true, .rate = 0};
    sampling.is_faulty = !(rate >= 0 && rate <= 1); /* NaN too */
    if (sampling.is_faulty) return sampling;
    sampling.rate = rate;
    sampling.is_sampled = (double)rand_millionths / TRACE_RAND_END < rate;
    return sampling;
}

static bool is_there(double rate)
{
    return !(rate < 0);
}

struct trace_sampling trace_decide(const struct trace_evidence *evidence)
{
    if (!evidence->is_tracing_on) return (struct trace_sampling){.rate = -1};
    if (evidence->wanted != TRACE_UNDECIDED) {
        bool is_sampled = evidence->wanted == TRACE_SAMPLED;
        return (struct trace_sampling){
            .is_decided = true, .is_own = true, .is_sampled = is_sampled, .rate = is_sampled ? 1 : 0};
    }
    if (is_there(evidence->sampler_rate)) return by_rate(evidence->sampler_rate, evidence->rand_millionths);
    if (evidence->parent != TRACE_UNDECIDED) {
        return (struct trace_sampling){
            .is_decided = true, .is_sampled = evidence->parent == TRACE_SAMPLED, .rate = evidence->parent_rate};
    }
    return by_rate(is_there(evidence->rate) ? evidence->rate : 0, evidence->rand_millionths);
}

uint32_t trace_rand_of_decision(enum trace_decision parent, double rate, uint32_t fresh)
{
    if (parent == TRACE_UNDECIDED || !(rate >= 0 && rate <= 1)) return fresh;
    uint32_t border = (uint32_t)(rate * TRACE_RAND_END); /* below it sampled, from it on not */
    while ((double)border / TRACE_RAND_END < rate) border++;
    if (parent == TRACE_SAMPLED) return border > 0 ? (uint32_t)((uint64_t)fresh * border / TRACE_RAND_END) : fresh;
    if (border == TRACE_RAND_END) return fresh;
    return border + (uint32_t)((uint64_t)fresh * (TRACE_RAND_END - border) / TRACE_RAND_END);
}
