"""Sentry's own SDK for Node sends to `offbeat serve`, in both lifecycles and with both kinds of spans. Not part of the test suite, which
needs no network. Arguments: the build folder, and a folder in which `npm install @sentry/node@11.1.0 @sentry/profiling-node@11.1.0` ran.
SPDX-License-Identifier: MIT"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from server_process import running  # noqa: E402
from tap import case, check, check_equal, main  # noqa: E402

OFFBEAT = pathlib.Path(sys.argv[1]).resolve() / "offbeat"
MODULES = pathlib.Path(sys.argv[2]).resolve()
BURNT_NS = 10 * 100_000_000  # by the program, as it means to


def burnt(answer):
    return sum(one["self"] for one in answer["functions"] if one["name"].endswith("burn"))


@case
def both_lifecycles_and_both_kinds_of_spans_arrive():
    with running(OFFBEAT) as server, tempfile.TemporaryDirectory(dir=MODULES) as folder:
        program = shutil.copy(pathlib.Path(__file__).with_name("node_sdk.js"), folder)
        for lifecycle in ("manual", "trace"):
            for kind in ("static", "stream"):
                environment = os.environ | {"SENTRY_DSN": server.dsn, "SENTRY_RELEASE_NAME": f"{lifecycle}-{kind}"}
                done = subprocess.run(["node", program, lifecycle, kind], env=environment, capture_output=True, text=True, timeout=60)
                check_equal(done.returncode, 0, done.stderr)
                service = f"service={lifecycle}-{kind}"
                found = server.read(f"transactions?{service}")["transactions"]
                check_equal([one["name"] for one in found], ["work"], f"transactions of {service}")
                for query in (service, f"{service}&transaction=work"):
                    value = burnt(server.read(f"top?{query}"))
                    check(0.7 * BURNT_NS < value < 1.1 * BURNT_NS, f"{query}: {value}")
                chart = server.read(f"flamechart?span={found[0]['span']}")
                check(chart["boxes"][0]["duration_ns"] > BURNT_NS, f"chart of {service}: {chart['boxes'][0]}")
        check_equal(server.read("rejected")["rejected"], [], "rejected items")
        print("#", server.outcomes())


main()
