"""Upstreams that serve, die, hang, reset connections and come back, and that record which requests they have not answered."""

import asyncio
import base64
import hashlib
import socket
import struct
import time

MODES = ["die", "hang", "reset"]
PAGE = 1024
WEBSOCKET = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def page(target):
    """Returns content that is unique to a target."""
    return target.encode().ljust(PAGE, b".")


class Origin:
    def __init__(self, port):
        self.port, self.mode, self.broken, self.deaths, self.open = port, "serve", set(), [], set()
        self.server = None

    async def set_mode(self, mode):
        if mode == self.mode:
            return
        before, self.mode = self.mode, mode
        if mode == "die":
            self.deaths.append(time.time())
            self.server.close()
        if mode == "die" or before == "hang":
            for writer in list(self.open):
                self.reset(writer)
        if before == "die":
            await self.listen()

    async def left(self):
        """Returns the requests that were received and not answered, and the times at which this server died."""
        answer = self.broken, self.deaths
        self.broken, self.deaths = set(), []
        return answer

    async def listen(self):
        self.server = await asyncio.start_server(self.serve, "127.0.0.1", self.port, backlog=4096)

    def reset(self, writer):
        end = writer.get_extra_info("socket")
        if end is not None:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async def serve(self, reader, writer):
        self.open.add(writer)
        try:
            while await self.exchange(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self.open.discard(writer)
            writer.close()

    async def exchange(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        target = head.split(" ", 2)[1]
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        if self.mode != "serve":
            self.broken.add(target)
            if self.mode == "hang":
                await reader.read()
            else:
                self.reset(writer)
            return False
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        if fields.get("upgrade") == "websocket":
            key = next(line for line in head.split("\r\n") if line.lower().startswith("sec-websocket-key")).split(": ")[1]
            accept = base64.b64encode(hashlib.sha1(key.encode() + WEBSOCKET).digest()).decode()
            start = f"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
            writer.write(start.encode())
            while data := await reader.read(4096):
                writer.write(data)
            return False
        content = page(target) + body
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(content) + content)
        await writer.drain()
        return True


async def origin(work, port):
    one = Origin(port)
    work.orders.update(mode=one.set_mode, left=one.left)
    await one.listen()
    await work.stopped.wait()
