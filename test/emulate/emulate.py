"""Runs a command in an emulated machine: `emulate.py CACHE RELEASE COMMAND…`. The machine is a 64-bit Arm with the Debian RELEASE
(bookworm, trixie). It sees this clone, and a folder /exchange, by 9p at the same path, so that programs of build-aarch64 and
tests run as they are; everything else that a command writes vanishes. Prints what the command prints and ends with its status.

The first run unpacks Debian's packages into CACHE and makes an image of them, which takes a minute or two; a start from the
image takes seconds. No file of the tree runs on this machine. SPDX-License-Identifier: MIT"""
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = """linux-image-arm64 libc-bin base-files base-passwd dash busybox-static bash coreutils grep sed gawk findutils diffutils gzip xz-utils procps util-linux binutils file
python3 linux-perf curl ca-certificates libcap2-bin libdw1 libelf1 libdeflate0 libbrotli1 libzstd1 libcapstone4 libmicrohttpd12
libsqlite3-0 libnettle8 libbpf1 perl bc mawk lua5.4 sqlite3 openssl zstd bzip2 redis-server redis-tools""".split()
RENAMED = {"bookworm": ["libcurl4"], "trixie": ["libcurl4t64"]}
NOT_IN = {"trixie": {"libcapstone4": "libcapstone5", "libelf1": "libelf1t64", "libmicrohttpd12": "libmicrohttpd12t64", "libnettle8": "libnettle8t64"}}
MODULES = "virtio_mmio virtio_blk ext4 crc32c_generic virtio_console 9pnet_virtio 9p".split()
IMAGE_MB, MEMORY_MB, PROCESSORS = 2048, 2048, 2
SECONDS_MAX = int(os.environ.get("OFFBEAT_EMULATE_SECONDS", 900))

MOUNT_9P = "busybox mount -t 9p -o trans=virtio,version=9p2000.L,msize=512000,cache=loose"

# The first process of the initial file system.
FIRST = f"""#!/bin/busybox sh
alias busybox=/bin/busybox
for module in MODULES; do busybox insmod /$module.ko; done
busybox mount -t devtmpfs dev /dev
busybox mount -t ext4 /dev/vda /root
busybox mkdir -p /root/exchange
{MOUNT_9P} exchange /root/exchange
busybox umount /dev
exec busybox switch_root /root /exchange/init
"""

# The first process of the image. The host's time is given, because the clock's driver is a module.
INIT = f"""#!/bin/busybox sh
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm $CLONE
busybox mount -t devpts pts /dev/pts
for folder in /dev/shm /tmp /run; do busybox mount -t tmpfs none $folder; done
busybox mount -t tracefs none /sys/kernel/tracing
busybox mount -t bpf none /sys/fs/bpf
busybox ip link set lo up
{MOUNT_9P} clone $CLONE
date -s @$TIME >/dev/null
cd $FOLDER
COMMAND </dev/null >/dev/vport0p1 2>&1
echo $? >/exchange/status
sync
busybox poweroff -f
"""


def fail(message):
    sys.exit(f"emulate: {message}")


# --- the image --------------------------------------------------------------------------------------------------------

def unpack(tree, release):
    """Unpacks the packages into TREE, and adds what their scripts would have made."""
    print(f"emulate: unpacking Debian's packages for arm64 ({release})", file=sys.stderr, flush=True)
    packages = [NOT_IN.get(release, {}).get(name, name) for name in PACKAGES] + RENAMED[release]
    log = tree.with_suffix(".log")
    with open(log, "w") as out:
        done = subprocess.run(["mmdebstrap", "--variant=extract", "--arch=arm64", "--skip=check/qemu", "--include=" + ",".join(packages),
                               release, tree], stdout=out, stderr=out)
    if done.returncode:
        fail(f"mmdebstrap could not unpack the packages; all of its output is in {log}")
    for name in ("passwd", "group"):
        shutil.copy(tree / f"usr/share/base-passwd/{name}.master", tree / f"etc/{name}")
    (tree / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    (tree / "etc/hostname").write_text("emulated\n")
    for link, target in (("usr/bin/awk", "gawk"), ("bin/sh", "dash"), ("bin/awk", "/usr/bin/gawk")):
        if not os.path.lexists(tree / link):
            (tree / link).symlink_to(target)


def module_files(tree):
    """The files of MODULES and of what they need, in the order in which they are loaded."""
    files = {path.name.split(".ko")[0].replace("-", "_"): path for path in tree.glob("usr/lib/modules/**/*.ko*")}
    files |= {path.name.split(".ko")[0].replace("-", "_"): path for path in tree.glob("lib/modules/**/*.ko*")}
    order = {}

    def add(name):
        if name in order or name not in files: # else it is part of the kernel
            return
        packed = files[name].read_bytes()
        code = subprocess.run(["xz", "-dc"], input=packed, stdout=subprocess.PIPE, check=True).stdout if files[name].suffix == ".xz" else packed
        depends = next((text for text in code.split(b"\0") if text.startswith(b"depends=")), b"depends=")[8:].decode()
        for needed in filter(None, depends.replace("-", "_").split(",")):
            add(needed)
        order[name] = code

    for name in MODULES:
        add(name)
    return order


def archive(entries):
    """An initial file system, in the format newc of cpio; ENTRIES: {name: (mode, bytes)}."""
    out = bytearray()
    for number, (name, (mode, contents)) in enumerate([*entries.items(), ("TRAILER!!!", (0, b""))], 1):
        fields = [number, mode, 0, 0, 1, 0, len(contents), 0, 0, 0, 0, len(name) + 1, 0]
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        out += bytes(-len(out) % 4) + contents
        out += bytes(-len(out) % 4)
    return bytes(out)


def make_machine(cache, release):
    """Makes the image, the kernel and the initial file system of RELEASE; the last of them only if all is done."""
    tree, image, first = cache / f"{release}.tree", cache / f"{release}.img", cache / f"{release}.initrd"
    made_of = cache / f"{release}.packages"
    if first.exists() and made_of.exists() and made_of.read_text() == " ".join(PACKAGES):
        return
    first.unlink(missing_ok=True)
    cache.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(tree, ignore_errors=True)
    unpack(tree, release)
    shutil.copy(next(tree.glob("boot/vmlinuz-*")), cache / f"{release}.kernel")
    modules = module_files(tree)
    busybox = next(path for path in (tree / "bin/busybox", tree / "usr/bin/busybox") if path.exists())
    image.unlink(missing_ok=True)
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-d", tree, image, f"{IMAGE_MB}M"], check=True)
    entries = {folder: (0o40755, b"") for folder in ("bin", "dev", "root")}
    entries["bin/busybox"] = (0o100755, busybox.read_bytes())
    entries["init"] = (0o100755, FIRST.replace("MODULES", " ".join(modules)).encode())
    entries |= {f"{name}.ko": (0o100644, code) for name, code in modules.items()}
    made_of.write_text(" ".join(PACKAGES))
    first.write_bytes(archive(entries))
    shutil.rmtree(tree)


# --- a run ------------------------------------------------------------------------------------------------------------

def write_init(exchange, command):
    """Writes the first process of the machine, which runs COMMAND."""
    here = pathlib.Path.cwd()
    kept = {name: value for name, value in os.environ.items() if name.startswith(("OFFBEAT_", "TAP_"))}
    kept |= {"HOME": "/root", "LC_ALL": "C.UTF-8", "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    words = ["env", "-i", *(f"{name}={value}" for name, value in kept.items()), *command]
    init = exchange / "init"
    init.write_text(INIT.replace("$CLONE", shlex.quote(str(ROOT))).replace("$TIME", str(int(time.time())))
                    .replace("$FOLDER", shlex.quote(str(here if ROOT in [here, *here.parents] else ROOT)))
                    .replace("COMMAND", shlex.join(words)))
    init.chmod(0o755)


def emulator(cache, release, exchange):
    share = "local,security_model=none,multidevs=remap"
    return ["qemu-system-aarch64", "-M", "virt", "-cpu", "max,pauth-impdef=on", "-smp", str(PROCESSORS), "-m", str(MEMORY_MB),
            "-accel", "tcg,thread=single", "-icount", "shift=2,sleep=off", "-display", "none", "-no-reboot", "-nic", "none", "-monitor", "none",
            "-kernel", cache / f"{release}.kernel", "-initrd", cache / f"{release}.initrd",
            "-append", "console=ttyAMA0 quiet panic=-1", "-serial", f"file:{exchange}/console",
            "-drive", f"file={cache}/{release}.img,format=raw,if=none,id=image,snapshot=on", "-device", "virtio-blk-device,drive=image",
            "-fsdev", f"{share},id=clone,path={ROOT}", "-device", "virtio-9p-device,fsdev=clone,mount_tag=clone",
            "-fsdev", f"{share},id=exchange,path={exchange}", "-device", "virtio-9p-device,fsdev=exchange,mount_tag=exchange",
            "-device", "virtio-serial-device", "-chardev", "file,id=out,path=/dev/stdout,append=on",
            "-device", "virtserialport,chardev=out,nr=1"]


def run(cache, release, command):
    with tempfile.TemporaryDirectory(prefix="offbeat-emulate-") as folder:
        exchange = pathlib.Path(folder)
        write_init(exchange, command)
        machine = subprocess.Popen(emulator(cache, release, exchange), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        limit = threading.Timer(SECONDS_MAX, machine.kill)
        limit.start()
        for part in iter(lambda: machine.stdout.read1(65536), b""):
            sys.stdout.buffer.write(part)
            sys.stdout.buffer.flush()
        machine.wait()
        limit.cancel()
        status = exchange / "status"
        if status.exists():
            return int(status.read_text())
        console = (exchange / "console").read_text(errors="replace") if (exchange / "console").exists() else ""
        fail(f"the machine ended without a status; its time is limited to {SECONDS_MAX} s (OFFBEAT_EMULATE_SECONDS)\n{console[-2000:]}")


if __name__ == "__main__":
    if len(sys.argv) < 4 or sys.argv[2] not in RENAMED:
        fail(f"usage: emulate.py CACHE {'|'.join(RENAMED)} COMMAND…")
    make_machine(pathlib.Path(sys.argv[1]), sys.argv[2])
    sys.exit(run(pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]))
