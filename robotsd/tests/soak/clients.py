"""Clients of every kind. Each client checks the answers that it receives."""

import asyncio
import itertools
import os
import random
import socket
import ssl
import struct
import time

from origin import page

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
GPTBOT = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)"
AHREFS = "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)"
PATIENCE = 15
NUMBERS = itertools.count()


def target(of):
    """Returns a target that no other request has."""
    return f"/{of}/{os.getpid()}-{next(NUMBERS)}"


class Http1:
    """A persistent HTTP/1.1 connection, which is opened again if it is closed."""

    def __init__(self, work, port, context=None):
        self.work, self.port, self.context, self.writer = work, port, context, None

    def close(self):
        if self.writer:
            self.writer.transport.abort()
        self.writer = None

    async def ask(self, head, body=b""):
        """Returns the status and the content of an answer. The status is 0 if there was no answer."""
        while True:
            is_kept = self.writer is not None
            try:
                if not is_kept:
                    self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context)
                self.writer.write(head + body)
                return await asyncio.wait_for(self.answer(), PATIENCE)
            except (OSError, asyncio.IncompleteReadError) as why:
                self.close()
                is_silent = not getattr(why, "partial", b"")
                if is_kept and is_silent:
                    # The server closed the idle connection just when this request was sent (RFC 9112, section 9.5).
                    self.work.seen.races += 1
                    continue
                return 0, repr(why).encode()
            except asyncio.TimeoutError:
                self.close()
                return 0, b"no answer in time"

    async def answer(self):
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        status = int(head[9:12])
        if status == 101:
            return status, b""
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        try:
            body = await self.reader.readexactly(int(fields.get("content-length", 0)))
        except asyncio.IncompleteReadError as cut:
            self.close()
            return 0, b"cut off after %d bytes" % len(cut.partial)
        if fields.get("connection") == "close":
            self.close()
        return status, body


def head(path, host, agent=FIREFOX, method="GET", more=""):
    return f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {agent}\r\n{more}\r\n".encode()


async def pages(work, listener, port, context, count, pause):
    """Browsers that load pages of three servers, two of which may be broken, and send forms to a server that is never broken."""
    if context:
        context = insecure([context])

    async def browse():
        client = Http1(work, port, context)

        async def step():
            path, began, start = target("page"), time.time(), time.monotonic()
            status, body = await client.ask(head(path, "page.test"))
            finish(work, listener, path, began, time.monotonic() - start, status, body)
            if random.random() < 0.1:
                path, sent = target("form"), os.urandom(random.randrange(1, 4096))
                status, body = await client.ask(head(path, "form.test", method="POST", more=f"Content-Length: {len(sent)}\r\n"), sent)
                work.seen.answer(listener, "form", status)
                if (status, body) != (200, page(path) + sent):
                    work.seen.fault(f"{listener}: {status} for what was sent to {path}: {body[:80]!r}")

        await work.forever(step, pause)

    await asyncio.gather(*(browse() for _ in range(count)))


def finish(work, listener, path, began, took, status, body):
    work.seen.answer(listener, "page", status)
    if status == 200:
        work.seen.times.append(took)
        if body != page(path):
            work.seen.fault(f"{listener}: {path} got the content of another: {body[:60]!r}")
    else:
        work.seen.failed.append((path, status, began, time.time(), body[:120].decode("latin-1")))


async def crawlers(work, port, pause):
    """A crawler that is refused, a crawler that exceeds its crawl delay, and requests for their robots.txt."""
    client = Http1(work, port)
    asked = itertools.cycle([("/private/x", GPTBOT, {403}), ("/robots.txt", GPTBOT, {200}), ("/slow", AHREFS, {200, 429})])

    async def step():
        path, agent, fine = next(asked)
        status, body = await client.ask(head(path, "crawled.test", agent))
        work.seen.answer("web", "crawled", status)
        work.seen.passed += path == "/slow" and status == 200
        if status not in fine or path == "/robots.txt" and not body.endswith(b"# end\n"):
            work.seen.fault(f"{status} for {path} by {agent}: {body[:80]!r}")

    await work.forever(step, pause)


async def sick(work, port, pause):
    """Requests for a site whose only server breaks. There must always be an answer, with any status."""
    client = Http1(work, port)

    async def step():
        path = target("sick")
        status, body = await client.ask(head(path, "sick.test"))
        work.seen.answer("web", "sick", status)
        if status not in {200, 502, 503, 504}:
            work.seen.fault(f"{status} for {path}: {body[:80]!r}")

    await work.forever(step, pause)


async def questions(work, port, pause):
    """Decision requests as nginx sends them, about requests of a browser and of a refused crawler."""
    client = Http1(work, port)
    asked = itertools.cycle([(FIREFOX, 200), (GPTBOT, 403)])

    async def step():
        agent, want = next(asked)
        more = "X-Original-URI: /private/y\r\nX-Original-Method: GET\r\n"
        status, body = await client.ask(head("/-/auth/nginx", "crawled.test", agent, more=more))
        work.seen.answer("ask", "crawled", status)
        if status != want:
            work.seen.fault(f"{status} for a question about {agent}: {body[:80]!r}")

    await work.forever(step, pause)


async def websockets(work, port, pause):
    """WebSockets that send a message, receive it again, and close."""

    async def step():
        client, more = Http1(work, port), "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        more += "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
        status, body = await client.ask(head(target("socket"), "form.test", more=more))
        work.seen.answer("web", "form", status)
        if status != 101:
            return work.seen.fault(f"{status} for a WebSocket: {body[:80]!r}")
        try:
            for _ in range(5):
                said = os.urandom(100)
                client.writer.write(said)
                if await asyncio.wait_for(client.reader.readexactly(100), PATIENCE) != said:
                    work.seen.fault("a WebSocket says something else than it heard")
            client.writer.write_eof()
            if await asyncio.wait_for(client.reader.read(), PATIENCE):
                work.seen.fault("a WebSocket says more than it heard")
        except (OSError, EOFError, asyncio.TimeoutError) as why:
            work.seen.fault(f"a WebSocket breaks off: {why!r}")
        client.close()

    await work.forever(step, pause)


async def calls(work, port, pause):
    """gRPC calls: one message, and a stream of messages in both directions."""
    import grpc

    loop = asyncio.get_running_loop()
    channel = grpc.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1), ("grpc.default_authority", "calls.test")])
    echo, talk = channel.unary_unary("/test.Calls/Echo"), channel.stream_stream("/test.Calls/Talk")

    def call():
        said = os.urandom(200)
        try:
            if echo(said, timeout=PATIENCE) != said:
                return "another message comes back"
            if list(talk(iter([b"one", b"two"]), timeout=PATIENCE)) != [b"you said one", b"you said two"]:
                return "another stream comes back"
        except grpc.RpcError as error:
            return f"{error.code()}: {error.details()}"
        return None

    async def step():
        fault = await loop.run_in_executor(None, call)
        work.seen.counts["web", "calls", 200] += 2
        if fault:
            work.seen.fault(f"gRPC: {fault}")

    await work.forever(step, pause)
    channel.close()


def literal(name, value):
    """Encodes an HTTP/2 field without an index and without Huffman coding (RFC 7541, section 6.2.2)."""
    return b"\0" + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


# The Huffman codes of the digits (RFC 7541, appendix B).
DIGITS = {f"{number:05b}": str(number) for number in range(3)} | {f"{number + 22:06b}": str(number) for number in range(3, 10)}


def status_of(block):
    """Reads the status, which is the first field. The peer uses no dynamic table, because its size was set to 0 (RFC 7541, section 4.2)."""
    while block and block[0] & 0xE0 == 0x20:
        block = block[1:]
    if block[0] & 0x80:
        return {0x88: 200, 0x89: 204, 0x8A: 206, 0x8B: 304, 0x8C: 400, 0x8D: 404, 0x8E: 500}[block[0]]
    at = 2 if block[0] & 0x0F == 0x0F else 1
    length, data = block[at] & 0x7F, block[at + 1 : at + 1 + (block[at] & 0x7F)]
    if not block[at] & 0x80:
        return int(data)
    text, code = "", ""
    for bit in "".join(f"{byte:08b}" for byte in data[:length]):
        code += bit
        if code in DIGITS:
            text, code = text + DIGITS[code], ""
    return int(text[:3])


class Http2:
    """An HTTP/2 connection with several concurrent requests."""

    def __init__(self, work, port, context):
        self.work, self.port, self.context, self.writer = work, port, context, None

    async def open(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=self.context)
        self.next, self.is_last = 1, False
        # No dynamic table for fields, and a flow-control window of a gigabyte.
        no_table, room = frame(4, 0, 0, struct.pack(">HI", 1, 0)), frame(8, 0, 0, struct.pack(">I", 1 << 30))
        self.writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + no_table + room)

    async def ask(self, paths, host):
        """Returns the status and the content for each path, and the time of the answer.

        Requests that the server has not processed are repeated on a new connection.
        """
        answers, waiting = {}, list(paths)
        while waiting:
            is_kept = self.writer is not None
            streams = {}
            try:
                if not is_kept:
                    await self.open()
                for path in waiting:
                    fields = [(":method", "GET"), (":scheme", "https" if self.context else "http"), (":path", path)]
                    fields += [(":authority", host), ("user-agent", FIREFOX)]
                    self.writer.write(frame(1, 5, self.next, b"".join(literal(*field) for field in fields)))
                    streams[self.next] = [path, 0, b""]
                    self.next += 2
                ended = await asyncio.wait_for(self.receive(streams), PATIENCE)
            except (OSError, asyncio.IncompleteReadError, asyncio.TimeoutError) as why:
                ended = {}
                if not is_kept or isinstance(why, asyncio.TimeoutError) or any(status for _, status, _ in streams.values()):
                    answers |= {path: (0, repr(why).encode(), 0.0) for path, *_ in streams.values()}
                self.close()
            answers |= {path: (status, body, when) for path, status, body, when in ended.values()}
            left = [path for path in waiting if path not in answers]
            if left:
                self.work.seen.races += 1
            waiting = left
            if self.is_last or self.next > 1 << 20:
                self.close()
        return answers

    def close(self):
        if self.writer:
            self.writer.transport.abort()
        self.writer, self.is_last = None, False

    async def receive(self, streams):
        ended, below = {}, 1 << 31
        while any(stream <= below for stream in streams.keys() - ended.keys()):
            start = await self.reader.readexactly(9)
            length, kind, flags, stream = int.from_bytes(start[:3], "big"), start[3], start[4], int.from_bytes(start[5:9], "big")
            payload = await self.reader.readexactly(length)
            if kind == 4 and not flags & 1:
                self.writer.write(frame(4, 1, 0))
            elif kind == 6 and not flags & 1:
                self.writer.write(frame(6, 1, 0, payload))
            elif kind == 7:
                self.is_last, below = True, int.from_bytes(payload[:4], "big")
            elif kind == 3 and stream in streams:
                ended[stream] = [streams[stream][0], 0, b"reset with %d" % int.from_bytes(payload, "big"), time.monotonic()]
            elif stream in streams and kind in (0, 1):
                if kind == 0:
                    streams[stream][2] += payload
                    if length:
                        self.writer.write(frame(8, 0, 0, struct.pack(">I", length)))
                elif not streams[stream][1]:
                    streams[stream][1] = status_of(payload)
                if flags & 1:
                    ended[stream] = [*streams[stream], time.monotonic()]
        return ended


def insecure(protocols):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(protocols)
    return context


async def streams(work, listener, port, is_secure, count, pause):
    """Loads pages over HTTP/2, ten at a time."""
    context = insecure(["h2"]) if is_secure else None

    async def browse():
        client = Http2(work, port, context)

        async def step():
            began, start = time.time(), time.monotonic()
            answers = await client.ask([target("page") for _ in range(10)], "page.test")
            for path, (status, body, when) in answers.items():
                finish(work, listener, path, began, when - start, status, body)

        await work.forever(step, pause)

    await asyncio.gather(*(browse() for _ in range(count)))


class Idle(asyncio.Protocol):
    """A connection that sends a request from time to time."""

    def __init__(self, crowd):
        self.crowd, self.awaited, self.got = crowd, False, b""

    def connection_made(self, transport):
        self.transport = transport
        self.crowd.open.append(self)

    def ask(self):
        self.awaited = True
        self.crowd.work.under_way += 1
        self.transport.write(head("/robots.txt", "crawled.test"))

    def data_received(self, data):
        self.got += data
        if self.awaited and self.got.endswith(b"# end\n"):
            self.end(int(self.got[9:12]))

    def end(self, status):
        self.awaited, self.got = False, b""
        self.crowd.work.under_way -= 1
        self.crowd.work.seen.answer("web", "crawled", status)

    def connection_lost(self, why):
        if self.awaited:
            self.end(0)
        if not self.crowd.work.stopped.is_set():
            self.crowd.work.seen.fault(f"an idle connection is closed: {why!r}")
            self.crowd.open.remove(self)


class Crowd:
    def __init__(self, work):
        self.work, self.open = work, []


async def idle(work, port, count, period):
    """Idle connections, each of which sends one request per period."""
    crowd, loop, turn = Crowd(work), asyncio.get_running_loop(), 0

    async def are_open():
        return len(crowd.open)

    work.orders.update(are_open=are_open)
    while await work.turn():
        for _ in range(min(100, count - len(crowd.open))):
            # Each connection sends a first request, so that robotsd treats it as a kept connection.
            _, one = await loop.create_connection(lambda: Idle(crowd), "127.0.0.1", port)
            one.ask()
        for _ in range(min(len(crowd.open), max(1, int(count / period / 10)))):
            turn = (turn + 1) % len(crowd.open)
            if not crowd.open[turn].awaited:
                crowd.open[turn].ask()
        await asyncio.sleep(0.1)


async def hostile(work, port, tls_port, pause):
    """Sends slow heads, aborted requests, resets, garbage, half handshakes, and streams that are reset immediately."""
    held, draw = [], random.Random(7)

    def connection(to, data):
        one = socket.create_connection(("127.0.0.1", to), 2)
        one.sendall(data)
        return one

    def reset(one):
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()

    def attack():
        kind = draw.randrange(6)
        if kind == 0:
            held.append(connection(port, b"GET / HTTP/1.1\r\nHost: hostile.test\r\nX-A: "))
        elif kind == 1:
            reset(connection(port, head(target("gone"), "hostile.test")))
        elif kind == 2:
            connection(port, draw.randbytes(draw.randrange(1, 4096))).close()
        elif kind == 3:
            held.append(connection(tls_port, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + draw.randbytes(draw.randrange(300))))
        elif kind == 4:
            reset(connection(port, b"POST /x HTTP/1.1\r\nHost: hostile.test\r\nContent-Length: 100000\r\n\r\n" + b"x" * draw.randrange(60000)))
        else:
            fields = [(":method", "GET"), (":scheme", "http"), (":path", target("gone")), (":authority", "hostile.test")]
            block = b"".join(literal(*field) for field in fields)
            ask = b"".join(frame(1, 5, stream, block) + frame(3, 0, stream, struct.pack(">I", 8)) for stream in range(1, 60, 2))
            connection(port, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0) + ask).close()
        for one in held:
            one.send(b"a")
        while len(held) > 50:
            held.pop(0).close()

    async def step():
        try:
            attack()
        except OSError:
            # Refused and closed connections are expected here; the server counts them.
            held[:] = held[len(held) // 2 :]

    await work.forever(step, pause)
