"""Makes the traces of test/data/ledger: runs small programs under a liboffbeat that writes what its ledger is told.

usage: record.py BUILD FOLDER     (root; needs test/ledger_trace/liboffbeat-traced.so and test/safety/safety_without_perf in BUILD)

A trace is the longest one of the processes of a situation, cut after a call. It depends on the machine and the moment:
new traces replace old ones only if the inputs of the ledger change."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

LIMIT = 14000

SPIN = "import time\nend=time.monotonic()+%s\nwhile time.monotonic()<end: pass"
BURSTS = "import time\nend=time.monotonic()+.4\nwhile time.monotonic()<end:\n" \
         " until=time.thread_time()+%s\n while time.thread_time()<until: pass\n time.sleep(%s)"
CALLS = "import os,time\nend=time.monotonic()+.3\nbuffer=bytearray(1<<18)\nzero=open('/dev/zero','rb',0)\n" \
        "while time.monotonic()<end: zero.readinto(buffer)"
SHORT = "import threading,time\nfor i in range(120):\n t=threading.Thread(target=time.sleep,args=(%s,))\n t.start()\n %s"
MANY = "import threading,time\nts=[threading.Thread(target=time.sleep,args=(.05+i/1000,)) for i in range(%s)]\n" \
       "for t in ts: t.start()\nfor t in ts: t.join()"
COMPUTE = "import threading,hashlib,time\ndata=bytes(1<<20)\nend=time.monotonic()+.4\n" \
          "def work():\n while time.monotonic()<end: hashlib.sha256(data)\n" \
          "ts=[threading.Thread(target=work) for i in range(%s)]\nfor t in ts: t.start()\nfor t in ts: t.join()"
STOPPED = "import os,signal,time\nif os.fork()==0:\n time.sleep(.3)\n os.kill(os.getppid(),signal.SIGCONT)\n os._exit(0)\n" \
          "os.kill(os.getpid(),signal.SIGSTOP)\n" + SPIN % .1
BLOCKS = "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK,range(1,32))\n" + SPIN % .4
FORKS = "import os,time\nfor i in range(4):\n" \
        " if os.fork()==0:\n  end=time.monotonic()+.03\n  while time.monotonic()<end: pass\n  os._exit(0)\n os.wait()\ntime.sleep(.1)"


def python(code):
    return ["/usr/bin/python3", "-S", "-c", code]


ORDINARY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
WITHOUT_PERF = ["./without_perf"]
WITHOUT_TIMERS = ["./without_perf", "--timers"]
ONE_CPU = ["taskset", "-c", "0"]

# name: (before the recorder, options of it, program, number of programs that compete for the processor)
SITUATIONS = {
    "idle": ([], [], ["sleep", ".4"], 0),
    "busy": ([], [], python(SPIN % .3), 0),
    "busy_cpu_mode": ([], ["--mode", "cpu"], python(SPIN % .3), 0),
    "busy_1000_hz": ([], ["-F", "1000"], python(SPIN % .1), 0),
    "bursts": ([], [], python(BURSTS % (.001, .002)), 0),
    "bursts_cpu_mode": ([], ["--mode", "cpu"], python(BURSTS % (.005, .005)), 0),
    "long_sleeps": ([], [], python(BURSTS % (.02, .05)), 0),
    "system_calls": ([], [], python(CALLS), 0),
    "short_threads": ([], [], python(SHORT % (.0005, "t.join()")), 0),
    "threads_that_overlap": ([], [], python(SHORT % (.004, "time.sleep(.001)")), 0),
    "many_threads": ([], [], python(MANY % 40), 0),
    "three_threads_on_two_processors": ([], [], python(COMPUTE % 3), 0),
    "forks": ([], [], python(FORKS), 0),
    "exec": ([], [], ["sh", "-c", "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; exec sleep .1"], 0),
    "stopped": ([], [], python(STOPPED), 0),
    "overloaded": (ONE_CPU, [], python(BURSTS % (.002, .001)), 5),
    "overloaded_threads": (ONE_CPU, [], python(COMPUTE % 4), 4),
    "overloaded_short_threads": (ONE_CPU, [], python(SHORT % (.0005, "t.join()")), 4),
    "user_code_only": (ORDINARY, [], python(SPIN % .3), 0),
    "user_code_only_calls": (ORDINARY, [], python(CALLS), 0),
    "user_code_only_bursts": (ORDINARY, [], python(BURSTS % (.003, .001)), 0),
    "no_perf": (WITHOUT_PERF, [], python(SPIN % .3), 0),
    "no_perf_bursts": (WITHOUT_PERF, [], python(BURSTS % (.002, .002)), 0),
    "no_timers_bursts": (WITHOUT_TIMERS, [], python(BURSTS % (.002, .002)), 0),
    "no_timers_overloaded": ([*ONE_CPU, *WITHOUT_TIMERS], [], python(BURSTS % (.002, .001)), 4),
    "no_timers_signals_blocked": (WITHOUT_TIMERS, [], python(BLOCKS), 0),
}


def prepare(build, folder):
    for name in ("offbeat", "liboffbeat-first.so", "offbeat-helper"):
        if (build / name).exists():
            shutil.copy(build / name, folder / name)
    shutil.copy(build / "test/ledger_trace/liboffbeat-traced.so", folder / "liboffbeat.so")
    shutil.copy(build / "test/safety/safety_without_perf", folder / "without_perf")
    folder.chmod(0o755)


def run(folder, situation, work):
    before, options, program, competitors = situation
    others = [subprocess.Popen([*ONE_CPU, *python(SPIN % 3)]) for _ in range(competitors)]
    environment = {**os.environ, "OFFBEAT_TRACE": str(work / "trace")}
    result = subprocess.run([*before, str(folder / "offbeat"), "record", *options, "-o", str(work / "out.pb.gz"), "--", *program],
                            env=environment, cwd=folder, check=False, capture_output=True)
    for other in others:
        other.kill()
        other.wait()
    if result.returncode:
        print(result.stderr.decode())


def cut(text):
    if len(text) <= LIMIT:
        return text
    at = LIMIT
    while text[at] != "\n" or text[at + 1] in "?>=":
        at -= 1
    return text[:at + 1]


def main():
    build, target = map(pathlib.Path, sys.argv[1:])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(build.resolve(), folder)
        for title, situation in SITUATIONS.items():
            work = folder / title
            work.mkdir()
            work.chmod(0o777)
            run(folder, situation, work)
            traces = sorted((path.stat().st_size, path) for path in work.glob("trace.*"))
            if not traces:
                print(f"{title}: no trace")
                continue
            text = traces[-1][1].read_text()
            print(f"{title}: {len(text)} bytes")
            (target / f"{title}.trace").write_text(cut(text))


main()
