/* SPDX-License-Identifier: MIT */
#include "sampler/ledger/recording_sink.h"

static void write_sample(void *context, struct ledger *ledger, struct recording_time time,
                         const struct found_stack *stack)
{
    recording_sample(context, ledger->records.number, time, stack->flags, stack->addresses, stack->count,
                     ledger->sink_data);
}

static void write_more(void *context, struct ledger *ledger, enum recording_share share, struct recording_time time)
{
    recording_begin(context, RECORDING_MORE, 64);
    recording_number(context, ledger->records.number);
    recording_number(context, share);
    recording_time(context, time);
}

static void write_lost(void *context, struct ledger *ledger, enum recording_loss cause, struct recording_time time)
{
    recording_begin(context, RECORDING_LOST, 64);
    recording_number(context, ledger->records.number);
    recording_number(context, cause);
    recording_time(context, time);
}

static void write_woken(void *context, struct ledger *ledger, uint64_t wait_ns)
{
    recording_begin(context, RECORDING_WOKEN, 32);
    recording_number(context, ledger->records.number);
    recording_number(context, wait_ns);
}

static void write_waiting(void *context, struct ledger *ledger)
{
    recording_begin(context, RECORDING_WAITING, 16);
    recording_number(context, ledger->records.number);
}

static void write_routine(void *context, struct ledger *ledger)
{
    recording_begin(context, RECORDING_ROUTINE, 32);
    recording_number(context, ledger->records.number);
    recording_number(context, ledger->life.routine);
}

struct ledger_sink recording_sink_of(struct recording_writer *writer)
{
    return (struct ledger_sink){.context = writer,
                                .sample = write_sample,
                                .more = write_more,
                                .lost = write_lost,
                                .woken = write_woken,
                                .waiting = write_waiting,
                                .routine = write_routine};
}
