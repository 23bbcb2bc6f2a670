"""Starts ClickHouse servers and a ZooKeeper of a test on this machine, and ends them.

Each has a session of its own, is ended by the id of its process, and is ready when an INSERT succeeds: its port is open
earlier. The Debian packages are clickhouse-server and zookeeper."""
import ctypes
import glob
import hashlib
import http.client
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse

USER, PASSWORD = "offbeat", "pass'word"
SERVER = shutil.which("clickhouse-server") or shutil.which("clickhouse-server", path="/usr/sbin:/usr/bin")
ZOOKEEPER_JARS = [jar for name in ("zookeeper", "zookeeper-jute", "slf4j-api", "netty-*", "commons-cli", "metrics-core",
                                   "snappy-java")
                  for jar in glob.glob(f"/usr/share/java/{name}.jar")]


def missing():
    """What a test of one server lacks here; None: nothing."""
    return None if SERVER else "clickhouse-server"


def missing_for_replicas():
    if missing():
        return missing()
    return None if len(ZOOKEEPER_JARS) > 5 and shutil.which("java") else "zookeeper"


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


LIBC = ctypes.CDLL(None)


def die_with_the_test():
    """Ends the process when the test is killed, which cannot end it then."""
    LIBC.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


class Process:
    """A program in a session of its own."""

    def __init__(self, folder, arguments):
        self.folder, self.arguments, self.process = folder, arguments, None

    def launch(self):
        with open(os.path.join(self.folder, "output"), "ab") as output:
            self.process = subprocess.Popen(self.arguments, stdout=output, stderr=output, stdin=subprocess.DEVNULL,
                                            cwd=self.folder, start_new_session=True, preexec_fn=die_with_the_test)
        with open(os.path.join(self.folder, "pid"), "w") as file:
            file.write(str(self.process.pid))

    def send(self, number):
        if self.process and self.process.poll() is None:
            os.kill(self.process.pid, number)

    def kill(self):
        self.send(signal.SIGKILL)
        if self.process:
            self.process.wait()

    def stop(self, seconds=15):
        self.send(signal.SIGCONT)
        self.send(signal.SIGTERM)
        try:
            if self.process:
                self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()


class ZooKeeper(Process):
    def __init__(self, folder, host="127.0.0.1"):
        self.host, (self.port,) = host, free_ports(1)
        os.makedirs(folder)
        with open(os.path.join(folder, "zoo.cfg"), "w") as file:
            file.write(f"tickTime=1000\ndataDir={folder}\nclientPort={self.port}\nclientPortAddress={host}\n"
                       "admin.enableServer=false\n4lw.commands.whitelist=*\nmaxClientCnxns=0\n")
        super().__init__(folder, ["java", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-cp", ":".join(ZOOKEEPER_JARS),
                                  "org.apache.zookeeper.server.quorum.QuorumPeerMain", os.path.join(folder, "zoo.cfg")])

    def start(self, seconds=60):
        self.launch()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                with socket.create_connection((self.host, self.port), 1) as connection:
                    connection.sendall(b"ruok")
                    if connection.recv(4) == b"imok":
                        return self
            except OSError:
                time.sleep(0.05)
        raise RuntimeError("ZooKeeper does not start: see " + self.folder)


class Server(Process):
    """One ClickHouse server. SHARD and REPLICA are its macros. CERTIFICATE: a file, and one with its key, for a port with TLS. NAMESPACE: the network
    namespace that has the address HOST."""

    def __init__(self, folder, shard="1", replica="1", zookeeper=None, macros=True, certificate=None, host="127.0.0.1", namespace=None):
        self.host = host
        self.port, self.tls_port, tcp, between = free_ports(4)
        self.shard, self.replica, self.has_keeper = shard, replica, zookeeper is not None
        os.makedirs(folder)
        keeper = (f"<zookeeper><node><host>{zookeeper.host}</host><port>{zookeeper.port}</port></node>"
                  "<session_timeout_ms>6000</session_timeout_ms></zookeeper>" if zookeeper else "")
        tls = (f"<https_port>{self.tls_port}</https_port><openSSL><server><certificateFile>{certificate[0]}</certificateFile><privateKeyFile>"
               f"{certificate[1]}</privateKeyFile><verificationMode>none</verificationMode></server></openSSL>" if certificate else "")
        names = f"<macros><shard>{shard}</shard><replica>{replica}</replica></macros>" if macros else ""
        with open(os.path.join(folder, "config.xml"), "w") as file:
            file.write(f"""<yandex><logger><level>warning</level><log>{folder}/log</log><errorlog>{folder}/errors</errorlog>
</logger><http_port>{self.port}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{between}</interserver_http_port>
<interserver_http_host>{host}</interserver_http_host><listen_host>{host}</listen_host><path>{folder}/data/</path>
<tmp_path>{folder}/tmp/</tmp_path><user_files_path>{folder}/files/</user_files_path>
<format_schema_path>{folder}/formats/</format_schema_path><users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<mark_cache_size>268435456</mark_cache_size><timezone>UTC</timezone>{keeper}{names}{tls}</yandex>""")
        digest = hashlib.sha256(PASSWORD.encode()).hexdigest()
        with open(os.path.join(folder, "users.xml"), "w") as file:
            file.write(f"""<yandex><profiles><default><max_memory_usage>2000000000</max_memory_usage><log_queries>0</log_queries>
</default></profiles><users><default><password></password><networks><ip>::/0</ip></networks><profile>default</profile>
<quota>default</quota></default><{USER}><password_sha256_hex>{digest}</password_sha256_hex><networks><ip>::/0</ip>
</networks><profile>default</profile><quota>default</quota></{USER}></users><quotas><default/></quotas></yandex>""")
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        super().__init__(folder, inside + [SERVER, f"--config-file={folder}/config.xml"])

    @property
    def place(self):
        return f"{self.host}:{self.port}"

    def query(self, statement, database="default", timeout=20):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request("POST", "/?" + urllib.parse.urlencode({"database": database, "wait_end_of_query": 1}),
                               statement.encode())
            answer = connection.getresponse()
            text = answer.read().decode(errors="replace")
            if answer.status != 200:
                raise RuntimeError(f"{self.place}: {answer.status} {text[:300]}")
            return text.strip()
        finally:
            connection.close()

    def start(self, seconds=60, table=None):
        """Waits until queries, also of its ZooKeeper, and an INSERT of nothing into TABLE succeed."""
        self.launch()
        return self.wait(seconds, table)

    def wait(self, seconds=60, table=None):
        end = time.monotonic() + seconds
        while True:
            try:
                self.query("SELECT count() FROM system.zookeeper WHERE path = '/'" if self.has_keeper else "SELECT 1")
                if table:
                    self.query(f"INSERT INTO {table} SELECT * FROM {table} LIMIT 0")
                return self
            except (OSError, RuntimeError, http.client.HTTPException) as failure:
                if self.process.poll() is not None:  # it was started before its ZooKeeper
                    self.launch()
                if time.monotonic() > end:
                    raise RuntimeError(f"ClickHouse does not start: {failure}: see {self.folder}") from failure
                time.sleep(0.05)
