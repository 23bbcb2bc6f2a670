/* Sentry's debug id from a build id (FMT-6).  SPDX-License-Identifier: MIT */
#include "test.h"

#include "binary/debug_id.h"

static const char *debug_id(const char *build_id)
{
    static char text[DEBUG_ID_TEXT_SIZE];
    return debug_id_from_build_id(slice_of_text(build_id), text) ? text : "(none)";
}

TEST(a_debug_id_is_the_build_id_with_its_first_fields_turned_round)
{
    CHECK_TEXT(debug_id("f1c3bcc0279865fe3058404b2831d9e64135386c"), "c0bcc3f1-9827-fe65-3058-404b2831d9e6");
    CHECK_TEXT(debug_id("1FEFC81CA2C24DE1CE2E848C620EF422B92FB5A2"), "1cc8ef1f-c2a2-e14d-ce2e-848c620ef422");
}

TEST(a_short_build_id_is_filled_up_with_zeros)
{
    CHECK_TEXT(debug_id("deadbeef"), "efbeadde-0000-0000-0000-000000000000");
}

TEST(what_is_no_build_id_has_no_debug_id)
{
    CHECK_TEXT(debug_id(""), "(none)");
    CHECK_TEXT(debug_id("abc"), "(none)");
    CHECK_TEXT(debug_id("zz"), "(none)");
    CHECK_TEXT(debug_id("f1c3bcc0279865fe3058404b2831d9e64135386cx-"), "(none)");
}

TEST_MAIN()
