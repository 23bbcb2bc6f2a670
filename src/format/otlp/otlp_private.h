/* Field numbers of opentelemetry-proto 1.11, and names of attributes.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_OTLP_OTLP_PRIVATE_H
#define OFFBEAT_FORMAT_OTLP_OTLP_PRIVATE_H

/* clang-format off */
enum { DATA_RESOURCE_PROFILES = 1, DATA_DICTIONARY = 2 };
enum { RESOURCE_PROFILES_RESOURCE = 1, RESOURCE_PROFILES_SCOPE_PROFILES = 2 };
enum { RESOURCE_ATTRIBUTES = 1 };
enum { SCOPE_PROFILES_SCOPE = 1, SCOPE_PROFILES_PROFILES = 2 };
enum { SCOPE_NAME = 1 };
enum { KEY_VALUE_KEY = 1, KEY_VALUE_VALUE = 2, KEY_VALUE_KEY_STRINDEX = 3 };
enum { ANY_STRING = 1, ANY_BOOL = 2, ANY_INT = 3, ANY_DOUBLE = 4, ANY_ARRAY = 5, ANY_STRINDEX = 8 };
enum { ARRAY_VALUES = 1 };
enum { DICTIONARY_MAPPINGS = 1, DICTIONARY_LOCATIONS = 2, DICTIONARY_FUNCTIONS = 3, DICTIONARY_LINKS = 4,
       DICTIONARY_STRINGS = 5, DICTIONARY_ATTRIBUTES = 6, DICTIONARY_STACKS = 7, DICTIONARY_END };
enum { PROFILE_SAMPLE_TYPE = 1, PROFILE_SAMPLES = 2, PROFILE_TIME = 3, PROFILE_DURATION = 4, PROFILE_PERIOD_TYPE = 5,
       PROFILE_PERIOD = 6, PROFILE_ID = 7, PROFILE_ATTRIBUTES = 11 };
enum { LINK_TRACE_ID = 1, LINK_SPAN_ID = 2 };
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { SAMPLE_STACK = 1, SAMPLE_ATTRIBUTES = 2, SAMPLE_LINK = 3, SAMPLE_VALUES = 4, SAMPLE_TIMES = 5 };
enum { MAPPING_START = 1, MAPPING_LIMIT = 2, MAPPING_OFFSET = 3, MAPPING_FILE = 4, MAPPING_ATTRIBUTES = 5 };
enum { STACK_LOCATIONS = 1 };
enum { LOCATION_MAPPING = 1, LOCATION_ADDRESS = 2, LOCATION_LINES = 3, LOCATION_ATTRIBUTES = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2, LINE_COLUMN = 3 };
enum { FUNCTION_NAME = 1, FUNCTION_SYSTEM_NAME = 2, FUNCTION_FILE = 3, FUNCTION_START_LINE = 4 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2, ATTRIBUTE_UNIT = 3 };
/* clang-format on */

enum { TRACE_ID_BYTES = 16, SPAN_ID_BYTES = 8, PROFILE_ID_BYTES = 16 };

#define KEY_THREAD_ID "thread.id"
#define KEY_THREAD_NAME "thread.name"
#define KEY_PROCESS_ID "process.pid"
#define KEY_PROCESS_NAME "process.executable.name"
#define KEY_BUILD_ID "process.executable.build_id.gnu"
#define KEY_RELEASE "service.version"
#define KEY_ENVIRONMENT "deployment.environment.name"
#define KEY_INSTANCE "service.instance.id"
#define KEY_FRAME_TYPE "profile.frame.type"
#define KEY_FOLDED "pprof.location.is_folded"
#define KEY_HAS_FUNCTIONS "pprof.mapping.has_functions"
#define KEY_HAS_FILENAMES "pprof.mapping.has_filenames"
#define KEY_HAS_LINES "pprof.mapping.has_line_numbers"
#define KEY_HAS_INLINED "pprof.mapping.has_inline_frames"
#define KEY_COMMENT "pprof.profile.comment"
#define KEY_DOC_URL "pprof.profile.doc_url"
#define KEY_DROP_FRAMES "pprof.profile.drop_frames"
#define KEY_KEEP_FRAMES "pprof.profile.keep_frames"

/* Prefix of a metadata key that has no dot. */
#define METADATA_PREFIX "offbeat."

#endif
