/* Call graphs: by hand, and random ones against a plain second implementation.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "analyze/filter.h"
#include "analyze/graph_trim.h"
#include "report/short_function_name.h"
#include "stacks.h"

static struct profile profile;
static struct grouping grouping;
static struct graph_source source;
static struct trimmed_graph trimmed;

static void end(void)
{
    trimmed_graph_fini(&trimmed);
    graph_source_fini(&source);
    grouping_fini(&grouping);
}

static void build(struct grouping_options options, bool is_tree, struct trim_options trim)
{
    struct error error = {0};
    struct value_choice choice = {.index = 1};
    if (grouping_init(&grouping, &profile, &options, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    CHECK(graph_source_init(&source, &profile, &grouping, choice, is_tree));
    if (trim_graph(&trimmed, &source, &trim, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
}

static const char *name_of(uint32_t node)
{
    return group_name(&grouping, group_of_node(&trimmed.graph, &source, node));
}

static const struct call_node *node_called(const char *name)
{
    for (size_t i = 0; i < trimmed.graph.listed_count; i++) {
        if (strcmp(name_of(trimmed.graph.listed[i]), name) == 0) return &trimmed.graph.nodes[trimmed.graph.listed[i]];
    }
    return NULL;
}

static const struct call_edge *edge_between(const char *from, const char *to)
{
    for (size_t i = 0; i < trimmed.graph.edge_count; i++) {
        const struct call_edge *edge = &trimmed.graph.edges[i];
        if (!edge->is_removed && strcmp(name_of(edge->from), from) == 0 && strcmp(name_of(edge->to), to) == 0)
            return edge;
    }
    return NULL;
}

static void begin(void)
{
    end();
    profile_fini(&profile);
    stacks_begin(&profile);
}

TEST(recursion_counts_once)
{
    begin();
    stacks_add_sample(&profile, "main f g f g", 10);
    stacks_add_sample(&profile, "main f", 5);
    build((struct grouping_options){0}, false, (struct trim_options){0});
    CHECK_INT(node_called("f")->cum, 15);
    CHECK_INT(node_called("f")->flat, 5);
    CHECK_INT(node_called("g")->cum, 10);
    CHECK_INT(edge_between("f", "g")->weight, 10);
    CHECK_INT(edge_between("g", "f")->weight, 10);
    CHECK_INT(edge_between("main", "f")->weight, 15);
}

TEST(an_edge_is_inlined_only_if_all_of_its_calls_are)
{
    begin();
    stacks_add_sample(&profile, "main f<g", 1);
    stacks_add_sample(&profile, "main f<h", 1);
    stacks_add_sample(&profile, "main f h", 1);
    build((struct grouping_options){0}, false, (struct trim_options){0});
    CHECK(edge_between("f", "g")->is_inline);
    CHECK(!edge_between("f", "h")->is_inline);
}

TEST(what_is_trimmed_leaves_residual_edges_and_no_flat)
{
    begin();
    stacks_add_sample(&profile, "main f g", 100);
    stacks_add_sample(&profile, "main f", 1);
    stacks_add_sample(&profile, "main x g", 1);
    build((struct grouping_options){0}, false, (struct trim_options){.node_fraction = 0.05});
    CHECK_UINT(trimmed.dropped_nodes, 1);
    CHECK(edge_between("main", "g")->is_residual);
    CHECK_INT(edge_between("main", "g")->weight, 1);
    CHECK_INT(node_called("g")->cum, 101);
    CHECK(!node_called("x"));
    end();
    build((struct grouping_options){0}, false, (struct trim_options){.node_count = 2, .order = ORDER_CUM});
    CHECK_UINT(trimmed.original_count, 4);
    CHECK_UINT(trimmed.graph.listed_count, 2);
    CHECK_INT(node_called("main")->flat, 0);
    CHECK_INT(node_called("f")->flat, 1); /* not what was spent in g */
}

TEST(a_call_tree_has_a_node_for_each_way_and_joins_across_dropped_ones)
{
    begin();
    stacks_add_sample(&profile, "main a x", 60);
    stacks_add_sample(&profile, "main b x y", 40);
    stacks_add_sample(&profile, "main b z", 1);
    build((struct grouping_options){0}, true, (struct trim_options){0});
    CHECK_UINT(trimmed.graph.listed_count, 7);
    end();
    build((struct grouping_options){0}, true, (struct trim_options){.node_count = 3, .order = ORDER_FLAT});
    CHECK_UINT(trimmed.graph.listed_count, 3);
    CHECK_INT(node_called("y")->flat, 40);
}

TEST(granularity_decides_what_is_one_node)
{
    begin();
    stacks_add_sample(&profile, "main f<g ?", 1);
    build((struct grouping_options){.granularity = GRANULARITY_FILES}, false, (struct trim_options){0});
    CHECK_INT(node_called("f.c")->cum, 1);
    end();
    build((struct grouping_options){.granularity = GRANULARITY_LINES}, false, (struct trim_options){0});
    CHECK_INT(node_called("g g.c:1")->cum, 1);
    CHECK_INT(node_called("[x.so]")->flat, 1);
    end();
    build((struct grouping_options){.no_inlines = true}, false, (struct trim_options){0});
    CHECK(!node_called("g") && node_called("f"));
    end();
    build((struct grouping_options){.names_unsymbolized = true}, false, (struct trim_options){0});
    CHECK(!node_called("[x.so]"));
    CHECK_UINT(trimmed.graph.listed_count, 4);
}

/* --- Random profiles ---------------------------------------------------------------------------------------------- */

enum { FUNCTIONS = 12, SAMPLES = 60, DEPTH_MAX = 10, ROUNDS = 150 };

static uint64_t random_state;

static unsigned random_below(unsigned limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % limit;
}

struct plain_sample {
    unsigned depth;
    unsigned frames[DEPTH_MAX]; /* root first */
    bool is_inline[DEPTH_MAX];
    int64_t value;
};

static struct plain_sample plain[SAMPLES];

static void make_sample(struct plain_sample *sample)
{
    char text[STACK_TEXT_BYTES] = "";
    sample->depth = 1 + random_below(DEPTH_MAX);
    sample->value = (int64_t)random_below(200) - 20;
    for (unsigned i = 0; i < sample->depth; i++) {
        sample->frames[i] = random_below(FUNCTIONS);
        sample->is_inline[i] = i > 0 && random_below(4) == 0 && !(i > 1 && sample->is_inline[i - 1]);
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%sf%u",
                       i == 0                 ? ""
                       : sample->is_inline[i] ? "<"
                                              : " ",
                       sample->frames[i]);
    }
    stacks_add_sample(&profile, text, sample->value);
}

static void make_profile(unsigned seed)
{
    random_state = seed;
    begin();
    for (unsigned i = 0; i < SAMPLES; i++) make_sample(&plain[i]);
}

static int64_t plain_cum(unsigned function)
{
    int64_t sum = 0;
    for (unsigned s = 0; s < SAMPLES; s++) {
        bool has = false;
        for (unsigned i = 0; i < plain[s].depth; i++) has |= plain[s].frames[i] == function;
        sum += has ? plain[s].value : 0;
    }
    return sum;
}

static int64_t plain_flat(unsigned function)
{
    int64_t sum = 0;
    for (unsigned s = 0; s < SAMPLES; s++) {
        if (plain[s].frames[plain[s].depth - 1] == function) sum += plain[s].value;
    }
    return sum;
}

/* Returns the weight of the edge FROM → TO among the functions in KEPT, and its properties. */
static int64_t plain_weight(unsigned from, unsigned to, const bool *kept, bool *ret_exists, bool *ret_residual)
{
    int64_t sum = 0;
    *ret_exists = *ret_residual = false;
    for (unsigned s = 0; s < SAMPLES; s++) {
        unsigned before = FUNCTIONS;
        bool is_residual = false, has = false;
        if (plain[s].value == 0) continue;
        for (unsigned i = 0; i < plain[s].depth && !has; i++) {
            unsigned at = plain[s].frames[i];
            if (!kept[at]) {
                is_residual = true;
                continue;
            }
            has = before == from && at == to && from != to;
            if (has) *ret_residual |= is_residual;
            before = at;
            is_residual = false;
        }
        *ret_exists |= has;
        sum += has ? plain[s].value : 0;
    }
    return sum;
}

static const char *function_name(unsigned function)
{
    static char names[2][8];
    static unsigned turn;
    turn ^= 1;
    (void)snprintf(names[turn], sizeof(names[turn]), "f%u", function);
    return names[turn];
}

static void check_edges(const bool *kept)
{
    for (unsigned from = 0; from < FUNCTIONS; from++) {
        for (unsigned to = 0; to < FUNCTIONS; to++) {
            bool exists, is_residual;
            int64_t weight = plain_weight(from, to, kept, &exists, &is_residual);
            const struct call_edge *edge = edge_between(function_name(from), function_name(to));
            CHECK_UINT(edge != NULL, exists);
            if (!edge) continue;
            CHECK_INT(edge->weight, weight);
            CHECK_UINT(edge->is_residual, is_residual);
        }
    }
}

TEST(random_graphs_agree_with_a_plain_computation)
{
    bool all[FUNCTIONS];
    memset(all, true, sizeof(all));
    for (unsigned round = 0; round < ROUNDS; round++) {
        int64_t total = 0, flat = 0;
        make_profile(round);
        build((struct grouping_options){0}, false, (struct trim_options){0});
        for (unsigned s = 0; s < SAMPLES; s++) total += plain[s].value;
        for (unsigned i = 0; i < FUNCTIONS; i++) {
            const struct call_node *node = node_called(function_name(i));
            if (!node) CHECK(plain_cum(i) == 0 && plain_flat(i) == 0);
            if (!node) continue;
            CHECK_INT(node->cum, plain_cum(i));
            CHECK_INT(node->flat, plain_flat(i));
            flat += node->flat;
        }
        CHECK_INT(flat, total); /* flat sums to the total */
        check_edges(all);
    }
}

TEST(random_graphs_of_some_functions_agree_with_a_plain_computation)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        bool kept[FUNCTIONS] = {false};
        make_profile(round);
        build((struct grouping_options){0}, false, (struct trim_options){.node_count = 6, .order = ORDER_CUM});
        for (size_t i = 0; i < trimmed.graph.listed_count; i++) kept[atoi(name_of(trimmed.graph.listed[i]) + 1)] = true;
        check_edges(kept);
    }
}

TEST(sums_of_random_call_trees_agree_at_roots_and_nodes)
{
    for (unsigned round = 0; round < ROUNDS; round++) {
        int64_t total = 0, roots = 0;
        make_profile(round);
        build((struct grouping_options){0}, true, (struct trim_options){0});
        for (unsigned s = 0; s < SAMPLES; s++) total += plain[s].value;
        const struct call_graph *graph = &trimmed.graph;
        for (uint32_t n = 0; n < graph->node_count; n++) {
            int64_t sum = graph->nodes[n].flat;
            for (uint32_t e = graph->out_first[n]; e < graph->out_first[n + 1]; e++)
                sum += graph->nodes[graph->edges[graph->out[e]].to].cum;
            CHECK_INT(graph->nodes[n].cum, sum);
            if (graph->nodes[n].in_edge == GRAPH_NONE) roots += graph->nodes[n].cum;
        }
        CHECK_INT(roots, total);
    }
}

/* --- Labels and names --------------------------------------------------------------------------------------------- */

static void add_bytes(const char *frames, const char *text, int64_t bytes, int64_t value)
{
    struct label labels[] = {{.key = profile_text(&profile, "kind"), .text = profile_text(&profile, text)},
                             {.key = profile_text(&profile, "bytes"), .is_number = true, .number = bytes}};
    struct sample sample = {.stack = stacks_add(&profile, frames), .labels = profile_add_labels(&profile, labels, 2)};
    profile_add_sample(&profile, &sample, (const int64_t[]){1, value});
}

TEST(labels_of_a_drawing_are_summed_up_per_node)
{
    begin();
    add_bytes("main f g f", "x", 1024, 10);
    add_bytes("main f", "x", 1025, 5);
    add_bytes("main f", "y", 2048, 1);
    build((struct grouping_options){0}, false, (struct trim_options){.order = ORDER_ENTROPY, .tag_unit = "minimum"});
    uint32_t f = (uint32_t)(node_called("f") - trimmed.graph.nodes);
    const struct graph_tags *tags = &trimmed.tags;
    size_t texts = 0, numbers = 0;
    for (uint32_t i = tags->first[f]; i < tags->first[f + 1]; i++) {
        const struct node_tag *tag = &tags->items[i];
        const char *text = graph_tag_string(tags, tag->texts);
        int64_t expected = strcmp(text, "kind:x") == 0 ? 15 : 1;
        CHECK_INT(tag->cum, expected); /* 1024 and 1025 bytes are both 1kB */
        CHECK_INT(tag->flat, expected);
        texts += tag->name == 0;
        numbers += tag->name != 0;
    }
    CHECK_UINT(texts, 2);
    CHECK_UINT(numbers, 2);
}

TEST(function_names_are_shortened_for_boxes)
{
    static const char *const names[][2] = {
        {"main", "main"},
        {"", ""},
        {"(anonymous namespace)::f", "f"},
        {"github.com/x/y.(*T).f", "y.(*T).f"},
        {"github.com/x/y/v3.F", "y.F"},
        {"gopkg.in/x/v2/z.f", "z.f"},
        {"java.util.Map.get(Object)", "Map.get"},
        {"java.util.Map.<init>", "Map.<init>"},
        {"a.b.c", "a.b.c"},
        {"ns::Class::method", "Class::method"},
        {"ns::inner::Class::~Class<a::b>(int)", "Class::~Class<a::b>"},
        {"std::vector<int>::push_back", "std::vector<int>::push_back"},
        {"Class::method", "Class::method"},
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct buffer out;
        buffer_init(&out, 256);
        short_function_name_append(&out, names[i][0]);
        buffer_append_byte(&out, 0);
        CHECK_TEXT((const char *)out.data, names[i][1]);
        buffer_fini(&out);
    }
}

TEST_MAIN()
