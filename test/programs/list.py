"""The programs: what each does, the Debian packages that it takes, and what of its output differs from run to run even without us.

Chosen by how many machines have them (Debian's popularity contest: shells, core utilities, interpreters, compilers, archivers,
crypto, servers, databases, media, typesetting), not by how easy they are. Each works for about a second, offline, on
inputs.py's files, which are in $INPUT. The working folder, $HOME and $TMPDIR are empty before. Servers listen on $PORT or
on a socket in the working folder, and are stopped by the script.

With "packages", "packages quick": prints the packages.  SPDX-License-Identifier: MIT"""
import dataclasses
import sys


@dataclasses.dataclass(frozen=True)
class Program:
    name: str
    packages: str                # words
    script: str                  # for sh -e
    prepare: str = ""            # run before, never with us
    varies: tuple = ()           # (pattern, replacement): in standard output, standard error and files; the reason is beside it
    ignored_files: tuple = ()    # patterns of file names: differ from run to run
    users: tuple = ("root", "nobody")
    complete: float = 99.0       # per cent of stacks that reach the root, at least; lower only with a reason beside it
    cpu: float = 0.0             # per cent of user + system time in the profile; 0: shown, not required
    is_quick: bool = False       # a part of ./dev test
    port: int = 0


LIST = []


def add(name, packages, script, **more):
    LIST.append(Program(name, packages, script, port=21000 + len(LIST), **more))


# --- shells and core utilities ---------------------------------------------------------------------------------------

add("bash", "bash", r"""exec bash -c 'n=0; for ((i = 0; i < 150000; i++)); do ((n += i * i % 7)); s=${i//1/x}; done; echo $n $s; exit 3'""", is_quick=True)
add("dash", "dash", "i=0; s=0; while [ $i -lt 300000 ]; do i=$((i + 1)); s=$((s + i % 13)); done; echo $s", is_quick=True)
add("busybox", "busybox-static", "echo $(seq 3); busybox awk 'BEGIN { for (i = 0; i < 500000; i++) s += i % 7 * 3; print s }'",
    complete=0)  # a static program, which record counts: there are no stacks
add("sort", "coreutils", "head -n 120000 $INPUT/words.txt >some; sort -S 10M some -o sorted; sort -R --random-source=$INPUT/text.txt some | sort -u | wc")
add("coreutils", "coreutils", """cat $INPUT/*.* >all; for sum in md5sum sha1sum sha256sum sha512sum b2sum cksum; do $sum all; done
tr a-z b-za <all | cut -c 1-20 | uniq -c | tail -n 3; base64 all | wc; od -x all | head -n 2; factor 2535301200456458802993406410751
shuf --random-source=all $INPUT/words.txt | head; ls -lR --time-style=+ $INPUT/tree >tree; du -s --apparent-size $INPUT/tree""")
add("util-linux", "util-linux", """setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all id -u || echo $?
unshare -m true && echo mounts || echo $?; unshare -Ur id -u || echo $?; unshare -fp --kill-child id -u || echo $?; nsenter -t $$ -m id -u || echo $?
runuser -u nobody -- id -u || echo $?; chroot --userspec=65534:65534 / id -u || echo $?; flock lock echo locked || echo $?; setarch -R id -u || echo $?
rev $INPUT/words.txt | column -c 200 | hexdump -C | md5sum; timeout 0.2 sleep 5 || echo $?; setsid -w id -u; prlimit --nofile=64 id -u; taskset 1 id -u; ionice -c 3 id -u""",
    users=("root",))
add("findutils", "findutils", "for i in 1 2 3 4 5; do find $INPUT/tree /usr/share/doc -type f -name '*.txt' | xargs cat | wc; done")
add("grep", "grep", r"""grep -cE '([a-z]+)e \1' $INPUT/text.txt; grep -ci 'th.*re' $INPUT/text.txt; grep -rho 'st[a-z]*' $INPUT/tree | sort | uniq -c |
sort -rn | head; grep -q nothing_here $INPUT/text.txt""", is_quick=True)
add("sed", "sed", r"sed -E 's/([a-z]+) ([a-z]+)/\2 \1/g; s/e/E/3; y/abc/xyz/; /^t/d' $INPUT/text.txt >changed; tail -n 2 changed")
add("gawk", "gawk", "exec gawk '{ for (i = 1; i <= NF; i++) n[$i]++ } END { for (w in n) print n[w], w | \"sort -rn\" }' $INPUT/text.txt", is_quick=True)
add("mawk", "mawk", "exec mawk '{ for (i = 1; i <= NF; i++) { n[$i]++; s += length($i) * i } } END { for (w in n) t += n[w]; print s, t }' "
    "$INPUT/text.txt $INPUT/text.txt", is_quick=True)
add("bc", "bc", "echo 'scale=1200; 4*a(1); sqrt(2)' | bc -l", is_quick=True)
add("diff", "diffutils", "sed -n 'p;/q/p' $INPUT/text.txt >changed; diff -u --label a --label b $INPUT/text.txt changed >patch || echo $?; "
    "diff -r $INPUT/tree $INPUT/tree; cmp $INPUT/text.txt changed")
add("file", "file", "find /usr/bin /usr/share/perl /usr/share/doc -type f | sort | head -n 900 | file -n -f - >kinds; tail -n 1 kinds")
add("less_groff", "groff-base man-db", "for i in 1 2 3; do zcat -f $(ls /usr/share/man/man1/*.1.gz | head -n 25) | groff -man -Tutf8 -ww; done "
    "2>warnings | tail -n 20")
add("man", "man-db", "export MANPAGER=cat; man -l $(ls /usr/share/man/man1/*.1.gz | head -n 30) 2>&1 >pages; wc pages")

# --- archivers, compressors ------------------------------------------------------------------------------------------

add("tar", "tar gzip", "tar --sort=name --mtime=@0 --owner=0 --group=0 -czf a.tgz -C $INPUT .; tar xzf a.tgz; tar tf a.tgz | wc")
add("gzip", "gzip", "gzip -9 -n -c $INPUT/text.txt >a.gz; gzip -dc a.gz | gzip -n -6 >b.gz; gzip -t a.gz b.gz", is_quick=True)
add("xz", "xz-utils", "xz -T2 --block-size=1MiB -6 -c $INPUT/rows.json >a.xz; xz -dc a.xz | md5sum")
add("zstd", "zstd", "zstd -q -T2 -15 -c $INPUT/rows.json >a.zst; zstd -q -dc a.zst | zstd -q -3 --rsyncable | md5sum")
add("bzip2", "bzip2", "bzip2 -c $INPUT/text.txt >a.bz2; bunzip2 -c a.bz2 | md5sum")
add("lz4_brotli_lzop", "lz4 brotli lzop", "lz4 -q -9 -c $INPUT/text.txt | lz4 -dc | md5sum; brotli -q 7 -c $INPUT/rows.csv | brotli -dc | md5sum; "
    "lzop -7 -c $INPUT/text.txt | lzop -dc | md5sum")
add("zip", "zip unzip", "zip -q -r -X a.zip $INPUT; unzip -q a.zip; unzip -l a.zip | tail -n 1; find . -name '*.txt' | wc",
    ignored_files=())
add("7z", "p7zip-full", "cp -r $INPUT/rows.csv $INPUT/words.txt .; 7z a -mx=5 -mmt=2 -bso0 -bsp0 a.7z rows.csv words.txt; 7z t -bsp0 a.7z | tail -n 4",
    ignored_files=("work/a.7z",), varies=((r"(?m)^Compressed: \d+", ""),))  # holds times of its files
add("dpkg-deb", "dpkg", "mkdir -p p/DEBIAN p/usr; cp -r $INPUT/tree p/usr; printf 'Package: p\\nVersion: 1\\nArchitecture: all\\nMaintainer: "
    "nobody <n@example.org>\\nDescription: p\\n' >p/DEBIAN/control; chmod -R u=rwX,go=rX p; SOURCE_DATE_EPOCH=1 dpkg-deb --root-owner-group -Zxz -b p p.deb; "
    "dpkg-deb -c p.deb | wc; dpkg-deb -x p.deb q; dpkg-query -W | wc")
add("apt-cache", "apt", "apt-cache -o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= show bash libc6 | grep -c Depends; apt-cache -o Dir::Cache=$HOME search xmlli | wc; "
    "apt-cache -o Dir::Cache=$HOME depends --recurse bash | md5sum", ignored_files=("home/*",))  # the cache has addresses in it
add("rsync", "rsync", "for i in 1 2 3; do rsync -rc --delete --chmod=u+w $INPUT/ copy$i; echo more >>copy$i/text.txt; rsync -rc --stats $INPUT/ copy$i; done",
    varies=((r"(File list (generation|transfer) time|Total (bytes|transferred)[^:]*|sent).*", r"\1"), (r"total size is.*", "")))  # times

# --- crypto ----------------------------------------------------------------------------------------------------------

add("openssl", "openssl", "for i in 1 2 3; do openssl enc -aes-256-cbc -pbkdf2 -iter 200000 -pass pass:x -S 0102030405060708 -in $INPUT/text.txt -out a; done; "
    "openssl dgst -sha3-512 a $INPUT/*.*; openssl prime -generate -bits 512 -hex | wc -l; openssl s_client -connect 127.0.0.1:1 </dev/null || echo $?",
    varies=((r"[0-9A-F]{12,16}:error", "ADDRESS:error"),))  # the thread's address
add("ssh-keygen", "openssh-client", "ssh-keygen -q -t rsa -b 3072 -N '' -C c -f key; ssh-keygen -q -t ed25519 -N x -a 100 -C c -f key2; "
    "ssh-keygen -y -f key | wc; ssh-keygen -q -t rsa -b 4096 -N x -a 60 -C c -f key3",
    ignored_files=("work/key*",))  # random
add("gpg", "gnupg", "export GNUPGHOME=$HOME/g; mkdir -m 700 $GNUPGHOME; gpg --batch --no-autostart --print-md SHA512 $INPUT/*.*; "
    "for i in 1 2; do gpg --batch --yes -q --pinentry-mode loopback --passphrase x --s2k-count 65011712 -o a.gpg -c $INPUT/rows.sql; "
    "gpg --batch -q --pinentry-mode loopback --passphrase x -d a.gpg | md5sum; done; gpgconf --kill all",
    ignored_files=("work/a.gpg", "home/*"))  # random
add("curl", "curl", "for i in 1 2 3 4 5 6 7 8; do curl -sS --compressed file://$INPUT/'{text.txt,rows.json,rows.csv}' -o 'x#1'; done; "
    "curl -sS http://127.0.0.1:1/ || echo $?; md5sum x*", varies=((r"after \d+ ms", "after N ms"),))  # a time

# --- interpreters ----------------------------------------------------------------------------------------------------

add("perl", "perl", r"""exec perl -ne 'while (/(\w+)/g) { $n{$1}++; $s += length $1 } END { print "$s ", scalar(keys %n), "\n"; print "$_ $n{$_}\n" for (sort { $n{$b} <=> $n{$a} || $a cmp $b } keys %n)[0..9]; exit 7 }' $INPUT/text.txt""", is_quick=True)
add("python3", "python3", r"""exec /usr/bin/python3 -c '
import collections, hashlib, json, os, re, sys, threading, zlib
rows = json.load(open(os.environ["INPUT"] + "/rows.json"))
print(collections.Counter(tag for row in rows for tag in row["tags"]).most_common(3))
text = open(os.environ["INPUT"] + "/text.txt").read()
print(len(re.findall(r"(\w)\1", text)), hashlib.sha256(zlib.compress(text.encode())).hexdigest())
threads = [threading.Thread(target=lambda: sorted(rows, key=lambda row: row["name"])) for _ in range(4)]
[thread.start() for thread in threads]; [thread.join() for thread in threads]
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
print(fib(24)); sys.stderr.write("done\n"); sys.exit(5)'""", is_quick=True)
add("python3-numpy", "python3-numpy", r"""export OPENBLAS_NUM_THREADS=2; exec /usr/bin/python3 -c '
import numpy as np
a = np.arange(490000, dtype=float).reshape(700, 700) % 17
for _ in range(6): b = np.rint(a @ a.T) % 13
print(int(b.sum()), int(np.sort(a.ravel())[::1000].sum()), round(float(np.abs(np.fft.fft2(a)).max())), np.linalg.matrix_rank(a))'""")
add("php", "php-cli", r"""exec php -n -r '$s = 0; $a = []; for ($i = 0; $i < 2000000; $i++) { $s = ($s * 31 + $i) % 1000003; $a[$s % 1000] = ($a[$s % 1000] ?? 0) + 1; } ksort($a); echo $s, " ", md5(json_encode($a)), " ", preg_match_all("/t\w+e/", file_get_contents(getenv("INPUT") . "/text.txt")), "\n";'""", complete=91.0)  # measured 94 to 96: code without unwind tables; probably PCRE2's compiled patterns
add("ruby", "ruby", r"""exec ruby -e 'n = Hash.new(0); File.foreach(ENV["INPUT"] + "/text.txt") { |l| l.split.each { |w| n[w] += 1 } }; p n.sort_by { |w, c| [-c, w] }.first(5); s = 0; 2_000_000.times { |i| s = (s * 7 + i) % 9973 }; puts s; t = 3.times.map { |k| Thread.new { (1..200_000).sum { |x| x * k % 11 } } }; p t.map(&:value)'""")
add("lua", "lua5.4", r"""exec lua5.4 -e 'local t, s = {}, 0; for i = 1, 4000000 do s = (s * 31 + i) % 65521; t[s % 1000] = i end; for line in io.lines(os.getenv("INPUT") .. "/text.txt") do for w in line:gmatch("%a+") do s = s + #w end end; print(s, #t)'""", is_quick=True)
add("luajit", "luajit", r"""exec luajit -e 'local t, s = {}, 0; for i = 1, 30000000 do s = (s * 31 + i) % 65521; t[s % 1000] = i end; for line in io.lines(os.getenv("INPUT") .. "/text.txt") do for w in line:gmatch("%a+") do s = s + #w end end; print(s)'""", complete=15.0)  # measured 20 to 45: machine code that is made at run time
add("tcl", "tcl", r"""echo 'set s 0; for {set i 0} {$i < 200000} {incr i} { set s [expr {($s * 31 + $i) % 65521}]; lappend l($s) $i }; puts "$s [array size l]"' >a.tcl; exec tclsh a.tcl""")
add("guile", "guile-3.0", r"""exec guile --no-auto-compile -c '(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (display (fib 30)) (newline) (display (length (sort (map (lambda (i) (modulo (* i 7919) 65521)) (iota 200000)) <)))'""", complete=35.0)  # measured 38 to 44: most of the code comes from Guile's compiler, which writes no unwind tables
add("node", "nodejs", r"""exec node -e '
const fs = require("fs"), crypto = require("crypto"), zlib = require("zlib");
const text = fs.readFileSync(process.env.INPUT + "/text.txt", "utf8"), n = new Map();
for (const w of text.split(/\s+/)) n.set(w, (n.get(w) || 0) + 1);
console.log([...n].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 5));
let s = 0; for (let i = 0; i < 6e7; i++) s = (s * 31 + i) % 65521; console.log(s);
console.log(JSON.parse(fs.readFileSync(process.env.INPUT + "/rows.json")).reduce((a, r) => a + r.tags.length, 0));
console.log(crypto.createHash("sha256").update(zlib.gzipSync(text)).digest("hex")); process.exitCode = 4;'""")
add("octave", "octave", r"""exec octave-cli --no-history -q --norc --eval 'a = mod(reshape(1:250000, 500, 500), 17); for i = 1:3, b = mod(a * a, 13); end; s = 0; for i = 1:150000, s = mod(s * 31 + i, 65521); end; disp(sum(b(:))); disp(s); disp(round(sum(svd(a(1:200, 1:200)))))'""")
add("r", "r-base-core", r"""export OPENBLAS_NUM_THREADS=2; exec R --vanilla --slave -e 'x <- (1:300000 * 7919) %% 65521; print(summary(sort(x))); f <- function(n) if (n < 2) n else f(n - 1) + f(n - 2); print(f(22)); print(coef(lm(mpg ~ wt + hp, mtcars))); w <- scan(paste0(Sys.getenv("INPUT"), "/words.txt"), "", quiet = TRUE); print(head(sort(table(w), decreasing = TRUE), 3))'""", complete=88.0)  # measured 92 to 97: OpenBLAS has assembly without unwind tables
add("erlang", "erlang-base", r"""exec erl -noshell -eval 'F = fun F(0, A) -> A; F(N, A) -> F(N - 1, (A * 31 + N) rem 65521) end, io:format("~p~n", [F(1500000, 0)]), io:format("~p~n", [length(lists:usort([X * 7919 rem 65521 || X <- lists:seq(1, 300000)]))]), halt(3).'""", complete=0)  # measured 2 to 4: Erlang's code is made at run time
add("sbcl", "sbcl", r"""exec sbcl --noinform --no-sysinit --no-userinit --non-interactive --eval '(progn (defun fib (n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2))))) (print (fib 36)) (let ((h (make-hash-table :test (quote equal)))) (dotimes (i 300000) (incf (gethash (format nil "~a" (mod (* i 7919) 65521)) h 0))) (print (hash-table-count h))) (terpri) (exit :code 3))'""", complete=0)  # measured 0 to 2: SBCL's compiler writes no unwind tables
add("swipl", "swi-prolog-nox", r"""exec swipl -f none -g "numlist(1, 300000, L), foldl([X, A, B]>>(B is (A * 31 + X) mod 65521), L, 0, S), print(S), nl, halt(2)" -t halt""")

# --- compilers, builders, debuggers ----------------------------------------------------------------------------------

add("gcc", "gcc", "gcc -O2 -g -c $INPUT/large.c -o large.o; size large.o; gcc -c missing.c || echo $?")
add("g++", "g++", r"""printf '#include <algorithm>\n#include <iostream>\n#include <map>\n#include <regex>\n#include <string>\nint main() { std::map<std::string, int> m; std::regex r("a+b"); std::string s; while (std::cin >> s) if (std::regex_match(s, r)) m[s]++; std::cout << m.size(); }\n' >a.cc
g++ -std=c++17 -O1 a.cc -o a; echo aab b aab | ./a""", varies=((r"cc[A-Za-z0-9]{6}\.o", "ccXXXXXX.o"),))  # a temporary file
add("clang", "clang-14", "clang-14 -O2 -g -c $INPUT/large.c -o large.o; size large.o; clang-14 -c missing.c || echo $?", cpu=97.0)
add("ld", "binutils gcc", "for i in 1 2 3 4 5 6 7 8 9; do ld -r -o all$i.o large.o large2.o --build-id; done; gcc -O1 main.c large.o -o program -Wl,--gc-sections,--build-id=none; "
    "objdump -d program | tail -n 2; readelf -aW large.o | md5sum; nm large.o | md5sum; strip -o s program; ar rcD a.a large.o; size program s",
    prepare="gcc -g3 -ffunction-sections -O1 -c $INPUT/large.c -o large.o; sed 's/f\\([0-9]\\)/g\\1/g; s/struct node/struct node2/g' $INPUT/large.c >large2.c; "
    "gcc -g3 -O1 -c large2.c -o large2.o; echo 'long f79(void *, long); int main(int c, char **v) { return c > 5 ? f79(v, c) : 0; }' >main.c",
    varies=((r"cc[A-Za-z0-9]{6}\.o", "ccXXXXXX.o"),))  # a temporary file
add("gdb", "gdb", "exec gdb -nx -batch -ex 'break f20' -ex run -ex bt -ex 'info registers rip' -ex 'list f79' -ex 'ptype struct node' -ex continue ./program",
    prepare="gcc -g3 -O0 -c $INPUT/large.c -o large.o; echo 'long f79(void *, long); long z[64]; int main(void) { z[0] = (long)z; return (int)f79(z, 3) & 1; }' >main.c; "
    "gcc -g main.c large.o -o program", varies=((r"0x[0-9a-f]{12}", "ADDRESS"), (r"process \d+", "process N"), (r"\[(New |Switching to )?Thread .*\n", ""),
            (r"\[New process N\]\n", ""), (r'\[Thread debugging using.*\n|Using host libthread_db.*\n|Thread \d+ "program" hit ', "")))  # a debugger sees the sampler's thread in the program, and names a process again whose first thread is not the last to end
add("valgrind", "valgrind", "valgrind -q --error-exitcode=9 ./program", prepare="printf '#include <stdlib.h>\\nint main(void) { char *p = malloc(9); "
    "long s = 0; for (int i = 0; i < 3000000; i++) s += i %% 7; return p[9] + (int)s & 3; }\\n' >a.c; gcc -g -O1 a.c -o program",
    varies=((r"==\d+==", "==N=="), (r"0x[0-9A-Fa-f]+", "ADDRESS")),
    complete=0)  # its tool is a static program, and in the program that it translates the library does nothing
add("cmake", "cmake make gcc", "cmake -S . -B b >log; cmake --build b >>log; ./b/program; tail -n 1 log",
    prepare="printf 'cmake_minimum_required(VERSION 3.20)\\nproject(p C)\\nadd_executable(program a.c b.c)\\n' >CMakeLists.txt; "
    "echo 'int b(void); int main(void) { return b(); }' >a.c; echo 'int b(void) { return 0; }' >b.c",
    varies=((r"\(\d+\.\d+s\)", ""), (r"cc[A-Za-z0-9]{6}", "ccXXXXXX"), (r"cmTC_[0-9a-f]{5}", "cmTC_N"), (r"CMakeTmp/TryCompile-\w+", "TryCompile"),
            (r"TryCompile-\w+", "TryCompile"), (r"The system is: .*", "")), ignored_files=("work/b/CMakeFiles/*.log", "work/b/CMakeFiles/3*",
            "work/b/CMakeFiles/Makefile*", "work/b/*/build.make"))
add("make", "make gcc", "make -j4 -s; md5sum all; make -s broken || echo $?",
    prepare=r"""{ echo 'all: $(foreach i,$(shell seq 150),x$(i)); cat $^ >$@'; echo 'x%: ; @echo $@ | md5sum | sed s/-// >$@'; echo 'broken: ; false'; } >Makefile""")
add("ninja", "ninja-build", "ninja -j2; md5sum all; ninja broken || echo $?",
    prepare=r"""{ printf 'rule r\n command = echo $out | md5sum >$out\n description = \nrule c\n command = cat $in >$out\nrule f\n command = false\n'; for i in $(seq 150); do echo "build x$i: r"; done; echo build all: c $(seq -f x%g 150); echo build broken: f; echo default all; } >build.ninja""",
    varies=((r"\[\d+/\d+\].*", ""),), ignored_files=("work/.ninja_*",))  # a log with times
add("rustc", "rustc", "rustc -O --edition 2021 a.rs -o a; ./a; rustc missing.rs || echo $?", cpu=97.0,
    prepare=r"""cat >a.rs <<'R'
use std::collections::{BTreeMap, HashMap};
#[derive(Debug, Clone, PartialEq, PartialOrd)]
enum Value { Null, Number(f64), Text(String), List(Vec<Value>), Map(BTreeMap<String, Value>) }
fn parse(s: &mut std::iter::Peekable<std::str::Chars>) -> Result<Value, String> {
    match s.peek().ok_or("end")? {
        '[' => { s.next(); let mut l = vec![]; while s.peek() != Some(&']') { l.push(parse(s)?); if s.peek() == Some(&',') { s.next(); } } s.next(); Ok(Value::List(l)) }
        '"' => { s.next(); let t: String = s.by_ref().take_while(|c| *c != '"').collect(); Ok(Value::Text(t)) }
        c if c.is_ascii_digit() => { let mut t = String::new(); while let Some(c) = s.peek() { if !c.is_ascii_digit() { break; } t.push(*c); s.next(); } t.parse().map(Value::Number).map_err(|e| format!("{e}")) }
        c => Err(format!("unexpected {c:?}")),
    }
}
fn main() {
    let v = parse(&mut "[1,2,[\"a\",3],\"b\"]".chars().peekable()).unwrap();
    let mut m: HashMap<String, Vec<Value>> = HashMap::new();
    for i in 0..10 { m.entry(format!("k{}", i % 3)).or_default().push(v.clone()); }
    let mut k: Vec<_> = m.iter().map(|(k, v)| (k.clone(), v.len())).collect(); k.sort();
    println!("{v:?} {k:?} {:?} {:?}", Value::Null, Value::Map(BTreeMap::new()));
}
R""")
add("cargo", "cargo rustc", "cargo -q build --release --offline; ./target/release/p; cargo -q build --offline --bin none || echo $?", cpu=97.0,
    prepare=r"""mkdir -p src q/src; printf '[package]\nname = "p"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nq = { path = "q" }\n' >Cargo.toml; printf '[package]\nname = "q"\nversion = "0.1.0"\nedition = "2021"\n' >q/Cargo.toml
echo 'pub fn sorted(mut v: Vec<(String, u64)>) -> Vec<(String, u64)> { v.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0))); v }' >q/src/lib.rs
echo 'use std::collections::HashMap; fn main() { let mut m: HashMap<String, u64> = HashMap::new(); for i in 0..1000u64 { *m.entry(format!("{}", i % 37)).or_default() += i; } println!("{:?}", &q::sorted(m.into_iter().collect())[..3]); }' >src/main.rs""",
    ignored_files=("work/target/*", "home/*"))  # times in its own records
add("go", "golang-go", "export GOCACHE=$TMPDIR/cache GOFLAGS=-mod=mod GO111MODULE=off GOMAXPROCS=2; go build -o a a.go; ./a; go vet missing.go || echo $?",
    prepare="printf 'package main\\nimport \"fmt\"\\nfunc main() { s := 0; for i := 0; i < 1000; i++ { s = (s*31 + i) %% 65521 }; fmt.Println(s) }\\n' >a.go",
    ignored_files=("scratch/*", "home/*"), complete=0)  # measured 0: Go's linker writes no .eh_frame into a program
add("java", "default-jdk-headless", "exec java -XX:TieredStopAtLevel=4 -Xmx256m A.java 3",
    prepare=r"""cat >A.java <<'J'
import java.util.*; import java.util.stream.*;
public class A { static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
  public static void main(String[] a) throws Exception { Map<String, Integer> m = new TreeMap<>(); for (int i = 0; i < 400000; i++) m.merge("k" + i * 7919L % 4001, i & 3, Integer::sum);
    System.out.println(m.values().stream().mapToInt(x -> x).sum() + " " + fib(30) + " " + IntStream.range(0, 1000000).parallel().map(x -> x * 31 % 17).sum()); System.err.println("done"); System.exit(Integer.parseInt(a[0])); } }
J""", complete=93.0, ignored_files=("scratch/hsperfdata*",))  # measured 95 to 99: stubs of the JVM use the frame pointer for data
add("javac", "default-jdk-headless", "javac -d out A.java; javac B.java || echo $?; find out -name '*.class' | sort | xargs md5sum",
    prepare="{ echo 'import java.util.*; class A {'; for i in $(seq 40); do echo \"static <T extends Comparable<T>> List<T> f$i(Collection<T> c) "
    "{ List<T> l = new ArrayList<>(c); l.sort((a, b) -> b.compareTo(a)); return l; }\"; done; echo '}'; } >A.java; echo 'class B { int x = \"\"; }' >B.java", complete=97.0,
    ignored_files=("scratch/hsperfdata*",))  # measured 98: as java
add("ocaml", "ocaml-nox", r"""echo 'let rec fib n = if n < 2 then n else fib (n - 1) + fib (n - 2);; Printf.printf "%d\n" (fib 29);; exit 3' >a.ml; exec ocaml a.ml""")
add("m4_bison_flex", "m4 bison flex", r"""for i in 1 2 3 4; do bison -Wno-other -o a.c a.y; flex -o l.c l.l; done; md5sum a.c l.c; m4 -L 4000 a.m4""",
    prepare=r"""{ printf '%%token '; for i in $(seq 120); do printf 'T%d ' $i; done; printf '\n%%%%\n'; for i in $(seq 120); do printf 'r%d: T%d r%d | T%d T%d | %%empty ;\n' $i $i $((i % 120 + 1)) $i $(((i * 7) % 120 + 1)); done; } >a.y
{ printf '%%option noyywrap\n%%%%\n'; for i in $(seq 200); do printf 'k%dw[a-f]*%d { return %d; }\n' $i $i $i; done; } >l.l
echo "changequote([,])define([f], [ifelse([\$1], 0, 0, [eval(\$1 + f(decr(\$1)))])])f(900)" >a.m4""")
add("git", "git", """export GIT_AUTHOR_DATE='1000000000 +0000' GIT_COMMITTER_DATE='1000000000 +0000' GIT_AUTHOR_NAME=a GIT_COMMITTER_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_EMAIL=a@example.org
git init -q -b main r; cd r; for i in 1 2 3; do cp -r $INPUT/tree t$i; echo $i >>t$i/d1/f1.txt; git add .; git commit -q -m $i; sed -i s/e/$i/ t$i/d2/*; git add -u; git commit -q -m b$i; done
git -c pack.threads=2 gc -q; git log --stat | tail -n 3; git blame t1/d2/f2.txt | md5sum; git fsck --full 2>/dev/null; git diff HEAD~3 --stat | tail -n 1; git grep -c st | wc; git checkout -q nowhere || echo $?; cd ..; git clone -q r s""",
    ignored_files=("work/*/.git/index", "work/*/.git/gc.pid", "work/*/.git/objects/pack/*", "work/*/.git/objects/info/*", "work/*/.git/logs/*"))  # times of files; the order of threads

# --- XML, JSON, text -------------------------------------------------------------------------------------------------

add("xmllint", "libxml2-utils", "for i in 1 2 3 4; do xmllint --format $INPUT/rows.xml >a.xml; done; xmllint --xpath 'count(//row[amount > 500])' a.xml; xmllint --noout $INPUT/rows.csv 2>errors || echo $?")
add("xsltproc", "xsltproc", "xsltproc a.xsl $INPUT/rows.xml >a.html; wc a.html", prepare="""cat >a.xsl <<'X'
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform"><xsl:template match="/"><t><xsl:for-each select="//row"><xsl:sort select="name"/><r n="{@id}"><xsl:value-of select="concat(name, ':', format-number(amount * 2, '#.00'))"/></r></xsl:for-each></t></xsl:template></xsl:stylesheet>
X""", is_quick=True)
add("jq", "jq", "exec jq -c 'group_by(.name) | map({n: .[0].name, s: (map(.amount) | add | floor), t: (map(.tags) | flatten | unique | length)}) | sort_by(-.s) | .[:5]' $INPUT/rows.json")
add("sqlite3", "sqlite3", "sqlite3 a.db <$INPUT/rows.sql; sqlite3 a.db 'create index i on rows (name); select count(*), round(sum(a.amount * b.id)) from rows a join rows b on a.name = b.name; "
    "with recursive c(x) as (select 1 union all select x + 1 from c where x < 700000) select sum(x * 7 % 13) from c; select * from nothing' || echo $?", is_quick=True)
add("vim", "vim", "exec vim -es -u NONE -i NONE -c '%s/\\(\\w\\+\\) \\(\\w\\+\\)/\\2 \\1/g' -c 'g/^t/m0' -c 'sort' -c 'w out' -c 'q!' $INPUT/text.txt")
add("emacs", "emacs-nox", r"""exec emacs -Q --batch --eval '(progn (find-file (concat (getenv "INPUT") "/rows.csv")) (let ((n 0)) (while (re-search-forward "\\([a-z]+\\),\\([0-9]+\\)" nil t) (setq n (+ n (length (match-string 1))))) (princ n)) (let ((s 0)) (dotimes (i 2000000) (setq s (% (+ (* s 31) i) 65521))) (message "%d" s)) (setq buffer-read-only nil) (sort-lines nil (point-min) 200000) (set-buffer-modified-p nil) (princ (md5 (current-buffer))) (kill-emacs 3))'""")
add("ripgrep", "ripgrep", r"for i in 1 2 3 4 5 6; do rg -j2 --sort path -c '(st|th)[a-z]+e' $INPUT/tree $INPUT/text.txt | tail -n 2; rg -o --no-filename '\b\w{9}\b' $INPUT | sort | uniq | md5sum; done")
add("exiftool", "libimage-exiftool-perl", "for i in 1; do exiftool -fast -n -ImageSize -MIMEType -FileType $INPUT/*.ppm $INPUT/*.wav $INPUT/*.json; done")
add("pandoc", "pandoc", "pandoc $INPUT/rows.md -t html -o a.html; md5sum a.html", complete=22.0)  # measured 28 to 33: GHC's stacks have no unwind tables
add("doxygen", "doxygen", "doxygen d >log; ls html | wc; tail -n 1 log", prepare="cp $INPUT/large.c .; printf 'INPUT = large.c\\nEXTRACT_ALL = YES\\nSOURCE_BROWSER = YES\\nGENERATE_LATEX = NO\\nNUM_PROC_THREADS = 1\\nTIMESTAMP = NO\\nHTML_TIMESTAMP=NO\\n' >d",
    varies=((r"elapsed .*", ""), (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "TIME")))
add("latex", "texlive-latex-base", "for i in 1 2; do pdflatex -interaction=batchmode a.tex || echo $?; done; tail -n 3 a.log",
    prepare=r"""export; { echo '\documentclass{article}\begin{document}\tableofcontents'; for i in $(seq 150); do echo "\\section{Part $i}"; sed -n "$((i * 3)),$((i * 3 + 6))p" $INPUT/text.txt; echo '\[ \sum_{k=1}^{n} \frac{k^2}{\sqrt{k+1}} = \int_0^1 f(x)\,dx \]'; done; echo '\end{document}'; } >a.tex""",
    ignored_files=("work/a.pdf", "home/*"), varies=((r"\d+ [A-Z]{3} \d{4} \d\d:\d\d", "TIME"),))  # a date

# --- pictures, sound, films ------------------------------------------------------------------------------------------

add("imagemagick", "imagemagick", "convert-im6.q16 -limit thread 2 $INPUT/picture.ppm -resize 80% -blur 0x2 -rotate 7 -define png:exclude-chunks=date,time a.png; "
    "compare-im6.q16 -metric AE a.png a.png null:; convert-im6.q16 a.png -colors 64 a.gif; identify-im6.q16 -format '%w %h %k\\n' a.png; convert-im6.q16 missing.png b.png || echo $?",
    ignored_files=("work/a.png",))  # a date
add("ffmpeg", "ffmpeg", "ffmpeg -nostdin -hide_banner -loglevel error -threads 2 -f lavfi -i testsrc2=size=640x360:rate=25:duration=4 -i $INPUT/sound.wav -shortest -c:v libx264 -preset veryfast -c:a aac -flags +bitexact -fflags +bitexact -y a.mp4; "
    "ffmpeg -nostdin -hide_banner -loglevel error -threads 2 -i a.mp4 -vf scale=320:-1,hue=s=0 -f framemd5 - | md5sum; ffprobe -v error -show_entries stream=codec_name,duration a.mp4; ffmpeg -nostdin -loglevel error -i missing.mp4 x.mp4 || echo $?", complete=45.0)  # measured 54: x264 and libavcodec have assembly without unwind tables
add("sox_flac_lame", "sox flac lame", "sox -R $INPUT/sound.wav -b 16 a.wav reverb pitch 300 norm -3; flac -s -8 --no-preserve-modtime -f $INPUT/sound.wav -o a.flac; flac -s -t a.flac; lame --quiet -q 2 $INPUT/sound.wav a.mp3; md5sum a.*")
add("webp_jpeg_png", "webp libjpeg-turbo-progs optipng", "cwebp -quiet -m 6 a.png -o a.webp; dwebp -quiet a.webp -ppm -o b.ppm; cjpeg -quality 80 -optimize $INPUT/picture.ppm >a.jpg; djpeg a.jpg | md5sum; jpegtran -rotate 90 a.jpg | md5sum; optipng -quiet -o2 a.png",
    prepare="ffmpeg -nostdin -loglevel error -i $INPUT/picture.ppm -vf scale=400:-1 -bitexact a.png", ignored_files=())
add("ghostscript", "ghostscript poppler-utils", "gs -q -dNOPAUSE -dBATCH -dSAFER -sDEVICE=ppmraw -r100 -o p%d.ppm a.ps; gs -q -dNOPAUSE -dBATCH -sDEVICE=pdfwrite -o a.pdf a.ps; pdftotext a.pdf - | md5sum; pdftoppm -r 100 a.pdf q; md5sum *.ppm; pdfinfo a.pdf | grep Pages",
    prepare="{ echo '%!PS'; for p in 1 2 3 4; do for i in $(seq 400); do echo \"newpath $((i * 7 % 500)) $((i * 13 % 700)) moveto $((i * 31 % 500)) $((i * 17 % 700)) $((i * 3 % 400)) $((i * 5 % 600)) 300 400 curveto 0.$((i % 10)) setgray stroke\"; done; echo '/Helvetica findfont 20 scalefont setfont 50 50 moveto (page) show showpage'; done; } >a.ps",
    ignored_files=("work/a.pdf",))  # a date
add("rsvg", "librsvg2-bin", "rsvg-convert -z 2 a.svg -o a.png; md5sum a.png", prepare="{ echo \"<svg xmlns='http://www.w3.org/2000/svg' width='600' height='600'><defs><filter id='f'><feGaussianBlur stdDeviation='4'/></filter></defs>\"; for i in $(seq 300); do echo \"<circle cx='$((i * 37 % 600))' cy='$((i * 91 % 600))' r='$((i % 50))' fill='rgb($((i % 255)),90,120)' opacity='.5' $([ $((i % 10)) = 0 ] && echo \"filter='url(#f)'\")/>\"; done; echo '</svg>'; } >a.svg")
add("graphviz", "graphviz", "dot -Tsvg a.dot -o a.svg; neato -Tplain a.dot | md5sum; md5sum a.svg", prepare="{ echo 'digraph g {'; for i in $(seq 140); do echo \"n$i -> n$((i * 7 % 140)); n$i -> n$((i * 3 % 90));\"; done; echo '}'; } >a.dot")
add("gnuplot", "gnuplot-nox", "gnuplot a.gp; md5sum a.svg", prepare="printf 'set terminal svg\\nset output \"a.svg\"\\nset samples 20000\\nset isosamples 150\\nset hidden3d\\nsplot sin(x)*cos(y)\\nplot for [i=1:12] sin(x*i)/i with lines, \"%s/rows.csv\" using 1:3 with dots\\n' $INPUT >a.gp; printf 'set datafile separator \",\"\\n' | cat - a.gp >b.gp; mv b.gp a.gp")

# --- servers and databases -------------------------------------------------------------------------------------------

add("redis", "redis-server redis-tools", "redis-server --port 0 --unixsocket $PWD/s --save '' --daemonize no --logfile log & until redis-cli -s s ping >/dev/null 2>&1; do sleep 0.05; done; "
    "redis-benchmark -s s -q -n 25000 -P 4 -t set,get,lpush,zadd --csv | cut -d, -f1; redis-cli -s s eval 'local s = 0 for i = 1, 3000000 do s = (s * 31 + i) % 65521 end return s' 0; redis-cli -s s shutdown nosave; wait",
    ignored_files=("work/log", "work/dump.rdb"))  # times and pids
add("nginx", "nginx-light curl", """nginx -e $PWD/err -c $PWD/c -p $PWD; for i in $(seq 6); do curl -sS http://127.0.0.1:$PORT/text.txt --compressed | md5sum; done | sort | uniq -c; curl -sS -o /dev/null -w '%{http_code}\n' http://127.0.0.1:$PORT/nothing; kill -TERM $(cat pid); for i in $(seq 100); do [ -e pid ] || break; sleep 0.05; done""",
    prepare="""mkdir tmp; printf 'user root;\nworker_processes 2; pid %s/pid; error_log %s/err; events {} http { access_log %s/log; gzip on; gzip_comp_level 4; gzip_types text/plain; client_body_temp_path tmp; proxy_temp_path tmp; fastcgi_temp_path tmp; uwsgi_temp_path tmp; scgi_temp_path tmp; server { listen 127.0.0.1:%s; root %s; default_type text/plain; } }' $PWD $PWD $PWD $PORT $INPUT >c; [ $(id -u) = 0 ] || sed -i '/^user/d' c; [ $(id -u) != 0 ] || sed -i 's/user root;/user www-data;/' c""",
    ignored_files=("work/err", "work/log", "work/tmp"), varies=((r"\[\w+\] \d+#\d+", ""),))  # times and pids
add("apache2", "apache2-bin curl", """apache2 -f $PWD/c -d $PWD; until curl -s -o /dev/null http://127.0.0.1:$PORT/; do sleep 0.05; done; for i in $(seq 6); do curl -sS http://127.0.0.1:$PORT/text.txt --compressed | md5sum; done | sort | uniq -c; curl -sS -o /dev/null -w '%{http_code}\n' http://127.0.0.1:$PORT/nothing; apache2 -f $PWD/c -d $PWD -k graceful-stop; while [ -e pid ]; do sleep 0.05; done""",
    prepare=r"""M=/usr/lib/apache2/modules; printf "ServerName x\nListen 127.0.0.1:$PORT\nPidFile $PWD/pid\nErrorLog $PWD/err\nDocumentRoot $INPUT\nMutex file:$PWD\nStartServers 1\nLoadModule mpm_event_module $M/mod_mpm_event.so\nLoadModule authz_core_module $M/mod_authz_core.so\nLoadModule deflate_module $M/mod_deflate.so\nLoadModule filter_module $M/mod_filter.so\nLoadModule mime_module $M/mod_mime.so\nTypesConfig /etc/mime.types\nDefaultRuntimeDir $PWD\nAddOutputFilterByType DEFLATE text/plain\n" >c; [ $(id -u) != 0 ] || printf 'User www-data\nGroup www-data\n' >>c""",
    ignored_files=("work/err", "work/*mutex*"))
add("memcached", "memcached",
    r"""memcached -u nobody -s $PWD/s -t 2 & P=$!; /usr/bin/python3 -c '
import socket, time
for _ in range(200):
    s = socket.socket(socket.AF_UNIX)
    try: s.connect("s"); break
    except OSError: time.sleep(0.05)
f = s.makefile("rwb"); n = 0
for i in range(40000):
    f.write(b"set k%d 0 0 5\r\nvalue\r\nget k%d\r\n" % (i % 500, i * 7 % 500)); f.flush()
    while not f.readline().startswith(b"END"): n += 1
print(n)'; kill $P; wait $P || echo $?""", users=("nobody",))
add("postgresql", "postgresql", """P=$(ls -d /usr/lib/postgresql/*/bin | tail -n 1); $P/pg_ctl -D d -w -l log -o "-k $PWD -c listen_addresses=''" start >/dev/null; export PGHOST=$PWD PGUSER=u PGDATABASE=postgres
$P/pgbench -q -i -s 3 2>/dev/null; $P/pgbench -n -c 4 -j 2 -t 700 -S 2>&1 | grep -E 'processed|failed'; $P/pgbench -n -c 3 -t 150 2>&1 | grep -E 'processed|failed'; $P/psql -At -c 'select count(*), sum(aid % 7) from pgbench_accounts' -c 'select sum(x * 7 % 13) from generate_series(1, 1000000) x' -c 'select * from nothing' || echo $?; $P/pg_ctl -D d -m fast -w stop >/dev/null""",
    prepare="$(ls -d /usr/lib/postgresql/*/bin | tail -n 1)/initdb -D d -U u -A trust --no-sync --locale=C.UTF-8 >/dev/null; echo 'fsync = off' >>d/postgresql.conf",
    users=("nobody",), ignored_files=("work/d/*", "work/log", "work/.s.*"))  # a database's times and ids
add("mariadb", "mariadb-server-core mariadb-client-core", """mariadbd --no-defaults --datadir=$PWD/d --socket=$PWD/s --skip-networking --pid-file=$PWD/pid --lc-messages-dir=/usr/share/mysql --user=$(id -un) >log 2>&1 & M="mariadb --no-defaults -uroot -S s"; for i in $(seq 200); do $M -e 'select 1' >/dev/null 2>&1 && break || sleep 0.1; done
$M -e 'create database b; use b; create table t (id int primary key auto_increment, name varchar(30), amount double) engine=innodb; insert into t (name, amount) select concat("n", seq % 991), seq * 7 % 1000 from seq_1_to_4000; select name, sum(amount) s from t group by name order by s desc, name limit 3; select count(*) from t a join t b on a.name = b.name where a.amount > b.amount; select benchmark(300000, sha2("x", 256))'; $M -e 'select * from nothing' || echo $?; $M -e shutdown; wait""",
    prepare="mariadb-install-db --no-defaults --datadir=$PWD/d --user=$(id -un) --auth-root-authentication-method=normal --skip-test-db >/dev/null 2>&1",
    ignored_files=("work/d/*", "work/log", "home/*"))
add("haproxy", "haproxy curl", """haproxy -D -f c -p $PWD/pid; for i in $(seq 30); do curl -sS http://127.0.0.1:$PORT/ | md5sum; done | sort | uniq -c; kill $(cat pid)""",
    prepare="""printf 'HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n' >page; head -c 8000 $INPUT/text.txt >>page; printf "global\n nbthread 2\ndefaults\n mode http\n timeout client 5s\n timeout connect 5s\n timeout server 5s\nfrontend f\n bind 127.0.0.1:$PORT\n http-request return status 200 content-type text/plain file $PWD/page\n" >c""", ignored_files=("work/pid",))
add("dig_unbound", "bind9-dnsutils unbound", """unbound -c $PWD/c; for i in 1 2 3 4 5 6 7 8; do dig -p $PORT @127.0.0.1 +tries=20 +time=1 +noall +answer n$i.example.test A n$((i * 9)).example.test A; done; dig -p $PORT @127.0.0.1 +noall +comments none.example.test | grep -c NXDOMAIN; kill $(cat pid); while [ -e pid ]; do sleep 0.05; done""",
    prepare="""{ printf "server:\n port: $PORT\n interface: 127.0.0.1\n do-daemonize: yes\n pidfile: $PWD/pid\n chroot: ''\n directory: $PWD\n use-syslog: no\n logfile: $PWD/log\n username: ''\n num-threads: 2\n local-zone: example.test. static\n"; for i in $(seq 20000); do echo " local-data: 'n$i.example.test. 60 IN A 192.0.2.$((i % 250))'"; done; } >c""", ignored_files=("work/log",), complete=90.0)  # measured 95 to 96: a frame of 66 KB, more than the kernel copies, and few stacks
add("tmux", "tmux", "export SHELL=/bin/sh; tmux -L t -f /dev/null new-session -d -x 80 -y 24 \"cat $INPUT/text.txt; echo done\\$((1 + 1)); sleep 9\"; for i in $(seq 200); do tmux -L t capture-pane -p | grep -q done2 && break; sleep 0.05; done; tmux -L t capture-pane -p | tail -n 5; tmux -L t kill-server",
    ignored_files=("scratch/tmux*",))
add("openssh-server", "openssh-server openssh-client", """ssh-keygen -q -t ed25519 -N '' -f k; cp k.pub a; chmod 600 a; /usr/sbin/sshd -t -f /dev/null -h $PWD/k && echo right; ssh-keygen -l -f k.pub | wc; ssh -G -F /dev/null example.org | md5sum; ssh -o BatchMode=yes -p 1 127.0.0.1 true || echo $?""",
    users=("root",), ignored_files=("work/k*", "work/a"), prepare="mkdir -p /run/sshd")
add("samtools", "samtools", "samtools view -b -o a.bam a.sam; samtools sort -@ 2 a.bam -o b.bam --no-PG; samtools index b.bam; samtools flagstat b.bam | head -n 2; samtools view b.bam | md5sum; samtools depth b.bam | md5sum",
    prepare="mawk 'BEGIN { OFS = \"\\t\"; print \"@HD\", \"VN:1.6\"; print \"@SQ\", \"SN:c1\", \"LN:1000000\"; for (i = 0; i < 80000; i++) { p = (i * 7919) % 900000 + 1; print \"r\" i, 0, \"c1\", p, 60, \"30M\", \"*\", 0, 0, \"ACGTACGTACGTACGTACGTACGTACGTAC\", \"IIIIIIIIIIIIIIIIIIIIIIIIIIIIII\" } }' >a.sam",
    ignored_files=("work/a.bam",))  # its command line
add("stress-ng", "stress-ng", "stress-ng -q --cpu 2 --cpu-ops 200 --cpu-method all --matrix 1 --matrix-ops 200 --qsort 1 --qsort-ops 4 --temp-path $TMPDIR", complete=99.0)
add("chromium", "chromium", "chromium --headless --no-sandbox --disable-gpu --no-zygote --user-data-dir=$TMPDIR/u --virtual-time-budget=2000 --dump-dom file://$PWD/a.html 2>err",
    prepare="echo '<p id=p></p><script>let s = 0; for (let i = 0; i < 5e7; i++) s = (s * 31 + i) % 65521; document.getElementById(\"p\").textContent = s; let t = \"\"; for (let i = 0; i < 3000; i++) t += \"<b>\" + i + \"</b> \"; document.body.innerHTML += t</script>' >a.html",
    ignored_files=("work/err", "home/*", "scratch/*"))  # measured 99.8

BY_NAME = {program.name: program for program in LIST}


def packages(programs):
    return sorted({word for program in programs for word in program.packages.split()})


if __name__ == "__main__" and sys.argv[1:2] == ["packages"]:
    print(*packages(program for program in LIST if program.is_quick or "quick" not in sys.argv))
