#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Prints whether Sentry's own server would accept a Sample Format V2 chunk (V2-1 to V2-7, facts 1.2, 1.3, 2.1).

    check_chunk.py [--sender] FILE...     one line a file: "accepted" or the reason's name and the place
    check_chunk.py --self-test            shows that it rejects what it must, in TAP

FILE is a chunk or an envelope, gzip or not. --sender asks for more: what the documents want of a sender (V2-2, FMT-2,
FMT-3, FMT-5) and what offbeat promises of the chunks that it writes itself. Written from the rules alone and without a
line in common with the C code, so that both do not make the same mistake.
"""
import copy
import gzip
import json
import math
import re
import sys

UUID = re.compile(r'(?:[0-9a-fA-F]{32}|[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12})\Z')
ADDRESS = re.compile(r'(?:0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})\Z')
NUMBER_TEXT = re.compile(r'[-+]?(?:inf(?:inity)?|nan|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?)\Z', re.IGNORECASE)
IMAGE_TYPES = {'macho', 'symbolic', 'sourcemap', 'proguard', 'jvm'}
UNITS = {'nanosecond', 'ns', 'hertz', 'hz', 'byte', 'percent', 'nanojoule', 'nj'}
UI_PLATFORMS = {'cocoa', 'android', 'javascript'}
SIZE_MAX = 50 << 20
SECONDS_MAX = 66.0


class Rejected(Exception):
    def __init__(self, reason, place, detail):
        super().__init__(f'{reason}: {place}: {detail}')
        self.reason = reason


def invalid(place, detail):
    raise Rejected('profiling_invalid_json', place, detail)


# --- JSON, keeping what Python's parser would forgive -------------------------------------------------------------

class Object(dict):
    """A JSON object that remembers which of its keys came twice."""
    def __init__(self, pairs):
        super().__init__(pairs)
        seen, self.repeated = set(), set()
        for name, _ in pairs:
            (self.repeated if name in seen else seen).add(name)


def reject_constant(text):
    raise ValueError(f'{text} is not JSON')


def parse(data, place):
    try:
        value = json.loads(data.decode('utf-8'), object_pairs_hook=Object, parse_constant=reject_constant)
    except (ValueError, RecursionError) as error:
        invalid(place, error)
    if not isinstance(value, Object):
        invalid(place, 'no object')
    return value


# --- Types ---------------------------------------------------------------------------------------------------------

def members(value, place, *names):
    """The named members of an object, a list of names being aliases; None where absent. Repeated ones are rejected."""
    if not isinstance(value, Object):
        invalid(place, f'expected an object, found {kind(value)}')
    found = []
    for aliases in names:
        aliases = aliases if isinstance(aliases, tuple) else (aliases,)
        present = [name for name in aliases if name in value]
        if len(present) > 1 or any(name in value.repeated for name in aliases):
            invalid(f'{place}.{aliases[0]}', 'comes twice')
        found.append(value[present[0]] if present else ABSENT)
    return found


ABSENT = object()


def kind(value):
    return 'nothing' if value is ABSENT else 'null' if value is None else type(value).__name__


def text(value, place, optional=False):
    if optional and (value is ABSENT or value is None):
        return None
    if not isinstance(value, str):
        invalid(place, f'expected a string, found {kind(value)}')
    return value


def integer(value, place, bits, optional=False):
    if optional and (value is ABSENT or value is None):
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << bits:
        invalid(place, f'expected an unsigned integer of {bits} bits, found {value!r:.40}')
    return value


def finite(value, place):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        invalid(place, f'expected a number, found {kind(value)}')
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        invalid(place, 'number is out of range')
    return number


def boolean(value, place):
    if value is not ABSENT and value is not None and not isinstance(value, bool):
        invalid(place, f'expected true or false, found {kind(value)}')


def matching(value, place, pattern, what, optional=False):
    if text(value, place, optional) is not None and not pattern.match(value):
        invalid(place, f'{value!r:.60} is no {what}')
    return value


def array(value, place):
    if not isinstance(value, list):
        invalid(place, f'expected an array, found {kind(value)}')
    return value


# --- The parts of a chunk ------------------------------------------------------------------------------------------

def check_frame(frame, place):
    absolute, column, file_name, function, in_app, address, line, module, package, platform = members(
        frame, place, 'abs_path', ('colno', 'column'), ('filename', 'file'), ('function', 'name'), 'in_app',
        'instruction_addr', ('lineno', 'line'), 'module', 'package', 'platform')
    for name, value in (('abs_path', absolute), ('filename', file_name), ('function', function), ('module', module),
                        ('package', package), ('platform', platform)):
        text(value, f'{place}.{name}', optional=True)
    integer(column, f'{place}.colno', 32, optional=True)
    integer(line, f'{place}.lineno', 32, optional=True)
    boolean(in_app, f'{place}.in_app')
    matching(address, f'{place}.instruction_addr', ADDRESS, 'address', optional=True)


def check_image(image, place):
    image_type, code_file, debug_id, start, vmaddr, size, uuid = members(
        image, place, 'type', ('code_file', 'name'), ('debug_id', 'id'), 'image_addr', 'image_vmaddr', 'image_size',
        ('uuid', 'build_id'))
    if text(image_type, f'{place}.type') not in IMAGE_TYPES:
        invalid(f'{place}.type', f'{image_type!r} is no image type that servers know')
    text(code_file, f'{place}.code_file', optional=True)
    if isinstance(debug_id, str):
        debug_id = re.sub(r'-[0-9a-fA-F]{1,8}\Z', '', debug_id) if len(debug_id) > 36 else debug_id
    matching(debug_id, f'{place}.debug_id', UUID, 'debug id', optional=True)
    matching(start, f'{place}.image_addr', ADDRESS, 'address', optional=True)
    matching(vmaddr, f'{place}.image_vmaddr', ADDRESS, 'address', optional=True)
    if isinstance(size, str) and re.match(r'[0-9]+\Z', size):
        size = int(size)
    if size is not ABSENT:
        integer(size, f'{place}.image_size', 64)
    matching(uuid, f'{place}.uuid', UUID, 'uuid', optional=True)


def check_measurement(measurement, place):
    unit, values = members(measurement, place, 'unit', 'values')
    if text(unit, f'{place}.unit') not in UNITS:
        invalid(f'{place}.unit', f'{unit!r} is no unit that servers know')
    for i, value in enumerate(array(values, f'{place}.values')):
        timestamp, measured = members(value, f'{place}.values[{i}]', 'timestamp', 'value')
        finite(timestamp, f'{place}.values[{i}].timestamp')
        if not (isinstance(measured, str) and NUMBER_TEXT.match(measured)):
            finite(measured, f'{place}.values[{i}].value')


def check_thread(thread, place):
    name, priority = members(thread, place, 'name', 'priority')
    text(name, f'{place}.name', optional=True)
    integer(priority, f'{place}.priority', 32, optional=True)


def check_profile(profile):
    samples, stacks, frames, threads = members(profile, 'profile', 'samples', 'stacks', 'frames', 'thread_metadata')
    for i, frame in enumerate(array(frames, 'profile.frames')):
        check_frame(frame, f'profile.frames[{i}]')
    for i, stack in enumerate(array(stacks, 'profile.stacks')):
        for k, frame in enumerate(array(stack, f'profile.stacks[{i}]')):
            integer(frame, f'profile.stacks[{i}][{k}]', 64)
    for i, sample in enumerate(array(samples, 'profile.samples')):
        place = f'profile.samples[{i}]'
        timestamp, stack, thread = members(sample, place, 'timestamp', 'stack_id', 'thread_id')
        finite(timestamp, f'{place}.timestamp')
        integer(stack, f'{place}.stack_id', 64)
        text(thread, f'{place}.thread_id')
    if threads is not ABSENT and threads is not None:
        members(threads, 'profile.thread_metadata', *list(threads if isinstance(threads, Object) else ()))
        for name, thread in threads.items():
            check_thread(thread, f'profile.thread_metadata.{name}')


def check_types(chunk):
    chunk_id, platform, version, release = members(chunk, 'chunk', ('chunk_id', 'profile_id', 'event_id'), 'platform',
                                                   'version', 'release')
    text(platform, 'platform')
    matching(chunk_id, 'chunk_id', UUID, 'uuid')
    text(release, 'release', optional=True)
    if version is not ABSENT:
        text(version, 'version')
    if version != '2':
        raise Rejected('profiling_platform_not_supported', 'version', f'{version!r:.20}')
    profiler_id, sdk, environment, debug_meta, measurements, profile = members(
        chunk, 'chunk', 'profiler_id', 'client_sdk', 'environment', 'debug_meta', 'measurements', 'profile')
    matching(profiler_id, 'profiler_id', UUID, 'uuid')
    text(environment, 'environment', optional=True)
    name, sdk_version = members(sdk, 'client_sdk', 'name', 'version')
    text(name, 'client_sdk.name')
    text(sdk_version, 'client_sdk.version')
    if debug_meta is not ABSENT:
        images, = members(debug_meta, 'debug_meta', 'images')
        for i, image in enumerate(array(images, 'debug_meta.images')):
            check_image(image, f'debug_meta.images[{i}]')
    if measurements is not ABSENT:
        members(measurements, 'measurements', *list(measurements if isinstance(measurements, Object) else ()))
        for name, measurement in measurements.items():
            check_measurement(measurement, f'measurements.{name}')
    check_profile(profile)


def check_rules(profile):
    """The server's repairs and rules, in its order: facts 1.2, 8 to 13."""
    stacks, frame_count = profile['stacks'], len(profile['frames'])
    active = {}
    for sample in profile['samples']:
        if sample['stack_id'] < len(stacks) and stacks[sample['stack_id']]:
            active[sample['thread_id']] = active.get(sample['thread_id'], 0) + 1
    samples = [sample for sample in profile['samples'] if active.get(sample['thread_id'], 0) > 1]
    if not samples:
        raise Rejected('profiling_not_enough_samples', 'profile.samples', 'no thread has two samples with frames')
    if any(sample['stack_id'] >= len(stacks) for sample in samples):
        raise Rejected('profiling_malformed_samples', 'profile.samples', 'a stack is not there')
    if any(frame >= frame_count for stack in stacks for frame in stack):
        raise Rejected('profiling_malformed_stacks', 'profile.stacks', 'a frame is not there')
    times = [float(sample['timestamp']) for sample in samples]
    if max(times) - min(times) > SECONDS_MAX:
        raise Rejected('profiling_duration_is_too_long', 'profile.samples', f'{max(times) - min(times)} s')


def check_sender(chunk):
    """What the documents want of a sender, and offbeat of itself."""
    def want(condition, place, detail):
        if not condition:
            raise Rejected('sender', place, detail)

    profile = chunk['profile']
    for name in ('chunk_id', 'profiler_id'):
        want(re.match(r'[0-9a-f]{12}4[0-9a-f]{3}[89ab][0-9a-f]{15}\Z', chunk[name]), name, 'no lowercase uuid4')
    want(chunk.get('release'), 'release', 'missing')
    want(chunk.get('environment'), 'environment', 'missing')
    used_frames, used_stacks = set(), set()
    for i, sample in enumerate(profile['samples']):
        want(isinstance(sample['timestamp'], float), f'profile.samples[{i}].timestamp', 'not a fraction')
        want(sample['stack_id'] < len(profile['stacks']), f'profile.samples[{i}].stack_id', 'not there')
        used_stacks.add(sample['stack_id'])
    times = [sample['timestamp'] for sample in profile['samples']]
    want(times == sorted(times), 'profile.samples', 'not in time order')
    for i, stack in enumerate(profile['stacks']):
        want(i in used_stacks, f'profile.stacks[{i}]', 'used by no sample')
        used_frames.update(stack)
    want(len({tuple(stack) for stack in profile['stacks']}) == len(profile['stacks']), 'profile.stacks', 'repeated')
    want(len({json.dumps(frame, sort_keys=True) for frame in profile['frames']}) == len(profile['frames']),
         'profile.frames', 'repeated')
    for i, frame in enumerate(profile['frames']):
        place = f'profile.frames[{i}]'
        want(i in used_frames, place, 'used by no stack')
        want(isinstance(frame.get('in_app'), bool), place, 'in_app is not said')
        want(any(frame.get(name) for name in ('function', 'filename', 'instruction_addr')), place, 'says nothing')
        want(re.match(r'0x[0-9a-f]+\Z', frame.get('instruction_addr', '0x0')), place, 'address is not hex')
    threads = {sample['thread_id'] for sample in profile['samples']}
    for name in profile.get('thread_metadata', {}):
        want(name in threads, f'profile.thread_metadata.{name}', 'has no samples')
    images = chunk.get('debug_meta', {'images': []})['images']
    for i, image in enumerate(images):
        place = f'debug_meta.images[{i}]'
        want(image['type'] == 'symbolic', place, 'type is not symbolic')
        want(all(name in image for name in ('debug_id', 'code_file', 'image_addr', 'image_size', 'image_vmaddr')),
             place, 'incomplete')
    want(len({image['image_addr'] for image in images}) == len(images), 'debug_meta.images', 'repeated')
    # FMT-9, FMT-10: each native frame is in an image, up to the address after its last call.
    places = [(int(image['image_addr'], 16), int(image['image_addr'], 16) + int(image['image_size'])) for image in images]
    want(chunk['platform'] != 'native' or places, 'debug_meta.images', 'none')
    for i, frame in enumerate(profile['frames']):
        address = int(frame.get('instruction_addr', '0'), 16)
        is_native = frame.get('platform', chunk['platform']) == 'native'
        want(not is_native or any(start <= address <= end for start, end in places), f'profile.frames[{i}]', 'in no image')


def check_chunk(data, sender=False):
    if len(data) > SIZE_MAX:
        raise Rejected('profiling_exceed_size_limit', 'chunk', f'{len(data)} bytes')
    chunk = parse(data, 'chunk')
    check_types(chunk)
    check_rules(chunk['profile'])
    if sender:
        check_sender(chunk)
    return chunk


# --- Envelopes -----------------------------------------------------------------------------------------------------

def header_line(data, start):
    """The header at START and where the next thing begins."""
    end = data.find(b'\n', start)
    end = len(data) if end < 0 else end
    line = data[start:end]
    if line != line.strip() or not line.startswith(b'{'):
        raise Rejected('envelope', f'byte {start}', 'no header')
    return parse(line, f'header at byte {start}'), min(end + 1, len(data))


def items_of(data):
    """Each item's header and payload (facts 2.1)."""
    header, position = header_line(data, 0)
    event_id = header.get('event_id')
    if event_id is not None:
        matching(event_id, 'envelope.event_id', UUID, 'uuid')
    items = []
    while position < len(data):
        header, position = header_line(data, position)
        if not isinstance(header.get('type'), str):
            raise Rejected('envelope', f'byte {position}', 'item without a type')
        if header.get('length') is None:
            end = data.find(b'\n', position)
            end = len(data) if end < 0 else end
        else:
            end = position + integer(header['length'], 'length', 32)
        if end > len(data) or data[end:end + 1] not in (b'', b'\n'):
            raise Rejected('envelope', f'byte {position}', 'the length does not fit the payload')
        items.append((header, data[position:end]))
        position = min(end + 1, len(data))
    return items


def check_envelope(data, sender=False):
    items = items_of(data)
    chunks = [item for item in items if item[0]['type'] in ('profile_chunk', 'profile_chunk_ui')]
    profiles = [item for item in items if item[0]['type'] == 'profile']
    if len(chunks) + len(profiles) > 1:
        raise Rejected('envelope', 'items', 'more than one profile in one envelope')
    if not chunks:
        raise Rejected('envelope', 'items', 'no profile_chunk')
    header, payload = chunks[0]
    if 'meta_length' in header:
        raise Rejected('profiling_invalid_sampled_profile', 'item header', 'meta_length')
    chunk = check_chunk(payload, sender)
    if 'platform' in header:
        if (header['platform'] in UI_PLATFORMS) != (chunk['platform'] in UI_PLATFORMS):
            raise Rejected('profiling_invalid_profile_type', 'item header', f'platform {header["platform"]!r}')
    if sender and header.get('platform') != chunk['platform']:
        raise Rejected('sender', 'item header', 'platform is not that of the payload')
    if sender and header.get('length') is None:
        raise Rejected('sender', 'item header', 'no length')


def check(data, sender=False):
    if data[:2] == b'\x1f\x8b':
        data = gzip.decompress(data)
    first_line, _, rest = data.partition(b'\n')
    if rest.startswith(b'{') and first_line.startswith(b'{'):
        check_envelope(data, sender)
    else:
        check_chunk(data, sender)


# --- Self-test -----------------------------------------------------------------------------------------------------

def good_chunk():
    return {
        'version': '2', 'profiler_id': '0b167bf84f9e4b84b384f321756d51e0',
        'chunk_id': '9723ec98a59b4cf9a8321939aa98f852', 'platform': 'native', 'release': 'program@1',
        'environment': 'production', 'client_sdk': {'name': 'offbeat', 'version': '0'},
        'debug_meta': {'images': [{
            'type': 'symbolic', 'debug_id': '1cc8ef1f-c2a2-e14d-ce2e-848c620ef422', 'code_file': '/bin/program',
            'code_id': '1fefc81ca2c24de1ce2e848c620ef422b92fb5a2', 'image_addr': '0x400000', 'image_size': 8192,
            'image_vmaddr': '0x0'}]},
        'measurements': {'cpu_usage': {'unit': 'percent', 'values': [{'timestamp': 1700000000.5, 'value': 1.5}]}},
        'profile': {
            'samples': [{'timestamp': 1700000000.25, 'stack_id': 0, 'thread_id': '7'},
                        {'timestamp': 1700000000.5, 'stack_id': 1, 'thread_id': '7'}],
            'stacks': [[0, 1], [1]],
            'frames': [{'function': 'leaf', 'instruction_addr': '0x400010', 'lineno': 4, 'in_app': True},
                       {'function': 'main', 'instruction_addr': '0x400020', 'in_app': False}],
            'thread_metadata': {'7': {'name': 'main', 'priority': 0}}}}


DELETED = object()
SAMPLE = 'profile.samples.0.'
FRAME = 'profile.frames.0.'
IMAGE = 'debug_meta.images.0.'

# path, new value, reason; None = still accepted
CHANGES = [
    ('version', '1', 'profiling_platform_not_supported'), ('version', DELETED, 'profiling_platform_not_supported'),
    ('version', 2, 'profiling_invalid_json'), ('platform', DELETED, 'profiling_invalid_json'),
    ('chunk_id', 'no uuid', 'profiling_invalid_json'), ('profiler_id', DELETED, 'profiling_invalid_json'),
    ('profiler_id', '0B167BF8-4F9E-4B84-B384-F321756D51E0', None), ('release', None, None), ('release', DELETED, None),
    ('release', 5, 'profiling_invalid_json'), ('environment', None, None),
    ('client_sdk', DELETED, 'profiling_invalid_json'), ('client_sdk.version', None, 'profiling_invalid_json'),
    ('debug_meta', DELETED, None), ('debug_meta', None, 'profiling_invalid_json'),
    ('debug_meta', {}, 'profiling_invalid_json'), (IMAGE + 'type', 'elf', 'profiling_invalid_json'),
    (IMAGE + 'type', 'Symbolic', 'profiling_invalid_json'), (IMAGE + 'type', DELETED, 'profiling_invalid_json'),
    (IMAGE + 'build_id', '1fefc81ca2c24de1ce2e848c620ef422b92fb5a2', 'profiling_invalid_json'),
    (IMAGE + 'debug_id', 'xyz', 'profiling_invalid_json'), (IMAGE + 'image_addr', 4194304, 'profiling_invalid_json'),
    (IMAGE + 'image_vmaddr', 0, 'profiling_invalid_json'), (IMAGE + 'image_size', '8192', None),
    (IMAGE + 'image_size', -1, 'profiling_invalid_json'), (IMAGE + 'name', '/again', 'profiling_invalid_json'),
    ('measurements', DELETED, None), ('measurements', None, 'profiling_invalid_json'),
    ('measurements.cpu_usage.unit', 'second', 'profiling_invalid_json'),
    ('measurements.cpu_usage.values', {}, 'profiling_invalid_json'),
    ('measurements.cpu_usage.values.0.value', '1e3', None),
    ('measurements.cpu_usage.values.0.value', 'much', 'profiling_invalid_json'),
    ('measurements.cpu_usage.values.0.timestamp', '1', 'profiling_invalid_json'),
    ('profile', DELETED, 'profiling_invalid_json'), (SAMPLE + 'timestamp', '1700000000.25', 'profiling_invalid_json'),
    (SAMPLE + 'timestamp', None, 'profiling_invalid_json'), (SAMPLE + 'stack_id', '0', 'profiling_invalid_json'),
    (SAMPLE + 'stack_id', 0.0, 'profiling_invalid_json'), (SAMPLE + 'stack_id', -1, 'profiling_invalid_json'),
    (SAMPLE + 'stack_id', True, 'profiling_invalid_json'), (SAMPLE + 'thread_id', 7, 'profiling_invalid_json'),
    (SAMPLE + 'thread_id', DELETED, 'profiling_invalid_json'),
    (SAMPLE + 'stack_id', 9, 'profiling_not_enough_samples'), (SAMPLE + 'thread_id', '8', 'profiling_not_enough_samples'),
    (SAMPLE + 'timestamp', 1699999934.5, None), (SAMPLE + 'timestamp', 1699999934.499, 'profiling_duration_is_too_long'),
    ('profile.samples', [], 'profiling_not_enough_samples'), ('profile.stacks', [], 'profiling_not_enough_samples'),
    ('profile.stacks', [[], []], 'profiling_not_enough_samples'), ('profile.frames', [], 'profiling_malformed_stacks'),
    ('profile.stacks', [[0, 1], [1], [2]], 'profiling_malformed_stacks'),
    ('profile.stacks.0.0', -1, 'profiling_invalid_json'), ('profile.stacks.0.0', '0', 'profiling_invalid_json'),
    (FRAME + 'lineno', -1, 'profiling_invalid_json'), (FRAME + 'lineno', 1 << 32, 'profiling_invalid_json'),
    (FRAME + 'lineno', (1 << 32) - 1, None), (FRAME + 'line', 4, 'profiling_invalid_json'), (FRAME + 'lineno', None, None),
    (FRAME + 'instruction_addr', 4194320, 'profiling_invalid_json'), (FRAME + 'instruction_addr', '4194320', None),
    (FRAME + 'instruction_addr', 'main', 'profiling_invalid_json'), (FRAME + 'in_app', 'yes', 'profiling_invalid_json'),
    (FRAME + 'in_app', None, None), (FRAME + 'function', 5, 'profiling_invalid_json'),
    ('profile.thread_metadata', DELETED, None), ('profile.thread_metadata.7.priority', -5, 'profiling_invalid_json'),
    ('profile.thread_metadata.7.name', 5, 'profiling_invalid_json'), ('unknown', {'key': [1]}, None),
]

# accepted by the server, but not what a sender should send
SENDER_CHANGES = [
    ('release', DELETED), ('environment', DELETED), ('profiler_id', '0B167BF8-4F9E-4B84-B384-F321756D51E0'),
    (FRAME + 'in_app', DELETED), (FRAME + 'instruction_addr', '4194320'), (SAMPLE + 'timestamp', 1700000001.0),
    ('profile.stacks', [[0, 1], [1], [0]]), ('profile.stacks', [[1], [1]]), ('profile.frames.1', good_chunk()['profile']['frames'][0]),
    ('profile.thread_metadata.8', {}), (IMAGE + 'code_file', DELETED), (IMAGE + 'type', 'macho'),
]

TEXT_CHANGES = [
    (b'"version": "2"', b'"version": "2", "version": "2"', 'profiling_invalid_json'),
    (b'1700000000.25', b'1e999', 'profiling_invalid_json'), (b'1700000000.25', b'NaN', 'profiling_invalid_json'),
    (b'"stack_id": 0', b'"stack_id": 0, "stack_id": 0', 'profiling_invalid_json'),
    (b'"leaf"', b'"\xff"', 'profiling_invalid_json'), (b'{"version"', b'{,"version"', 'profiling_invalid_json'),
    (b'"environment"', b'"x": 1, "x": 2, "environment"', None),
]


def changed(path, value):
    chunk = good_chunk()
    *parents, last = path.split('.')
    at = chunk
    for name in parents:
        at = at[int(name)] if isinstance(at, list) else at[name]
    last = int(last) if isinstance(at, list) else last
    if value is DELETED:
        del at[last]
    else:
        at[last] = copy.deepcopy(value)
    return json.dumps(chunk).encode()


def result(data, sender=False):
    try:
        check(data, sender)
    except Rejected as rejected:
        return rejected.reason
    return None


def envelope(header, payload=None):
    payload = json.dumps(good_chunk()).encode() if payload is None else payload
    header = dict({'type': 'profile_chunk', 'platform': 'native', 'length': len(payload)}, **header)
    header = {name: value for name, value in header.items() if value is not DELETED}
    return json.dumps(header).encode() + b'\n' + payload + b'\n'


def self_test():
    cases = [('a good chunk', json.dumps(good_chunk()).encode(), True, None)]
    for path, value, reason in CHANGES:
        cases.append((f'{path} = {"absent" if value is DELETED else repr(value)}', changed(path, value), False, reason))
    for path, value in SENDER_CHANGES:
        cases.append((f'server: {path}', changed(path, value), False, None))
        cases.append((f'sender: {path}', changed(path, value), True, 'sender'))
    for old, new, reason in TEXT_CHANGES:
        cases.append((repr(new), json.dumps(good_chunk()).encode().replace(old, new, 1), False, reason))
    cases += [
        ('envelope', b'{}\n' + envelope({}), True, None),
        ('envelope without length', b'{}\n' + envelope({'length': DELETED}), False, None),
        ('envelope without platform', b'{}\n' + envelope({'platform': DELETED}), False, None),
        ('envelope, other platform class', b'{}\n' + envelope({'platform': 'cocoa'}), False, 'profiling_invalid_profile_type'),
        ('envelope, other platform', b'{}\n' + envelope({'platform': 'python'}), True, 'sender'),
        ('envelope, old item type', b'{}\n' + envelope({'type': 'profile_chunk_ui'}), False, None),
        ('envelope, two chunks', b'{}\n' + envelope({}) + envelope({}), False, 'envelope'),
        ('envelope, length too short', b'{}\n' + envelope({'length': 9}), False, 'envelope'),
        ('envelope, length too long', b'{}\n' + envelope({'length': 1 << 20}), False, 'envelope'),
        ('envelope, blank line at the end', b'{}\n' + envelope({}) + b'\n', False, 'envelope'),
        ('envelope, carriage return', b'{}\n' + envelope({}).replace(b'}\n', b'}\r\n', 1), False, 'envelope'),
        ('envelope, meta_length', b'{}\n' + envelope({'meta_length': 3}), False, 'profiling_invalid_sampled_profile'),
        ('envelope, empty payload', b'{}\n' + envelope({}, b''), False, 'profiling_invalid_json'),
        ('gzip', gzip.compress(b'{}\n' + envelope({})), True, None),
        ('over 50 MiB', json.dumps(good_chunk()).encode() + b' ' * SIZE_MAX, False, 'profiling_exceed_size_limit'),
    ]
    failed = 0
    for number, (name, data, sender, expected) in enumerate(cases, 1):
        actual = result(data, sender)
        if actual != expected:
            failed += 1
            print(f'# {actual}, expected {expected}')
        print(f'{"ok" if actual == expected else "not ok"} {number} - {name}'.replace('#', ''))
    print(f'1..{len(cases)}')
    return 1 if failed else 0


def main(arguments):
    if arguments == ['--self-test']:
        return self_test()
    sender = '--sender' in arguments
    rejected = 0
    for path in arguments:
        if path == '--sender':
            continue
        try:
            with open(path, 'rb') as file:
                check(file.read(), sender)
            print(f'{path}: accepted')
        except (Rejected, OSError, EOFError) as error:
            rejected += 1
            print(f'{path}: {error}')
    return 1 if rejected else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
