"""Every JSON example of the documents, as a file in test/data/documents, is read and validated with the result that
expected.json has for it, with the reason where a document contradicts itself (FMT-1 to FMT-7, V1-1 to V1-9, V2-1 to V2-10,
LNK-1 to LNK-3). A name begins with the number of its document; "completed" means that an ellipsis or a slip of the pen was
mended to make it JSON. Argument: the program. SPDX-License-Identifier: MIT"""
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "test"))
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = sys.argv[1]
DOCUMENTS = ROOT / "test/data/documents"
EXPECTED = json.loads((DOCUMENTS / "expected.json").read_text(encoding="utf-8"))
CHUNK = DOCUMENTS / "000-v2-chunk.json"


def result(path, rules):
    done = subprocess.run([OFFBEAT, "validate", "--rules", rules, "--json", path], capture_output=True, text=True, check=False)
    answer = json.loads(done.stdout)
    return "accepted" if answer["accepted"] else f"{answer['reason']}: {answer['place']}"


def whole_of(path, folder):
    """An example that is part of a payload, put into one: by its first member."""
    part = json.loads(path.read_text(encoding="utf-8"))
    place = EXPECTED[path.name].get("part_of")
    if not place:
        return path
    payload = json.loads((DOCUMENTS / EXPECTED[path.name]["into"]).read_text(encoding="utf-8"))
    if place == "samples":
        payload["profile"]["samples"] = [part]
    elif place == "thread_metadata":
        payload["profile"].update(part)
    else:
        payload[place] = part
    whole = folder / "whole.json"
    whole.write_text(json.dumps(payload), encoding="utf-8")
    return whole


@case
def each_example_has_its_expected_result():
    found, expected = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(DOCUMENTS.iterdir()):
            if path.name == "expected.json":
                continue
            check(path.name in EXPECTED, f"expected.json lacks {path.name}")
            if "transaction" in EXPECTED[path.name]:
                continue
            is_part = "part_of" in EXPECTED[path.name]
            whole = whole_of(path, pathlib.Path(folder)) if is_part else path
            found[path.name] = {rules: result(whole, rules) for rules in ("spec", "relay")}
            expected[path.name] = {rules: EXPECTED[path.name].get(rules) for rules in ("spec", "relay")}
    check_equal(found, expected, "results")


@case
def examples_that_are_json_are_read():
    """Whatever a server says of them: the frames of each payload are shown."""
    for name in ("000-v2-chunk.json", "001-v2-chunk.completed.json", "000-v1-profile.json", "004-v1-profile.completed.json"):
        done = subprocess.run([OFFBEAT, "info", "--json", DOCUMENTS / name], capture_output=True, text=True, check=False)
        check_equal(done.returncode, 0, f"status of {name}: {done.stderr}")
        check_equal(json.loads(done.stdout)["samples"], 1, f"samples of {name}")


@case
def the_examples_of_links_are_what_a_reader_finds_LNK_1_LNK_2_LNK_3():
    contexts = json.loads((DOCUMENTS / "000-transaction-contexts.json").read_text(encoding="utf-8"))["contexts"]
    span = json.loads((DOCUMENTS / "000-span-data.json").read_text(encoding="utf-8"))
    transaction = {"type": "transaction", "event_id": "a229377b82ad4898be7c3a6272d052d9", "transaction": "t",
                   "start_timestamp": 1700000000.0, "timestamp": 1700000001.0,
                   "contexts": {"profile": contexts["profile"], "trace": {**contexts["trace"], "trace_id": "4b25bc58f14243d8b208d1e22a054164",
                                                                          "span_id": "4b25bc58f14243d8"}},
                   "spans": [{**span, "span_id": "4b25bc58f14243d9", "trace_id": "4b25bc58f14243d8b208d1e22a054164",
                              "start_timestamp": 1700000000.0, "timestamp": 1700000001.0}]}
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "x.envelope"
        path.write_text('{"event_id":"a229377b82ad4898be7c3a6272d052d9"}\n{"type":"transaction"}\n' + json.dumps(transaction) + "\n", encoding="utf-8")
        done = subprocess.run([OFFBEAT, "info", "--json", path], capture_output=True, text=True, check=False)
    item = json.loads(done.stdout)["items"][0]
    check_equal((item["profiler_id"], item["thread_id"], item["thread_name"]),
                ("42928c7ee9174231956f077581145489", "259", "com.apple.main-thread"), "links")


main()
